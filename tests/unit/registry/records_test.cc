#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "base/limits.h"
#include "diskformat/hash.h"
#include "diskformat/record.h"
#include "diskformat/uuid.h"
#include "registry/registry_compare.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "registry_generated.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kNode = "8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7de";

MirroredVersion sample() {
  MirroredVersion version;
  VersionRow& row = version.version;
  row.manifest.bytes.fill(7);
  row.time_ns = 5;
  row.logical_bytes = 6;
  row.message = "two\nlines";
  row.source.endpoint = "https://hub.example";
  row.source.repository = "hf:org/bert";
  row.source.revision = "main";
  row.source.commit = std::string(kCommitDigits, 'e');
  row.source.access = "gated";
  row.source.listed_ns = 13;
  row.source.urls = {"https://hub.example/a"};
  row.source.left_out = 2;
  row.metrics = {{"loss", "0.5"}};
  row.parents = {{"org/base", 3, true, 4, 5, 0}};
  row.elsewhere = {"google/bert"};
  row.tensors = 8;
  row.tensor_bytes = 9;
  version.tree_nodes = 10;
  version.packs = {11, 12};
  row.publisher = kNode;
  row.by = {"alice", "node1"};
  row.uid = {14, 15};
  return version;
}

}  // namespace

TEST_CASE("keys: each kind comes back, and lies where its range looks") {
  RegistryKeys keys("/weft", "main");
  CHECK(keys.version("org/bert", 10) == "/weft/main/v/org/bert@000000000000000a");
  auto version = keys.parse(keys.version("org/bert", 10));
  REQUIRE(version.ok());
  CHECK(version->kind == KeyKind::version);
  CHECK(version->model == "org/bert");
  CHECK(version->number == 10);
  CHECK(keys.parse(keys.tombstone("a", 1))->kind == KeyKind::tombstone);
  CHECK(keys.parse(keys.tag("a", "best"))->name == "best");
  CHECK(keys.parse(keys.head("a/b"))->model == "a/b");
  CHECK(keys.parse(keys.member(kNode))->name == kNode);
  CHECK(keys.parse(keys.barrier(kNode))->kind == KeyKind::barrier);
  CHECK(keys.parse(keys.node(kNode))->kind == KeyKind::node);
  CHECK(keys.parse(keys.node(kNode))->name == kNode);
  const std::string digits(32, 'a');
  for (const std::string& key : {keys.claim(digits), keys.claim_place(digits, 7), keys.claim_last(digits)}) {
    CHECK(keys.parse(key)->kind == KeyKind::claim);
    CHECK(keys.parse(key)->name == digits);
  }
  for (const char* place : {"/", "/third", "/w/", "/w/7", "/w/000000000000000g", "w", "a"})
    CHECK_FALSE(keys.parse(keys.claim(digits) + place).ok());
  CHECK(keys.claim_place(digits, 7).starts_with(keys.claim_line(digits).begin));
  CHECK(keys.parse(keys.removals())->kind == KeyKind::removals);
  CHECK(keys.parse(keys.purge("a", 3))->kind == KeyKind::purge);
  CHECK(keys.parse(keys.purge("a", 3))->number == 3);
  CHECK(keys.parse(keys.collection())->kind == KeyKind::collection);
  CHECK(keys.parse(keys.meta())->kind == KeyKind::meta);

  auto in = [](const etcd::Keys& range, const std::string& key) { return range.begin <= key && key < range.end; };
  // A model whose name looks like a version number below `a` is not among the versions of `a`.
  const std::string below = keys.version("a/000000000000000b", 1);
  CHECK(in(keys.versions_of("a"), keys.version("a", 1)));
  CHECK_FALSE(in(keys.versions_of("a"), below));
  CHECK(in(keys.versions_below("a"), below));
  CHECK_FALSE(in(keys.versions_below("a"), keys.version("a", 1)));
  CHECK_FALSE(in(keys.versions_of("a"), keys.version("ab", 1)));
  CHECK_FALSE(in(keys.versions_below("a"), keys.version("ab", 1)));
  CHECK(in(keys.all(), keys.removals()));
  CHECK_FALSE(in(keys.all(), RegistryKeys("/weft", "main2").meta()));
}

TEST_CASE("a collection of the origin comes back, and an impossible one is refused") {
  const OriginCollection collection{"0123456789abcdef", 3, 5};
  CHECK(*open_collection(seal(collection, "g"), "g") == collection);
  for (const OriginCollection& bad :
       {OriginCollection{"", 3, 5}, OriginCollection{"a", 0, 5}, OriginCollection{"a", 3, limits::kTimeNsMax + 1}})
    CHECK(open_collection(seal(bad, "g"), "g").error().code == Errc::corrupt);
  CHECK_FALSE(open_collection(seal(collection, "g"), "r").ok());
}

