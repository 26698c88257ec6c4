#include <doctest/doctest.h>
#include <fmt/core.h>

#include <random>

#include "allocation.h"
#include "base/limits.h"
#include "builders.h"
#include "format/zip_directory.h"

using namespace weft;
using namespace weft::testing;

namespace {

ZipDirectory read(std::string_view archive) {
  MemorySource source(archive);
  auto members = ZipDirectory::read(source);
  if (!members.ok()) FAIL(members.error().message);
  return *std::move(members);
}

Error refused(std::string_view archive, Errc code = Errc::invalid) {
  MemorySource source(archive);
  auto members = ZipDirectory::read(source);
  if (members.ok()) FAIL("a malformed archive was read");
  CHECK(members.error().code == code);
  CHECK(members.error().message.find('\n') == std::string::npos);
  return members.error();
}

Error refused(const std::vector<ZipPart>& parts, Errc code = Errc::invalid) {
  return refused(zip_file(parts), code);
}

// Returns the bytes of each member of the archive.
std::vector<std::string> bytes_of(std::string_view archive) {
  std::vector<std::string> out;
  const ZipDirectory directory = read(archive);
  for (const ZipMember& member : directory.members())
    out.emplace_back(archive.substr(member.data.offset, member.data.length));
  return out;
}

std::string field(unsigned tag, const std::string& bytes) {
  return le16(tag) + le16(bytes.size()) + bytes;
}

std::string patched(std::string archive, std::size_t at, std::string_view bytes) {
  return archive.replace(at, bytes.size(), bytes);
}

const std::vector<ZipPart> kTwo = {{"a", "first"}, {"d/b", "second", 8}};

}  // namespace

TEST_CASE("zip: members are known by name, with the places of their bytes") {
  const std::string archive = zip_file({{"a", "first"}, {"d/b", "second", 8}, {"empty", ""}, {"d/", ""}});
  const ZipDirectory directory = read(archive);
  REQUIRE(directory.members().size() == 4);
  const ZipMember& a = directory.members()[0];
  CHECK(a.name == "a");
  CHECK(a.stored);
  CHECK(archive.substr(a.data.offset, a.data.length) == "first");
  REQUIRE(directory.find("d/b") == &directory.members()[1]);
  CHECK_FALSE(directory.find("d/b")->stored);
  CHECK(directory.find("empty")->data.length == 0);
  CHECK(directory.find("b") == nullptr);
  CHECK(directory.find("") == nullptr);
  CHECK(read(zip_file({})).members().empty());
}

