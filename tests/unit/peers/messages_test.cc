#include "peers/messages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>

#include "base/limits.h"
#include "base/sha256.h"
#include "testing.h"
#include "weft/cluster/exchange.h"

namespace weft::testing {
namespace {

Digest digest_of(std::uint64_t seed) {
  return sha256(random_bytes(32, seed));
}

ChunkRun run_of(std::uint64_t length, std::uint64_t first, std::uint64_t count) {
  return {{length, digest_of(length)}, first, count};
}

bool same(const ChunkRun& a, const ChunkRun& b) {
  return a.id == b.id && a.first == b.first && a.count == b.count;
}

}  // namespace

TEST_CASE("a request survives encoding") {
  const auto manifest = decode_request(encode_request(AskManifest{digest_of(1), 17}));
  REQUIRE(manifest.ok());
  CHECK(std::get<AskManifest>(*manifest).digest == digest_of(1));
  CHECK(std::get<AskManifest>(*manifest).offset == 17);
  const ChunkRun part = run_of(5 * kDigestChunk + 1, 2, 3);
  CHECK(same(std::get<AskChunks>(decode_request(encode_request(AskChunks{part})).value()).run, part));
  CHECK(std::get<AskHolders>(decode_request(encode_request(AskHolders{digest_of(2)})).value()).manifest ==
        digest_of(2));
  const AskBytes bytes{{run_of(100, 0, 1), run_of(5 * kDigestChunk + 1, 3, 3)}};
  const auto read = std::get<AskBytes>(decode_request(encode_request(bytes)).value());
  CHECK(std::equal(read.runs.begin(), read.runs.end(), bytes.runs.begin(), bytes.runs.end(), same));
  CHECK(read.traffic == Traffic::foreground);
  const AskBytes ahead{bytes.runs, Traffic::ahead};
  CHECK(std::get<AskBytes>(decode_request(encode_request(ahead)).value()).traffic == Traffic::ahead);
  const AskBytes coded{
      bytes.runs, Traffic::foreground, {{digest_of(7), 2}, {digest_of(8), 0}}, CodingEffort::dense, true};
  const auto bases = std::get<AskBytes>(decode_request(encode_request(coded)).value());
  CHECK(bases.bases == coded.bases);
  CHECK(bases.effort == CodingEffort::dense);
  CHECK(bases.must_code);
  AskBytes rest{bytes.runs};
  rest.skip = 99;
  rest.subject = "org/bert@1: a\nb";
  const auto behind = std::get<AskBytes>(decode_request(encode_request(rest)).value());
  CHECK(behind.skip == 99);
  CHECK(behind.length() == 100 + 2 * kDigestChunk + 1 - 99);
  CHECK(behind.subject == "org/bert@1: a\\x0ab");  // newlines are escaped for the log
  for (const bool whole : {true, false}) {
    const auto said = std::get<Announce>(decode_request(encode_request(Announce{digest_of(3), whole})).value());
    CHECK(said == Announce{digest_of(3), whole});
  }
}

TEST_CASE("holders and digests survive encoding") {
  const std::vector<std::string> nodes{"one", "two"};
  CHECK(decode_holders(encode_holders(nodes)).value() == nodes);
  CHECK(decode_holders(encode_holders({})).value().empty());
  const std::vector<Digest> digests{digest_of(1), digest_of(2)};
  CHECK(decode_digests(encode_digests(digests)).value() == digests);
  CHECK(decode_digests(std::vector<std::byte>(33)).error().code == Errc::corrupt);
}

TEST_CASE("a question about a pull survives encoding, and its answer has bounds") {
  const PulledAsk ask{
      std::string(limits::kClaimDigits, 'a'), "sub/m.bin", digest_of(4), 2 * kPieceBytes, kPieceBytes, 7};
  CHECK(std::get<PulledAsk>(decode_request(encode_request(ask)).value()) == ask);
  CHECK(decode_received(encode_received(std::vector<std::uint32_t>{5}), ask).value() == std::vector<std::uint32_t>{5});
  for (const std::size_t size : {0, 3, 5, 8})
    CHECK(decode_received(std::vector<std::byte>(size), ask).error().code == Errc::corrupt);
  const auto sound = [&](std::vector<std::uint32_t> got, std::size_t bytes) {
    return check_pulled(ask, {std::move(got), std::vector<std::byte>(bytes)}).ok();
  };
  CHECK(sound({7}, 7));
  CHECK_FALSE(sound({7}, 8));
  CHECK_FALSE(sound({6}, 7));
  CHECK_FALSE(sound({kPieceBytes + 1}, 0));
  CHECK_FALSE(sound({}, 0));
  CHECK_FALSE(sound({7, 0}, 7));
}

TEST_CASE("an order about a key survives encoding, and a bad one is refused") {
  const std::string name = "0123456789abcdef";
  const std::string key(limits::kKeyFileMax, 'k');
  for (const KeyOrder& order :
       {KeyOrder{KeyStep::accept, name, key}, KeyOrder{KeyStep::use, name, {}}, KeyOrder{KeyStep::forget, name, {}}}) {
    CHECK(std::get<KeyOrder>(decode_request(encode_request(order)).value()) == order);
    CHECK(encode_request(order).size() <= kRequestBytesMax);
  }
  for (const KeyOrder& bad : {KeyOrder{KeyStep::accept, name, {}}, KeyOrder{KeyStep::accept, name, key + "k"},
                              KeyOrder{KeyStep::use, name, key}, KeyOrder{KeyStep::use, name + "0", {}},
                              KeyOrder{KeyStep::use, "0123456789abcdeg", {}}, KeyOrder{KeyStep::use, "", {}},
                              KeyOrder{static_cast<KeyStep>(0), name, {}}, KeyOrder{static_cast<KeyStep>(4), name, {}}})
    CHECK(decode_request(encode_request(bad)).error().code == Errc::invalid);
}

TEST_CASE("a question about health and a version to keep survive encoding, and bad ones are refused") {
  const AskHealth ask{std::vector<Digest>(limits::kHealthManifestsMax, digest_of(3))};
  CHECK(std::get<AskHealth>(decode_request(encode_request(ask)).value()) == ask);
  CHECK(std::get<AskHealth>(decode_request(encode_request(AskHealth{})).value()) == AskHealth{});
  CHECK(encode_request(ask).size() <= kRequestBytesMax);
  const AskHealth more{std::vector<Digest>(limits::kHealthManifestsMax + 1)};
  CHECK(decode_request(encode_request(more)).error().code == Errc::invalid);
  const KeepVersion keep{"org/bert", 7};
  CHECK(std::get<KeepVersion>(decode_request(encode_request(keep)).value()) == keep);
  for (const KeepVersion& bad : {KeepVersion{"", 1}, KeepVersion{"../m", 1}, KeepVersion{"m", 0},
                                 KeepVersion{"m", limits::kVersionNumberMax + 1}})
    CHECK(decode_request(encode_request(bad)).error().code == Errc::invalid);
}

TEST_CASE("the health of a node survives encoding, and states of other versions than the asked ones are refused") {
  const AskHealth two{std::vector<Digest>(2)};
  const PeerHealth health{1, 2, 3, 4, 5, {kStateWhole, kStateSaved | kStatePinned}};
  CHECK(decode_health(encode_health(health), two).value() == health);
  PeerHealth one = health;
  one.states.pop_back();
  CHECK(decode_health(encode_health(one), two).value() == one);
  CHECK_FALSE(decode_health(encode_health(health), AskHealth{}).ok());
  CHECK_FALSE(decode_health(encode_health(PeerHealth{}), two).ok());
  CHECK(decode_health(encode_health(PeerHealth{}), AskHealth{}).ok());
  CHECK_FALSE(decode_health({}, AskHealth{}).ok());
}

TEST_CASE("the largest request fits into one message") {
  const PulledAsk pulled{
      std::string(limits::kClaimDigits, 'a'), std::string(limits::kPathMax, 'p'), digest_of(1), 1, 0, 1};
  CHECK(encode_request(pulled).size() <= kRequestBytesMax);
  AskBytes ask;
  ask.subject = std::string(2 * kSubjectBytesMax, 's');
  for (std::size_t i = 0; i < kRunsPerRequest; ++i) ask.runs.push_back(run_of(1 + i, 0, 1));
  CHECK(encode_request(ask).size() <= kRequestBytesMax);
  ask.runs.resize(limits::kBasesPerRequestMax);
  ask.bases.assign(limits::kBasesPerRequestMax, {digest_of(1), 2});
  ask.effort = CodingEffort::sparse;
  CHECK(encode_request(ask).size() <= kRequestBytesMax);
}

TEST_CASE("requests beyond the limits are refused") {
  const auto refused = [](const PeerRequest& request) {
    const auto decoded = decode_request(encode_request(request));
    return !decoded.ok() && decoded.error().code == Errc::invalid;
  };
  CHECK(refused(AskBytes{}));
  CHECK(refused(AskBytes{{run_of(100, 0, 2)}}));
  CHECK(refused(AskBytes{{run_of(100, 1, 1)}}));
  CHECK(refused(AskBytes{{run_of(100, 0, 0)}}));
  CHECK(refused(AskBytes{{run_of(3 * kDigestChunk, 1, UINT64_MAX)}}));
  CHECK(refused(AskBytes{{run_of(0, 0, 1)}}));
  CHECK(refused(AskBytes{{run_of(UINT64_MAX, 0, 1)}}));
  CHECK(refused(AskBytes{{run_of(kSourceReadMax + 1, 0, 17)}}));
  CHECK(refused(AskBytes{std::vector<ChunkRun>(kRunsPerRequest + 1, run_of(100, 0, 1))}));
  CHECK(refused(AskBytes{{run_of(100, 0, 1)}, static_cast<Traffic>(3)}));
  CHECK(refused(AskChunks{run_of(0, 0, 1)}));
  const PulledAsk pulled{std::string(limits::kClaimDigits, 'a'), "m.bin", digest_of(1), 9, 8, 1};
  const auto refused_with = [&](auto change) {
    PulledAsk bad = pulled;
    change(bad);
    return refused(bad);
  };
  CHECK_FALSE(refused(pulled));
  CHECK(refused_with([](PulledAsk& bad) { bad.key = "../" + std::string(limits::kClaimDigits - 3, 'a'); }));
  CHECK(refused_with([](PulledAsk& bad) { bad.key.clear(); }));
  CHECK(refused_with([](PulledAsk& bad) { bad.path.clear(); }));
  CHECK(refused_with([](PulledAsk& bad) { bad.path.assign(limits::kPathMax + 1, 'p'); }));
  CHECK(refused_with([](PulledAsk& bad) { bad.size = limits::kVersionBytesMax + 1; }));
  CHECK(refused_with([](PulledAsk& bad) { bad.offset = bad.size; }));
  CHECK(refused_with([](PulledAsk& bad) { bad.length = kPulledBytesMax + 1; }));
  AskBytes skips{{run_of(100, 0, 1)}};
  skips.skip = 100;  // skips the whole chunk
  CHECK(refused(skips));
  skips.runs = {run_of(3 * kDigestChunk, 0, 3)};
  skips.skip = kDigestChunk;
  CHECK(refused(skips));
  const auto with_bases = [](std::size_t runs, std::size_t bases, std::uint8_t width, unsigned effort) {
    return AskBytes{std::vector<ChunkRun>(runs, run_of(100, 0, 1)), Traffic::foreground,
                    std::vector<AskedBase>(bases, {digest_of(1), width}), static_cast<CodingEffort>(effort), false};
  };
  CHECK(decode_request(encode_request(with_bases(2, 2, 4, 1))).ok());
  CHECK(refused(with_bases(2, 1, 4, 1)));
  CHECK(refused(with_bases(2, 3, 4, 1)));
  CHECK(refused(with_bases(2, 2, 3, 1)));
  CHECK(refused(with_bases(2, 2, 4, 0)));
  CHECK(refused(with_bases(2, 2, 4, 3)));
  CHECK(refused(with_bases(2, 0, 4, 1)));
  CHECK(refused(with_bases(limits::kBasesPerRequestMax + 1, limits::kBasesPerRequestMax + 1, 4, 1)));
  AskBytes must = with_bases(2, 0, 0, 0);
  must.must_code = true;
  CHECK(refused(must));
  CHECK(!decode_request({}).ok());
  CHECK(!decode_request(std::vector<std::byte>(64)).ok());
}

TEST_CASE("holders beyond the limits are refused") {
  const auto refused = [](const std::vector<std::string>& nodes) {
    return decode_holders(encode_holders(nodes)).error().code == Errc::invalid;
  };
  std::vector<std::string> most;
  for (std::size_t i = 0; i < limits::kHoldersMax; ++i)
    most.push_back(std::to_string(1000 + i) + std::string(limits::kNodeIdMax - 4, 'n'));
  CHECK(decode_holders(encode_holders(most)).value() == most);
  most.emplace_back("one more");
  CHECK(refused(most));
  CHECK(refused({std::string(limits::kNodeIdMax + 1, 'n')}));
  CHECK(refused({""}));
  CHECK(refused({"one", "one"}));
}

TEST_CASE("sizes of sent chunks are bounded by the chunk, and coded chunks need a base") {
  const AskBytes ask{{run_of(100, 0, 1), run_of(2 * kDigestChunk + 1, 1, 2)},
                     Traffic::foreground,
                     {{digest_of(1), 0}, {digest_of(2), 2}},
                     CodingEffort::sparse,
                     false};
  const auto decoded = [&ask](std::vector<std::uint32_t> sizes) { return decode_given(encode_given(sizes), ask); };
  const auto good = decoded({100, 77, 1});
  REQUIRE(good.ok());
  CHECK(good->coded_bytes == 77);
  CHECK(good->plain_bytes == 101);
  CHECK(good->head_bytes() == 12);
  for (const std::vector<std::uint32_t>& sizes : std::vector<std::vector<std::uint32_t>>{
           {}, {100, 77}, {99, 77, 1}, {101, 77, 1}, {100, 0, 1}, {100, 77, 2}, {100, kDigestChunk + 1, 1}, {0, 77, 1}})
    CHECK(decoded(sizes).error().code == Errc::corrupt);
}

TEST_CASE("a message that is cut short or changed is refused or another message") {
  const auto whole = encode_request(AskBytes{{run_of(100, 0, 1), run_of(5 * kDigestChunk, 0, 5)}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    static_cast<void>(decode_request(std::span(whole).first(size)));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto changed = whole;
    changed[at] ^= std::byte{0xff};
    static_cast<void>(decode_request(changed));
    static_cast<void>(decode_holders(changed));
  }
}

TEST_CASE("misaligned runs are refused") {
  // The input misaligned_runs of peers_fuzz.
  alignas(16) constexpr std::uint8_t kBytes[] = {
      16, 0, 0, 0, 0, 0, 0, 0, 8, 0, 14, 0,  7, 0, 8, 0, 8, 0, 0, 0,   0, 0, 0, 3, 12, 0, 0, 0, 0, 0, 6, 0, 8,
      0,  4, 0, 6, 0, 0, 0, 8, 0, 0, 0,  0,  0, 0, 0, 2, 0, 0, 0, 100, 0, 0, 0, 0, 0,  0, 0, 7, 7, 7, 7, 7, 7,
      7,  7, 7, 7, 7, 7, 7, 7, 7, 7, 7,  7,  7, 7, 7, 7, 7, 7, 7, 7,   7, 7, 7, 7, 7,  7, 0, 0, 0, 0, 0, 0, 0,
      0,  1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  48, 0, 0, 0, 0, 0, 7, 7, 7,   7, 7, 7, 7, 7,  7, 7, 7, 7, 7, 7, 7, 7,
      7,  7, 7, 7, 7, 7, 7, 7, 7, 7, 7,  7,  7, 7, 7, 7, 1, 0, 0, 0,   0, 0, 0, 0, 2,  0, 0, 0, 0, 0, 0, 0};
  const auto request = decode_request(std::as_bytes(std::span(kBytes)));
  REQUIRE(!request.ok());
  CHECK(request.error().message.find("alignment") != std::string::npos);
}

}  // namespace weft::testing