TEST_CASE("keys: what no weft puts is refused and named") {
  RegistryKeys keys("/weft", "main");
  for (const char* bad : {"/other/main/meta",
                          "/weft/main/",
                          "/weft/main/q",
                          "/weft/main/v/",
                          "/weft/main/v/a",
                          "/weft/main/v/a@1",
                          "/weft/main/v/a@000000000000000A",
                          "/weft/main/v/a@0000000000000000",
                          "/weft/main/v/a@ffffffffffffffff",
                          "/weft/main/v/../x@0000000000000001",
                          "/weft/main/v/a//b@0000000000000001",
                          "/weft/main/v/\x1b[2J@0000000000000001",
                          "/weft/main/t/a@latest",
                          "/weft/main/t/a@7",
                          "/weft/main/m/a@b",
                          "/weft/main/n/",
                          "/weft/main/k/x",
                          "/weft/main/n/..",
                          "/weft/main/meta2",
                          "/weft/main/c/",
                          "/weft/main/c/a/b"}) {
    CAPTURE(bad);
    CHECK_FALSE(keys.parse(bad).ok());
  }
  CHECK(keys.parse("/weft/main/v/\x1b@1").error().message.find('\x1b') == std::string::npos);
  CHECK(RegistryKeys::check("/weft", "main").ok());
  for (const char* prefix : {"", "/", "weft", "/weft/", "/we ft"})
    CHECK_FALSE(RegistryKeys::check(prefix, "main").ok());
  for (const char* cluster : {"", "a/b", "..", "a b"}) CHECK_FALSE(RegistryKeys::check("/weft", cluster).ok());
}

TEST_CASE("records: facts survive encoding") {
  const MirroredVersion in = sample();
  auto out = open_version(seal(in, "v/a@1"), "v/a@1");
  REQUIRE(out.ok());
  const VersionRow& row = out->version;
  CHECK(row.manifest == in.version.manifest);
  CHECK(row.time_ns == 5);
  CHECK(row.logical_bytes == 6);
  CHECK(row.message == "two\nlines");
  CHECK(row.source == in.version.source);
  CHECK(row.metrics == in.version.metrics);
  REQUIRE(row.parents.size() == 1);
  CHECK(row.parents[0].model == "org/base");
  CHECK(row.parents[0].number == 3);
  CHECK(row.parents[0].same_bytes == 5);
  CHECK(row.elsewhere == in.version.elsewhere);
  CHECK(row.tensors == 8);
  CHECK(row.tensor_bytes == 9);
  CHECK_FALSE(row.removed);
  CHECK(out->tree_nodes == 10);
  CHECK(out->packs == std::vector<PackId>{11, 12});
  CHECK(row.publisher == kNode);
  CHECK(row.by == Author{"alice", "node1"});
  CHECK(row.uid == in.version.uid);

  RegistryTombstone tombstone{in, 77};
  tombstone.version.version.removed_ns = 55;
  tombstone.version.removed_by = {"alice", "node1"};
  auto gone = open_tombstone(seal(tombstone, "x/a@1"), "x/a@1");
  REQUIRE(gone.ok());
  CHECK(gone->version.version.removed);
  CHECK(gone->version.version.removed_ns == 55);
  CHECK(gone->version.version.message == "two\nlines");
  CHECK(gone->revision == 77);
  CHECK(gone->version.removed_by == tombstone.version.removed_by);

  Member member{"", "host", "10.0.0.1:7", "net", 9};
  auto back = open_member(seal(member, "n/1"), "n/1");
  REQUIRE(back.ok());
  CHECK(*back == member);
  member.key_proof = "0123456789abcdef0123456789abcdef";
  CHECK(open_member(seal(member, "n/1"), "n/1")->key_proof == member.key_proof);
  CHECK(open_head(seal(RegistryHead{5, 6}, "m/a"), "m/a")->next_number == 5);
  CHECK(open_tag(seal(RegistryTag{5, 6, {}, {7, 8}}, "t/a@b"), "t/a@b")->uid == Uuid{7, 8});
  CHECK_FALSE(open_tag(seal(RegistryTag{5, 6}, "t/a@b"), "t/a@b").ok());
  CHECK(open_moment(seal(RegistryMoment{5, {7, 8}}, "d/a@1"), "d/a@1")->uid == Uuid{7, 8});
  const Author alice{"alice", "node1"};
  CHECK(open_tag(seal(RegistryTag{0, 6, alice}, "t/a@b"), "t/a@b")->by == alice);
  CHECK(open_tag(seal(RegistryTag{1, 6, alice, {7, 8}, 0, 0, "bob"}, "t/a@b"), "t/a@b")->owner == "bob");
  CHECK_FALSE(open_tag(seal(RegistryTag{1, 6, alice, {7, 8}, 0, 0, "two\nlines"}, "t/a@b"), "t/a@b").ok());
  CHECK(open_meta(seal(RegistryMeta{kRegistryFormat, kNode, 6}, "meta"), "meta")->cluster == kNode);
}

