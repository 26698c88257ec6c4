// Answers of a hub, whole and hostile.
#include "hub/hub_listing.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>

#include "base/limits.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

const std::string kWhere = "hf:org/bert";
const std::string kSha1(40, 'a');
const std::string kSha256(64, 'b');

std::string file_row(const std::string& path, const std::string& size = "7", const std::string& more = "") {
  return fmt::format(R"({{"type":"file","path":"{}","size":{},"oid":"{}"{}}})", path, size, kSha1, more);
}

std::string lfs_row(const std::string& path, const std::string& oid, const std::string& lfs_size) {
  return file_row(path, "7", fmt::format(R"(,"lfs":{{"oid":"{}","size":{},"pointerSize":134}})", oid, lfs_size));
}

std::string directory_row(const std::string& path) {
  return fmt::format(R"({{"type":"directory","path":"{}","size":0,"oid":"{}"}})", path, kSha1);
}

Result<std::vector<HubFile>> listed(const std::vector<std::string>& pages) {
  HubListing listing(kWhere);
  for (const std::string& page : pages) WEFT_CHECK(listing.add_page(page));
  return listing.finish();
}

// Checks that the refusal of these rows is one line that names the repository and `named`.
void check_refused(const std::string& rows, const std::string& named) {
  CAPTURE(rows.substr(0, 300));
  const auto files = listed({"[" + rows + "]"});
  REQUIRE_FALSE(files.ok());
  CHECK(files.error().code == Errc::invalid);
  CHECK(files.error().message.starts_with(kWhere + ": "));
  CHECK(files.error().message.find(named) != std::string::npos);
  CHECK(files.error().message.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("listing: files of git and of LFS on several pages, by path") {
  const std::string more = R"(,"lfs":null,"xetHash":"x","lastCommit":{})";
  const auto files =
      must(listed({"[" + directory_row("sub") + "," + file_row("sub/b.json") + "]",
                   "[" + lfs_row("a.safetensors", kSha256, "7") + "," + file_row("sub/empty", "0", more) + "]", "[]"}));
  REQUIRE(files.size() == 3);
  CHECK(files[0].path == "a.safetensors");
  CHECK(files[0].size == 7);
  CHECK(files[0].git_sha1 == kSha1);
  REQUIRE(files[0].sha256.has_value());
  CHECK(to_hex(*files[0].sha256) == kSha256);
  CHECK(files[1].path == "sub/b.json");
  CHECK_FALSE(files[1].sha256.has_value());
  CHECK(files[2].path == "sub/empty");
  CHECK(files[2].size == 0);
}

TEST_CASE("listing: paths that leave their place, or that no version can have") {
  for (const char* path : {"..", "../a", "a/../../b", "a/..", ".", "./a", "/etc/passwd", "//a", "a//b", "a/", ""})
    check_refused(file_row(path), "file path");
  for (const char* path : {"a\\u0000b", "a\\nb", "a\\u001bb", "a\\u007fb", "a\\u0085b"})
    check_refused(file_row(path), "file path");
  check_refused(file_row(std::string(limits::kNameMax + 1, 'a')), "aaa");
  check_refused(file_row(std::string(limits::kPathMax + 1, 'a')), "aaa");
  std::string deep = "a";
  for (std::size_t i = 0; i < limits::kPathComponentsMax; ++i) deep += "/a";
  check_refused(file_row(deep), "a/a/a");
  check_refused(directory_row("../a"), "../a");
}

TEST_CASE("listing: duplicates, and files that are directories of others") {
  check_refused(file_row("a") + "," + file_row("b") + "," + file_row("a"), "\"a\"");
  check_refused(file_row("a/b") + "," + file_row("a"), "\"a\"");
  check_refused(file_row("a") + "," + file_row("a-b") + "," + file_row("a/b/c"), "\"a\"");
  check_refused(file_row("a") + "," + directory_row("a"), "\"a\"");
  check_refused(file_row("a") + "," + directory_row("a/b"), "\"a\"");
  CHECK_FALSE(listed({"[" + file_row("a") + "]", "[" + file_row("a") + "]"}).ok());
  CHECK(listed({"[" + file_row("a") + "," + file_row("a.b") + "," + file_row("ab/c") + "]"}).ok());
}

TEST_CASE("listing: sizes that cannot be") {
  for (const char* size : {"-1", "1.5", "1e3", "\"7\"", "null", "true", "18446744073709551616", "[]"})
    check_refused(file_row("model.bin", size), "\"model.bin\"");
  check_refused(file_row("model.bin", fmt::format("{}", limits::kVersionBytesMax + 1)), "\"model.bin\"");
  const std::string most = fmt::format("{}", limits::kVersionBytesMax);
  CHECK(listed({"[" + file_row("a", most) + "]"}).ok());
  check_refused(file_row("a", most) + "," + file_row("b", "1"), "\"b\"");
  check_refused(file_row("a", "18446744073709551615") + "," + file_row("b", "1"), "\"a\"");
}

TEST_CASE("listing: digests that cannot be, and an LFS size that differs") {
  auto with_oid = [](const std::string& oid) {
    return fmt::format(R"({{"type":"file","path":"m","size":7,"oid":{}}})", oid);
  };
  for (const std::string& oid :
       {std::string("\"\""), "\"" + std::string(39, 'a') + "\"", "\"" + std::string(40, 'A') + "\"",
        "\"" + std::string(40, 'g') + "\"", "\"" + kSha256 + "\"", std::string("7"), std::string("null")})
    check_refused(with_oid(oid), "\"m\"");
  check_refused(R"({"type":"file","path":"m","size":7})", "\"m\"");
  for (const std::string& oid : {std::string(), kSha1, std::string(64, 'z'), "sha256:" + kSha256})
    check_refused(lfs_row("m", oid, "7"), "\"m\"");
  for (const char* size : {"8", "6", "-7", "null", "\"7\"", "18446744073709551615"})
    check_refused(lfs_row("m", kSha256, size), "\"m\"");
  for (const char* lfs : {"7", "[]", "\"x\"", "{}", R"({"oid":"x"})", R"({"size":7})"})
    check_refused(file_row("m", "7", fmt::format(R"(,"lfs":{})", lfs)), "\"m\"");
}

TEST_CASE("listing: answers that are no listing") {
  for (const char* page : {"", "{}", "null", "7", "[", "[7]", "[[]]", "[null]", "[{}]", "[]x", "\xff", "<html>",
                           R"([{"path":7}])", R"([{"path":"m"}])", R"([{"path":"m","type":"link"}])",
                           R"([{"path":"m","type":7}])", R"([{"path":"m","path":"n","type":"directory"}])"}) {
    CAPTURE(page);
    const auto files = listed({page});
    REQUIRE_FALSE(files.ok());
    CHECK(files.error().code == Errc::invalid);
    CHECK(files.error().message.starts_with(kWhere));
  }
  check_refused(std::string(limits::kHubDepthMax + 1, '['), "deeper");
}

TEST_CASE("listing: pages beyond their bounds") {
  CHECK_FALSE(listed({"[" + std::string(limits::kHubPageMax, ' ') + "]"}).ok());
  std::string values = "[" + file_row("m", "7", ",\"x\":[0");
  values.resize(values.size() - 1);  // the row's end
  for (std::size_t i = 0; i < limits::kHubPageValuesMax; ++i) values += ",0";
  CHECK_FALSE(listed({values + "]}]"}).ok());
}

TEST_CASE("listing: bytes, pages, rows and files beyond the bounds of all pages together") {
  const auto check_last = [](HubListingBounds bounds, const std::vector<std::string>& pages, const std::string& named) {
    CAPTURE(named);
    HubListing listing(kWhere, bounds);
    for (std::size_t i = 0; i + 1 < pages.size(); ++i) must(listing.add_page(pages[i]));
    const Status last = listing.add_page(pages.back());
    REQUIRE_FALSE(last.ok());
    CHECK(last.error().code == Errc::invalid);
    CHECK(last.error().message.starts_with(kWhere + ": "));
    CHECK(last.error().message.find("at most " + named) != std::string::npos);
  };
  const std::string blank = "[" + std::string(48, ' ') + "]";
  const std::string two = "[" + directory_row("d") + "," + file_row("d/a") + "]";
  const std::string directory = "[" + directory_row("e") + "]";
  const std::string file = "[" + file_row("b") + "]";
  check_last({.bytes = 100}, {blank, blank, "[]"}, "100 bytes");
  check_last({.pages = 2}, {"[]", two, "[]"}, "2 pages");
  check_last({.rows = 3}, {two, file, directory}, "3 rows");
  check_last({.rows = 1}, {two}, "1 rows");
  check_last({.files = 1}, {two, directory, file}, "1 files");
}

TEST_CASE("revision: the commit, and whether the repository is for everybody") {
  const std::string siblings = R"("siblings":[{"rfilename":"a","sha":"x"},{"rfilename":"b"}])";
  const HubRevision open = must(parse_hub_revision(
      fmt::format(R"({{"id":"org/bert",{},"sha":"{}","private":false,"gated":false}})", siblings, kSha1), kWhere));
  CHECK(open.commit == kSha1);
  CHECK_FALSE(open.is_private);
  CHECK_FALSE(open.is_gated);
  CHECK(open.access().empty());
  const HubRevision closed = must(parse_hub_revision(
      fmt::format(R"({{"sha":"{}","private":true,"gated":"manual","x":{{"private":false,"gated":false}}}})", kSha1),
      kWhere));
  CHECK(closed.is_private);
  CHECK(closed.is_gated);
  CHECK(closed.access() == "private");
  CHECK(HubRevision{kSha1, false, true}.access() == "gated");
}

TEST_CASE("revision: answers without a commit are refused") {
  const std::string sha = "\"sha\":\"" + kSha1 + "\"";
  for (const std::string& json :
       {std::string(""), std::string("[]"), std::string("7"), std::string("{}"), std::string(R"({"sha":"main"})"),
        std::string(R"({"sha":7})"), "[{" + sha + "}]", R"({"x":{)" + sha + "}}", "{" + sha + "," + sha + "}",
        "{" + sha, "{" + sha + "} x", std::string(limits::kJsonDepthMax + 1, '[')}) {
    CAPTURE(json);
    const auto revision = parse_hub_revision(json, kWhere);
    REQUIRE_FALSE(revision.ok());
    CHECK(revision.error().code == Errc::invalid);
    CHECK(revision.error().message.starts_with(kWhere));
  }
  CHECK_FALSE(parse_hub_revision(std::string(limits::kHubInfoMax + 1, ' '), kWhere).ok());
}

TEST_CASE("filter: include and exclude, with patterns of the whole path") {
  CHECK(HubFilter{}.takes("a/b"));
  const HubFilter weights{{"*.safetensors", "config.json"}, {"original/", "*-fp16*"}};
  CHECK(weights.takes("model.safetensors"));
  CHECK(weights.takes("sub/model.safetensors"));
  CHECK(weights.takes("config.json"));
  CHECK_FALSE(weights.takes("sub/config.json"));
  CHECK_FALSE(weights.takes("README.md"));
  CHECK_FALSE(weights.takes("original/model.safetensors"));
  CHECK_FALSE(weights.takes("model-fp16.safetensors"));
  const HubFilter none{{"nothing"}, {}};
  CHECK_FALSE(none.takes("a"));
}
