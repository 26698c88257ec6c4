// The list of a bundle, and the headers of a tar.
#include <doctest/doctest.h>

#include "bundle/members.h"
#include "bundle/tar_writer.h"
#include "diskformat/bundle_list.h"
#include "diskformat/uuid.h"
#include "format/tar_header.h"
#include "testing.h"

namespace weft::testing {
namespace {

ContentId blob(std::uint8_t n) {
  ContentId id{n * 100ULL, {}};
  id.root.bytes[0] = n;
  return id;
}

BundledVersion version(const std::string& model, std::uint64_t number, std::uint8_t manifest) {
  BundledVersion version;
  version.row.model_name = model;
  version.row.number = number;
  version.row.uid = {number, manifest};
  version.row.time_ns = 1'000;
  version.row.message = "a message";
  version.row.manifest.bytes[0] = manifest;
  version.manifest_bytes = 10;
  return version;
}

BundleList list() {
  BundleList list;
  list.uuid = random_uuid();
  list.created_ns = 5;
  list.versions = {version("a", 1, 1), version("a", 2, 2)};
  list.versions[0].blobs = {blob(1), blob(2)};
  list.versions[1].blobs = {blob(3)};
  list.tags = {{"a", "best", 2, 7}};
  return list;
}

Result<BundleList> again(const BundleList& list) {
  return decode_bundle_list(encode_bundle_list(list), "test");
}

TEST_CASE("the list survives encoding") {
  const BundleList before = list();
  const BundleList after = must(again(before));
  CHECK(after.uuid == before.uuid);
  CHECK(after.since.empty());
  CHECK(after.created_ns == 5);
  REQUIRE(after.versions.size() == 2);
  CHECK(after.versions[0].row.message == "a message");
  CHECK(after.versions[0].blobs == before.versions[0].blobs);
  CHECK(after.versions[1].blobs == before.versions[1].blobs);
  REQUIRE(after.tags.size() == 1);
  CHECK(after.tags[0].name == "best");
  const auto members = members_of(after);
  REQUIRE(members.size() == 4);
  CHECK(members[2].name == "blobs/0");
  CHECK(members[2].size == 300);
}

TEST_CASE("a list that contradicts itself is refused") {
  const auto refused = [](const std::function<void(BundleList&)>& change) {
    BundleList bad = list();
    change(bad);
    const auto decoded = again(bad);
    REQUIRE_FALSE(decoded.ok());
    CHECK_MESSAGE(decoded.error().code == Errc::corrupt, decoded.error().message);
  };
  refused([](BundleList& bad) { bad.uuid = "x"; });
  refused([](BundleList& bad) { bad.since = "../x"; });
  refused([](BundleList& bad) { bad.created_ns = UINT64_MAX; });
  refused([](BundleList& bad) { bad.versions[1].row.number = 1; });
  refused([](BundleList& bad) { bad.versions[1].row.number = 0; });
  refused([](BundleList& bad) { bad.versions[1].row.uid = {}; });
  refused([](BundleList& bad) { bad.versions[1].row.uid = bad.versions[0].row.uid; });
  refused([](BundleList& bad) { bad.versions[1].row.model_name = "../a"; });
  refused([](BundleList& bad) { bad.versions[1].row.manifest = bad.versions[0].row.manifest; });
  refused([](BundleList& bad) { bad.versions[1].row.removed = true; });
  refused([](BundleList& bad) { bad.versions[1].row.parents = {{"a", 2}}; });
  refused([](BundleList& bad) { bad.versions[1].row.time_ns = UINT64_MAX; });
  refused([](BundleList& bad) { bad.versions[1].manifest_bytes = UINT64_MAX; });
  refused([](BundleList& bad) { bad.versions[1].blobs = {blob(1)}; });
  refused([](BundleList& bad) { bad.versions[1].blobs = {ContentId{}}; });
  refused([](BundleList& bad) { bad.versions[1].blobs[0].length = UINT64_MAX; });
  refused([](BundleList& bad) { bad.tags[0].number = 3; });
  refused([](BundleList& bad) { bad.tags[0].number = 0; });
  refused([](BundleList& bad) { bad.tags.push_back(bad.tags[0]); });
}

TEST_CASE("a header has the size of its member, also one beyond eight GiB") {
  for (const std::uint64_t size : {0ULL, 1ULL, (1ULL << 33U) - 1, 1ULL << 33U, 1ULL << 50U}) {
    TarWriter writer(1'000'000'000'000);
    const auto blocks = writer.begin("blobs/12", size);
    REQUIRE(blocks.size() % kTarBlock == 0);
    PaxFacts facts;
    auto header = must(parse_tar_header(blocks.first<kTarBlock>()));
    REQUIRE(header);
    if (header->type == 'x') {
      const auto records = blocks.subspan(kTarBlock, header->size);
      must(parse_pax({reinterpret_cast<const char*>(records.data()), records.size()}, facts));
      header = must(parse_tar_header(blocks.last<kTarBlock>()));
    }
    REQUIRE(header);
    CHECK(header->name == "blobs/12");
    CHECK(header->type == '0');
    CHECK(facts.size.value_or(header->size) == size);
  }
}

}  // namespace
}  // namespace weft::testing
