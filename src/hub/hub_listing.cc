#include "hub/hub_listing.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/glob.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"
#include "weft/model/manifest.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr std::size_t kShownPath = 200;  // bytes of a path in a message

Error is_member_twice(std::string_view name) {
  return Error{Errc::invalid, fmt::format("\"{}\" is there twice", name)};
}

// Keeps three members of the outer object and drops all others: a list of all files may be among them.
class RevisionReader final : public JsonHandler {
 public:
  Status begin_object() override {
    is_object_ = is_object_ || depth_ == 0;
    return open();
  }
  Status end_object() override { return close(); }
  Status begin_array() override { return open(); }
  Status end_array() override { return close(); }
  Status key(std::string_view name) override {
    if (depth_ == 1) name_ = name;
    return {};
  }
  Status text(std::string_view value) override {
    if (is_member("sha")) {
      if (!revision_.commit.empty()) return is_member_twice("sha");
      if (!is_commit_hash(value))
        return Error{Errc::invalid, fmt::format("\"sha\": expected a commit of {} hexadecimal digits, got \"{}\"",
                                                kCommitDigits, printable(value))};
      revision_.commit = value;
    }
    if (is_member("gated")) revision_.is_gated = true;  // "auto" or "manual"
    return {};
  }
  Status number(std::uint64_t /*value*/) override { return {}; }
  Status negative(std::int64_t /*value*/) override { return {}; }
  Status real(double /*value*/) override { return {}; }
  Status boolean(bool value) override {
    if (is_member("private")) revision_.is_private = value;
    if (is_member("gated")) revision_.is_gated = value;
    return {};
  }
  Status null() override { return {}; }

  Result<HubRevision> finish() {
    if (!is_object_) return Error{Errc::invalid, "expected an object, got another value"};
    if (revision_.commit.empty()) return unexpected("sha", kJsonText, nullptr);
    return std::move(revision_);
  }

 private:
  bool is_member(std::string_view name) const { return depth_ == 1 && is_object_ && name_ == name; }
  Status open() {
    ++depth_;
    return {};
  }
  Status close() {
    --depth_;
    return {};
  }

  std::size_t depth_ = 0;
  bool is_object_ = false;
  std::string name_;  // of the member that is being read, in the outer object
  HubRevision revision_;
};

Result<HubRevision> read_revision(std::string_view json) {
  if (json.size() > limits::kHubInfoMax)
    return Error{Errc::invalid,
                 fmt::format("expected at most {} bytes of JSON, got {}", limits::kHubInfoMax, json.size())};
  RevisionReader reader;
  WEFT_CHECK(parse_json(json, limits::kJsonDepthMax, reader));
  return reader.finish();
}

// Returns the SHA-256 of a file in LFS; nothing if the row has no `lfs`.
Result<std::optional<Digest>> lfs_digest(const JsonValue& row, std::uint64_t size) {
  const JsonValue* lfs = row.find("lfs");
  if (lfs == nullptr || lfs->is_null()) return std::optional<Digest>();
  if (!lfs->is_object()) return unexpected("lfs", "an object", lfs);
  WEFT_TRY(const std::string oid, lfs->text("oid"));
  const auto digest = digest_from_hex(oid);
  if (!digest)
    return Error{Errc::invalid, fmt::format("\"lfs.oid\": expected 64 hexadecimal digits, got \"{}\"", printable(oid))};
  WEFT_TRY(const std::uint64_t lfs_size, lfs->number("size"));
  if (lfs_size != size)
    return Error{Errc::invalid, fmt::format("\"lfs.size\": expected the file's size {}, got {}", size, lfs_size)};
  return digest;
}

Result<HubFile> file_of(const JsonValue& row, const std::string& path) {
  HubFile file;
  file.path = path;
  WEFT_TRY(file.size, row.number("size"));
  WEFT_TRY(file.git_sha1, row.text("oid"));
  if (!is_commit_hash(file.git_sha1))
    return Error{Errc::invalid, fmt::format("\"oid\": expected {} hexadecimal digits, got \"{}\"", kCommitDigits,
                                            printable(file.git_sha1))};
  WEFT_TRY(file.sha256, lfs_digest(row, file.size));
  return file;
}

bool is_glob_of(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('/')) return glob_matches(pattern, path);
  return glob_matches(fmt::format("{}*", pattern), path);
}

}  // namespace