TEST_CASE("zip: members may be listed in another order than they lie in, with gaps between them") {
  const std::string first = zip_members({{"a", "first"}}) + "a descriptor", second = zip_members({{"b", "second"}});
  const std::string entries =
      zip_entries({{.name = "b", .data = "second", .header = static_cast<std::uint32_t>(first.size())},
                   {.name = "a", .data = "first", .header = 0}});
  const std::string archive = first + second + entries + zip_end(2, entries.size(), first.size() + second.size());
  CHECK(bytes_of(archive) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("zip: sizes may follow the bytes, and headers may have fields") {
  CHECK(bytes_of(zip_file({{.name = "a",
                            .data = "first",
                            .flags = 8,
                            .local_extra = field(0x4246, std::string(40, 'Z')),
                            .extra = field(7, "x"),
                            .local_packed = 0,
                            .local_size = 0}})) == std::vector<std::string>{"first"});
  CHECK(says(refused({{.name = "a", .data = "first", .local_packed = 0, .local_size = 0}}), "got another size"));
  CHECK(says(refused({{.name = "a", .data = "first", .flags = 8, .local_packed = 4, .local_size = 0}}),
             "got another size"));
}

TEST_CASE("zip: zip64 in entries, in local headers and at the end") {
  const std::string sizes = field(1, le64(5) + le64(5));
  const ZipPart wide_local{
      .name = "a", .data = "first", .local_extra = sizes, .local_packed = UINT32_MAX, .local_size = UINT32_MAX};
  CHECK(bytes_of(zip_file({wide_local})) == std::vector<std::string>{"first"});
  ZipPart wide = wide_local;
  wide.extra = field(9, "other") + field(1, le64(5) + le64(5) + le64(0));
  wide.packed = wide.size = wide.header = UINT32_MAX;
  CHECK(bytes_of(zip_file({wide})) == std::vector<std::string>{"first"});
  const std::string members = zip_members(kTwo), entries = zip_entries(kTwo);
  const std::string body = members + entries;
  CHECK(bytes_of(body + zip64_end(2, entries.size(), members.size(), body.size())).size() == 2);

  wide.extra = field(1, le64(5) + le64(5));
  CHECK(says(refused({wide}), "member \"a\": its zip64 field is too short"));
  wide.extra = field(9, "other") + le16(1) + le16(24) + le64(5);
  CHECK(says(refused({wide}), "member \"a\": its zip64 field is missing"));
  wide.extra = field(1, le64(1ULL << 63U) + le64(1ULL << 63U) + le64(0));
  CHECK(says(refused({wide}), "expected its bytes before byte 56"));
  wide.local_extra = field(1, le64(1ULL << 63U) + le64(1ULL << 63U));
  CHECK(says(refused({wide}), "expected its bytes before byte 56"));
  wide.extra = field(1, le64(5) + le64(5) + le64(UINT64_MAX));
  CHECK(says(refused({wide}), "expected its header before the zip directory at"));
  CHECK(says(refused(body + zip64_end(2, entries.size(), members.size(), body.size() + 1)), "zip64"));
  CHECK(says(refused(body + zip64_end(2, entries.size(), members.size(), UINT64_MAX)), "zip64"));
  CHECK(says(refused(body + zip64_end(1ULL << 60U, entries.size(), members.size(), body.size()), Errc::unsupported),
             "expected at most 262144 members"));
  CHECK(says(refused(body + zip64_end(2, UINT64_MAX, members.size(), body.size()), Errc::unsupported),
             "bytes of zip directory"));
  CHECK(says(refused(body + zip64_end(2, entries.size(), UINT64_MAX, body.size())), "zip directory that ends at"));
  std::string other = body + zip64_end(2, entries.size(), members.size(), body.size());
  CHECK(says(refused(patched(other, other.size() - 12, le16(3))), "expected the zip64 record to agree"));
}

TEST_CASE("zip: comments, false end records, and bytes at the end") {
  CHECK(bytes_of(zip_file(kTwo, "a comment")).size() == 2);
  CHECK(bytes_of(zip_file(kTwo, std::string(0xffff, 'c'))).size() == 2);
  CHECK(says(refused(zip_file(kTwo, "PK\5\6 is no record")), "got other bytes there"));
  CHECK(says(refused(zip_file(kTwo, zip_end(0, 0, 0))), "zip directory that ends at"));
  CHECK(says(refused(zip_file(kTwo) + "x"), "expected the zip archive to end after its directory"));
  CHECK(says(refused("before" + zip_file(kTwo)), "zip directory that ends at"));
  CHECK(says(refused(""), "expected a zip archive, got 0 bytes"));
  CHECK(says(refused(std::string(100, 'x')), "expected a directory at the end"));
}

TEST_CASE("zip: an archive that two readers may understand in two ways is refused") {
  CHECK(says(refused({{"a", "1"}, {"b", "2"}, {"a", "3"}}), "member \"a\": expected each name once, got it twice"));
  CHECK(says(refused({{.name = "a", .data = "1", .local_name = "b"}}), "got another name"));
  CHECK(says(refused({{.name = "a", .data = "1", .local_name = "aa"}}), "got another name"));
  CHECK(says(refused({{.name = "a", .data = "1", .local_method = 8}}), "got another method"));
  CHECK(says(refused({{.name = "a", .data = "12", .local_packed = 1}}), "got another size"));
  CHECK(says(refused({{.name = "a", .data = "12", .size = 3}}), "expected one size of stored bytes, got 2 and 3"));
  CHECK(says(refused({{"a", "1"}, {.name = "a2", .data = "2", .header = 0}}), "expected its bytes before byte 0"));
  CHECK(says(refused({{"", "1"}}), "expected a name of each member"));
  // One member within the bytes of another, and two entries for one local header.
  const std::string inner = zip_members({{"b", "2"}});
  const std::string outer = zip_members({{"a", inner}});
  const std::string entries =
      zip_entries({{"a", inner}, {.name = "b", .data = "2", .header = static_cast<std::uint32_t>(31)}});
  CHECK(says(refused(outer + entries + zip_end(2, entries.size(), outer.size())),
             "member \"a\": expected its bytes before byte 31"));
  const std::string archive = zip_file(kTwo);
  const std::size_t entry = archive.find("PK\1\2");
  CHECK(says(refused(patched(archive, entry + 16, le32(7))), "got another checksum"));
  CHECK(says(refused(patched(archive, entry, "PK\1\3")), "expected an entry of the zip directory"));
  CHECK(says(refused(patched(archive, 0, "PK\3\5")), "got another kind of record"));
  CHECK(says(refused(patched(archive, archive.size() - 12, le16(1)), Errc::unsupported), "a part of a split one"));
  CHECK(says(refused(patched(archive, archive.size() - 14, le16(1) + le16(1))), "of zip directory for 1 members"));
  CHECK(says(refused(patched(archive, archive.size() - 14, le16(3) + le16(3))), "zip directory"));
}

TEST_CASE("zip: encrypted and split archives are unsupported") {
  for (const unsigned flag : {1U, 0x40U, 0x2000U})
    CHECK(says(refused({{.name = "a", .data = "1", .flags = flag}}, Errc::unsupported), "got encrypted ones"));
  const std::string archive = zip_file(kTwo);
  CHECK(says(refused(patched(archive, archive.size() - 18, le16(1)), Errc::unsupported), "a part of a split one"));
  CHECK(says(refused(patched(archive, archive.find("PK\1\2") + 34, le16(1)), Errc::unsupported), "another disk"));
}

TEST_CASE("zip: no reader inflates a member, however large it claims to be") {
  // 10 MB that claim to be 10 GB, as the member that each format reads first.
  const std::string data(10'000'000, 'd');
  const std::string sizes = le64(10'000'000'000) + le64(data.size());
  for (const auto& file :
       std::vector<std::pair<std::string, std::string>>{{"m.npz", "w.npy"},
                                                        {"m.pt", "m/data.pkl"},
                                                        {"m.keras", "model.weights.h5"},
                                                        {"m.pt2", "m/data/weights/model_weights_config.json"}}) {
    CAPTURE(file.first);
    MemorySource source(zip_file({{.name = file.second,
                                   .data = data,
                                   .method = 8,
                                   .local_extra = field(1, sizes),
                                   .extra = field(1, sizes + le64(0)),
                                   .local_packed = UINT32_MAX,
                                   .local_size = UINT32_MAX,
                                   .packed = UINT32_MAX,
                                   .size = UINT32_MAX,
                                   .header = UINT32_MAX}}));
    reset_allocations();
    const Layout layout = must(parse_file("place", file.first, source));
    CHECK(allocations().peak < 256U << 10U);
    CHECK(source.bytes_read() < 256U << 10U);
    CHECK(layout.tensors.empty());
    CHECK(layout.cuts.size() <= 1);
    CHECK((!layout.hidden.empty() || !layout.metadata.empty()));
  }
}

TEST_CASE("zip: 70,000 members are read") {
  std::vector<ZipPart> parts;
  for (int i = 0; i < 70'000; ++i) parts.push_back({std::to_string(i), "x"});
  const std::string members = zip_members(parts), entries = zip_entries(parts);
  const std::string body = members + entries;
  const ZipDirectory directory = read(body + zip64_end(parts.size(), entries.size(), members.size(), body.size()));
  CHECK(directory.members().size() == 70'000);
  CHECK(directory.find("69999") == &directory.members().back());
}

TEST_CASE("zip: entries that name one local header are refused before it is read") {
  const std::string name(1000, 'n');
  std::vector<ZipPart> parts;
  for (int i = 0; i < 1000; ++i) parts.push_back({.name = name, .data = "", .header = 0});
  const std::string members = zip_members({{.name = name, .data = "", .local_extra = std::string(60'000, 'x')}});
  const std::string entries = zip_entries(parts);
  const std::string archive = members + entries + zip_end(parts.size(), entries.size(), members.size());
  MemorySource source(archive);
  reset_allocations();
  const auto read = ZipDirectory::read(source);
  CHECK_FALSE(read.ok());
  CHECK(says(read.error(), "expected its bytes before byte 0"));
  CHECK(allocations().total <= 4 * archive.size());
}

TEST_CASE("zip: no two members have one name") {
  const std::string members = zip_members({{"a", "1"}, {"a", "2"}});
  const std::string entries =
      zip_entries({{"a", "1"}, {.name = "a", .data = "2", .header = static_cast<std::uint32_t>(members.size() / 2)}});
  CHECK(says(refused(members + entries + zip_end(2, entries.size(), members.size())), "got it twice"));
}

TEST_CASE("zip: a comment may have a false end record, and no other bytes may follow the end") {
  const std::string two = zip_file(kTwo);
  const std::string false_end = zip_end(0, 0, 0);
  // Python's zipfile and PyTorch take the last record for the end, so two readers could see two directories.
  refused(zip_file(kTwo, false_end + "more"));
  refused(zip_file(kTwo, false_end));
  refused(two + two.substr(0, 30));
  CHECK(bytes_of(zip_file(kTwo, "PK\5")) == bytes_of(two));
}

TEST_CASE("zip: truncated and changed archives are read or refused, and no place leaves the file") {
  const std::string archive = zip_file({{"a", std::string(64, 'x')}, {"b", "second", 8}}, "comment");
  for (std::size_t length = 0; length < archive.size(); ++length) refused(archive.substr(0, length));
  const std::uint64_t seed = test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = archive;
    for (std::uint64_t changes = 1 + random() % 3; changes-- > 0;)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    MemorySource source(bytes);
    const auto members = ZipDirectory::read(source);
    if (!members.ok()) continue;
    for (const ZipMember& member : members->members()) CHECK(member.data.offset + member.data.length <= bytes.size());
  }
}

TEST_CASE("zip: a small file cannot make the reader allocate much") {
  const std::string archive = zip_file(kTwo);
  for (const std::string& bytes : {patched(archive, archive.size() - 14, le16(0xffff) + le16(0xffff)),
                                   patched(archive, archive.size() - 10, le32(UINT32_MAX)),
                                   patched(archive, archive.find("PK\1\2") + 28, le16(0xffff) + le16(0xffff)),
                                   "PK\3\4" + zip64_end(1U << 18U, 46ULL << 18U, 0, 4)}) {
    MemorySource source(bytes);
    reset_allocations();
    const auto members = ZipDirectory::read(source);
    const Allocations used = allocations();
    CHECK_FALSE(members.ok());
    CHECK(used.largest <= 4096);
  }
}
