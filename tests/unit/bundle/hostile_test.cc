// Bundles that are damaged or forged change nothing.
#include <doctest/doctest.h>

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "bundle/tar_writer.h"
#include "format/tar_header.h"
#include "two_sites.h"

namespace weft::testing {
namespace {

namespace fs = std::filesystem;

struct Hostile : TwoSites {
  std::string whole;
  std::string before = to.state();

  Hostile() {
    BundleOptions options;
    options.all = true;
    whole = read_text(created(options));
  }

  void check_refused(const std::string& path) {
    const auto refused = import(path);
    REQUIRE_FALSE(refused.ok());
    CHECK_MESSAGE((refused.error().code == Errc::corrupt || refused.error().code == Errc::invalid ||
                   refused.error().code == Errc::unsupported),
                  refused.error().message);
    CHECK(to.state() == before);
    CHECK(fs::is_empty(to.dir / "store/tmp"));
  }
  void check_refused_bytes(const std::string& bytes) {
    write_file(place / "bad.weft", bytes);
    check_refused(place / "bad.weft");
  }
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the members of a tar: name and bytes.
std::vector<std::pair<std::string, std::string>> members_in(const std::string& tar) {
  std::vector<std::pair<std::string, std::string>> members;
  for (std::size_t at = 0; at + kTarBlock <= tar.size();) {
    std::array<std::byte, kTarBlock> block;
    std::memcpy(block.data(), tar.data() + at, kTarBlock);
    const auto header = must(parse_tar_header(block));
    if (!header) break;
    members.emplace_back(header->name, tar.substr(at + kTarBlock, header->size));
    at += kTarBlock + (header->size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  return members;
}

std::string tar_of(const std::vector<std::pair<std::string, std::string>>& members) {
  TarWriter writer(0);
  std::string tar;
  for (const auto& [name, bytes] : members) {
    tar += text_of(writer.begin(name, bytes.size()));
    tar += bytes;
    writer.count(bytes.size());
  }
  return tar + text_of(writer.end());
}

TEST_CASE("a bundle that is cut off anywhere is refused") {
  Hostile s;
  for (std::size_t size = 0; size + 2 * kTarBlock < s.whole.size(); size += 1 + s.whole.size() / 40)
    s.check_refused_bytes(s.whole.substr(0, size));
}

TEST_CASE("a flipped bit in any member is refused") {
  Hostile s;
  for (std::size_t at = kTarBlock + 20; at + 3 * kTarBlock < s.whole.size(); at += 1 + s.whole.size() / 40) {
    std::string bytes = s.whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    write_file(s.place / "bad.weft", bytes);
    const std::string before = s.to.state();
    const auto report = s.import(s.place / "bad.weft");
    if (report.ok()) continue;  // the bit is in padding, which has no meaning
    CHECK(s.to.state() == before);
  }
  for (const auto& [name, bytes] : members_in(s.whole)) {
    auto members = members_in(s.whole);
    for (auto& member : members)
      if (member.first == name) member.second.back() = static_cast<char>(member.second.back() ^ 1);
    Hostile fresh;
    fresh.check_refused_bytes(tar_of(members));
  }
}

TEST_CASE("members that are missing, twice, renamed, of another size or behind the end are refused") {
  Hostile s;
  const auto members = members_in(s.whole);
  CHECK(tar_of(members).size() == s.whole.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto changed = members;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    s.check_refused_bytes(tar_of(changed));
    changed = members;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), members[i]);
    s.check_refused_bytes(tar_of(changed));
    changed = members;
    changed[i].first = "../" + changed[i].first;
    s.check_refused_bytes(tar_of(changed));
    changed = members;
    changed[i].second += "x";
    s.check_refused_bytes(tar_of(changed));
  }
  auto more = members;
  more.emplace_back("etc/passwd", "x");
  s.check_refused_bytes(tar_of(more));
  CHECK_FALSE(fs::exists(s.to.dir / "etc"));
}

TEST_CASE("a version with the identity of another model's version gets its own") {
  Hostile s;
  write_model(s.to.dir / "mine", 77);
  const VersionRow mine = s.to.publish({s.to.dir / "mine"}, "mine").outcome.version;
  auto members = members_in(s.whole);
  BundleList list = must(decode_bundle_list(std::as_bytes(std::span(members[0].second)), "bundle"));
  list.versions.back().row.uid = mine.uid;
  members[0].second = text_of(encode_bundle_list(list));
  write_file(s.place / "forged.weft", tar_of(members));
  CHECK(must(s.import(s.place / "forged.weft")).imported == 3);
  const std::set<Uuid> identities = {mine.uid, must(s.to.resolve("bert@1")).uid, must(s.to.resolve("bert@2")).uid,
                                     must(s.to.resolve("org/other@1")).uid};
  CHECK(identities.size() == 4);
  CHECK(must(s.import(s.place / "forged.weft")).known == 3);
  s.check_sound();
}

TEST_CASE("a bundle whose blobs are nowhere is refused before its blobs are read") {
  Hostile s;
  BundleOptions options;
  options.specs = {"bert@1"};
  const std::string first = s.place / "first.weft", second = s.place / "second.weft";
  must(s.create(options, first));
  options = {};
  options.all = true;
  options.since = first;
  must(s.create(options, second));
  const std::string whole = read_text(second);
  write_file(s.place / "cut.weft", whole.substr(0, whole.size() - 3 * kTarBlock));
  CHECK(s.import(s.place / "cut.weft").error().code == Errc::absent);
  CHECK(s.to.state() == s.before);
}

TEST_CASE("a list or a member of an impossible size is refused before memory is taken for it") {
  Hostile s;
  TarWriter writer(0);
  s.check_refused_bytes(text_of(writer.begin("weft-bundle", UINT64_MAX / 2)));
  s.check_refused_bytes(text_of(TarWriter(0).begin("weft-bundle", 1ULL << 40U)));
  s.check_refused_bytes("no tar");
  s.check_refused_bytes("");
}

TEST_CASE("a directory with links, other types or other sizes is refused") {
  Hostile s;
  BundleOptions options;
  options.all = true;
  options.directory = true;
  const std::string good = s.created(options, "good");
  const auto damaged = [&](const std::string& member, const std::function<void(const fs::path&)>& change) {
    fs::remove_all(s.place / "bad");
    fs::copy(good, s.place / "bad", fs::copy_options::recursive);
    change(fs::path(s.place / "bad") / member);
    s.check_refused(s.place / "bad");
  };
  const std::string blobs = "blobs/0";
  damaged(blobs, [](const fs::path& path) { fs::remove(path); });
  damaged(blobs, [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); });
  damaged(blobs, [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) + 1); });
  damaged(blobs, [&](const fs::path& path) {
    fs::remove(path);
    fs::create_symlink(good + "/blobs/0", path);
  });
  damaged("weft-bundle", [](const fs::path& path) {
    fs::remove(path);
    fs::create_directory(path);
  });
  damaged("blobs", [&](const fs::path& path) {
    fs::remove_all(path);
    fs::create_symlink(good + "/blobs", path);
  });
}

}  // namespace
}  // namespace weft::testing