Result<HubRevision> parse_hub_revision(std::string_view json, std::string_view where) {
  auto revision = read_revision(json);
  if (revision.ok()) return revision;
  return Error{revision.error().code, fmt::format("{}: the revision: {}", where, revision.error().message)};
}

HubListing::HubListing(std::string where, HubListingBounds bounds) : where_(std::move(where)), bounds_(bounds) {}

Error HubListing::refused(std::string_view path, std::string_view why) const {
  return Error{Errc::invalid, fmt::format("{}: \"{}\": {}", where_, printable(path, kShownPath), why)};
}

Status HubListing::add_page(std::string_view json) {
  const auto refused_page = [&](std::string_view why) {
    return Error{Errc::invalid, fmt::format("{}: the list of files: {}", where_, why)};
  };
  if (json.size() > limits::kHubPageMax)
    return refused_page(fmt::format("expected pages of at most {} bytes, got {}", limits::kHubPageMax, json.size()));
  if (++pages_ > bounds_.pages) return refused_page(fmt::format("expected at most {} pages, got more", bounds_.pages));
  page_bytes_ += json.size();
  if (page_bytes_ > bounds_.bytes)
    return refused_page(fmt::format("expected at most {} bytes on all pages, got more", bounds_.bytes));
  auto page = JsonValue::parse(json, {limits::kHubDepthMax, limits::kHubPageValuesMax});
  if (!page.ok()) return refused_page(page.error().message);
  if (page->array() == nullptr) return refused_page(fmt::format("expected an array, got {}", page->kind()));
  for (const JsonValue& row : *page->array()) {
    if (!row.is_object()) return refused_page(fmt::format("expected objects, got {}", row.kind()));
    if (++rows_ > bounds_.rows) return refused_page(fmt::format("expected at most {} rows, got more", bounds_.rows));
    WEFT_CHECK(add_row(row));
  }
  return {};
}

Status HubListing::add_row(const JsonValue& row) {
  auto path = row.text("path");
  if (!path.ok()) return Error{Errc::invalid, fmt::format("{}: a file: {}", where_, path.error().message)};
  if (Status status = check_file_path(*path); !status.ok())
    return Error{Errc::invalid, fmt::format("{}: {}", where_, status.error().message)};
  auto type = row.text("type");
  if (!type.ok()) return refused(*path, type.error().message);
  if (*type == "directory") {
    directories_.push_back(*std::move(path));
    return {};
  }
  if (*type != "file")
    return refused(*path, fmt::format("\"type\": expected \"file\" or \"directory\", got \"{}\"", printable(*type)));
  if (files_.size() >= bounds_.files)
    return refused(*path, fmt::format("expected at most {} files, got more", bounds_.files));
  auto file = file_of(row, *path);
  if (!file.ok()) return refused(*path, file.error().message);
  if (file->size > limits::kVersionBytesMax - file_bytes_)
    return refused(*path, fmt::format("expected at most {} bytes in all files, got {} more than {}",
                                      limits::kVersionBytesMax, file->size, file_bytes_));
  file_bytes_ += file->size;
  files_.push_back(*std::move(file));
  return {};
}

Result<std::vector<HubFile>> HubListing::finish() {
  std::ranges::sort(files_, {}, &HubFile::path);
  std::ranges::sort(directories_);
  WEFT_CHECK(check_apart());
  return std::move(files_);
}

// Files and directories are sorted.
Status HubListing::check_apart() const {
  const auto twice = std::ranges::adjacent_find(files_, {}, &HubFile::path);
  if (twice != files_.end()) return refused(twice->path, "expected one file of this path, got two");
  for (const HubFile& file : files_) {
    const std::string below = file.path + '/';
    const auto inner = std::ranges::lower_bound(files_, below, {}, &HubFile::path);
    const auto inner_directory = std::ranges::lower_bound(directories_, below);
    if (std::ranges::binary_search(directories_, file.path) ||
        (inner != files_.end() && inner->path.starts_with(below)) ||
        (inner_directory != directories_.end() && inner_directory->starts_with(below)))
      return refused(file.path, "expected a file or a directory, got both");
  }
  return {};
}

bool HubFilter::takes(std::string_view path) const {
  const auto fits = [&](const std::string& pattern) { return is_glob_of(pattern, path); };
  return (include.empty() || std::ranges::any_of(include, fits)) && std::ranges::none_of(exclude, fits);
}

}  // namespace weft