TEST_CASE("records: a value that is changed, cut, or under another key does not verify, and is named") {
  const auto value = seal(sample(), "v/a@1");
  auto wrong_key = open_version(value, "v/a@2");
  REQUIRE_FALSE(wrong_key.ok());
  CHECK(wrong_key.error().code == Errc::corrupt);
  CHECK(wrong_key.error().message.find("v/a@2") != std::string::npos);
  CHECK_FALSE(open_tag(value, "v/a@1").ok());
  std::mt19937_64 random(test_seed());
  for (int i = 0; i < 2'000; ++i) {
    auto bad = value;
    std::size_t bit = random() % (8 * bad.size());
    bad[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    CHECK_FALSE(open_version(bad, "v/a@1").ok());
    auto cut = value;
    cut.resize(random() % value.size());
    CHECK_FALSE(open_version(cut, "v/a@1").ok());
  }
}

TEST_CASE("records: a share that refers to one text many times is refused, before it is decoded") {
  namespace wire = registry_records;
  const std::string bound = "s/1";
  const auto opens = [&](std::size_t count) {
    flatbuffers::FlatBufferBuilder builder;
    const auto model = builder.CreateString("m"), why = builder.CreateString(std::string(1'000, 'a'));
    const records::Uuid uid;
    const auto one = wire::CreateRefused(builder, model, 0, &uid, why);
    const auto list = builder.CreateVector(std::vector(count, one));
    builder.Finish(wire::CreateShare(builder, 5, list));
    const auto payload = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
    const auto value = seal_record(RecordKind::registry_mark, payload, xxh3_64(std::as_bytes(std::span(bound))));
    return open_share(value, bound).ok();
  };
  CHECK(opens(1));
  CHECK_FALSE(opens(2));
  CHECK_FALSE(opens(100'000));
  RegistryShare share{5, std::vector<RefusedChange>(kRefusedMax, {"m", "", {}, "why"})};
  CHECK(open_share(seal(share, bound), bound).value().refused.size() == kRefusedMax);
  share.refused.push_back({"m"});
  CHECK_FALSE(open_share(seal(share, bound), bound).ok());
}

TEST_CASE("records: a share has all changes that the registry refused, and names the first ones") {
  const std::string bound = "s/1";
  const auto row = [](std::uint64_t number) {
    VersionRow version;
    version.model_name = "m" + std::to_string(number);
    version.uid = Uuid{1, number};
    return version;
  };
  Impossible before;
  for (std::uint64_t number = 1; number <= kRefusedMax + 700; ++number) before.add(row(number), "no");
  RegistryShare share{5};
  before.list(share);
  CHECK(share.refused.size() == kRefusedMax);
  CHECK(share.others.size() == 700);
  Impossible after;
  after.add(open_share(seal(share, bound), bound).value());
  for (std::uint64_t number = 1; number <= kRefusedMax + 700; ++number) REQUIRE(after.has(row(number)));
  CHECK_FALSE(after.has(row(kRefusedMax + 701)));
  RegistryShare again{5};
  after.list(again);
  CHECK(again.refused.size() == kRefusedMax);
  CHECK(again.others.size() == 700);
}

TEST_CASE("records: a purge has its author, and one without an identity is refused") {
  const RegistryPurge purge{5, {"ada", "node1"}, random_id()};
  const auto opened = open_purge(seal(purge, "p/m@1"), "p/m@1");
  REQUIRE(opened.ok());
  CHECK(opened->time_ns == 5);
  CHECK(opened->by == purge.by);
  CHECK(opened->uid == purge.uid);
  CHECK_FALSE(open_purge(seal(purge, "p/m@1"), "p/m@2").ok());
  CHECK_FALSE(open_purge(seal(RegistryPurge{5}, "p/m@1"), "p/m@1").ok());
}

TEST_CASE("records: intact records with impossible facts are refused") {
  auto refused = [](auto change) {
    MirroredVersion version = sample();
    change(version);
    auto opened = open_version(seal(version, "k"), "k");
    return !opened.ok() && opened.error().code == Errc::corrupt;
  };
  CHECK(refused([](auto& v) { v.version.publisher = "somebody"; }));
  CHECK(refused([](auto& v) { v.version.by.user = "a\nb"; }));
  CHECK(refused([](auto& v) { v.version.uid = {}; }));
  CHECK(refused([](auto& v) { v.version.message = "\x1b[2J"; }));
  CHECK(refused([](auto& v) { v.version.message = std::string(limits::kMessageMax + 1, 'a'); }));
  const std::string long_text(limits::kSourceTextMax + 1, 'a');
  for (std::string Provenance::*text : {&Provenance::endpoint, &Provenance::repository, &Provenance::revision,
                                        &Provenance::commit, &Provenance::access})
    for (const std::string& bad : {std::string("\x1b[2J"), long_text})
      CHECK(refused([&](auto& v) { v.version.source.*text = bad; }));
  CHECK(refused([](auto& v) { v.version.source.commit = "../../etc"; }));
  CHECK(refused([](auto& v) { v.version.source.access = "secret"; }));
  CHECK(refused([](auto& v) { v.version.source.listed_ns = limits::kTimeNsMax + 1; }));
  CHECK(refused([](auto& v) { v.version.source.left_out = ~0ULL; }));
  CHECK(refused([](auto& v) { v.version.source.urls = {"https://a\nb"}; }));
  CHECK(refused([&](auto& v) { v.version.source.urls = {long_text}; }));
  CHECK(refused([](auto& v) { v.version.source.urls.resize(limits::kSourceUrlsMax + 1); }));
  CHECK(refused([](auto& v) { v.version.metrics = {{"a\nb", "1"}}; }));
  CHECK(refused([](auto& v) { v.version.metrics.resize(limits::kMetricsMax + 1); }));
  CHECK(refused([](auto& v) { v.version.metrics = {{"", "1"}}; }));
  CHECK(refused([](auto& v) { v.version.metrics = {{"a", "1"}, {"a", "2"}}; }));
  CHECK(refused([](auto& v) { v.version.described_ns = limits::kTimeNsMax + 1; }));
  CHECK(refused([](auto& v) { v.version.parents[0].model = "../../etc"; }));
  CHECK(refused([](auto& v) { v.version.parents[0].number = 0; }));
  CHECK(refused([](auto& v) { v.version.parents.resize(limits::kParentsMax + 1, v.version.parents[0]); }));
  CHECK(refused([](auto& v) { v.version.elsewhere = {"\xff"}; }));
  CHECK(refused([](auto& v) { v.version.logical_bytes = ~0ULL; }));
  CHECK(refused([](auto& v) { v.tree_nodes = ~0ULL; }));
  CHECK(refused([](auto& v) { v.tree_nodes = 0; }));
  CHECK(refused([](auto& v) { v.packs.resize(limits::kRegistryPacksMax + 1); }));
  CHECK_FALSE(open_head(seal(RegistryHead{0, 0}, "k"), "k").ok());
  CHECK_FALSE(open_tag(seal(RegistryTag{limits::kVersionNumberMax + 1, 0}, "k"), "k").ok());
  for (const Author& by : {Author{"\x1b[2J", ""}, Author{"a", "two\nlines"}, Author{std::string(257, 'a'), ""}}) {
    CHECK_FALSE(open_tag(seal(RegistryTag{1, 1, by}, "k"), "k").ok());
    RegistryTombstone tombstone{sample(), 77};
    tombstone.version.removed_by = by;
    CHECK_FALSE(open_tombstone(seal(tombstone, "k"), "k").ok());
  }
  CHECK_FALSE(open_member(seal(Member{"", "\n", "", "", 0}, "k"), "k").ok());
  const ClaimHolder holder{kNode, "host", 9};
  const KnownNode node{"", "host", "ofi+tcp://10.0.0.1:7", 5, 6, false, 7};
  CHECK(open_node(seal(node, "k/1"), "k/1").value() == node);
  CHECK_FALSE(open_node(seal(node, "k/1"), "k/2").ok());
  CHECK_FALSE(open_node(seal(KnownNode{"", "\n"}, "k"), "k").ok());
  CHECK(open_claim(seal(holder, "c/1"), "c/1").value() == holder);
  CHECK_FALSE(open_claim(seal(holder, "c/1"), "c/2").ok());
  CHECK_FALSE(open_claim(seal(ClaimHolder{"host", "host", 9}, "k"), "k").ok());
  CHECK_FALSE(open_claim(seal(ClaimHolder{kNode, "\n", 9}, "k"), "k").ok());
  CHECK_FALSE(open_member(seal(Member{"", "", "", "", 0, "\x1b[2J"}, "k"), "k").ok());
  CHECK_FALSE(
      open_member(seal(Member{"", "", "", "", 0, std::string(limits::kEndpointAddressMax + 1, 'a')}, "k"), "k").ok());
  for (const std::uint32_t format : {kRegistryFormat - 1, kRegistryFormat + 1}) {
    const Error other = open_meta(seal(RegistryMeta{format, kNode, 0}, "meta"), "meta").error();
    CHECK(other.code == Errc::unsupported);
    CHECK(other.message ==
          fmt::format("registry key meta: expected a cluster of format {}, got {}: export with the old "
                      "version, import with the new one",
                      kRegistryFormat, format));
  }
}
