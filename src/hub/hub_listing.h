// The answers of a hub about a revision: its commit and its files. Pure; each byte is hostile. Messages begin with the
// name of the repository and name the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

class JsonValue;

struct HubRevision {
  std::string commit;  // 40 hexadecimal digits
  bool is_private = false;
  bool is_gated = false;  // a user has to accept terms

  // Returns Provenance::access of a version with these files.
  std::string access() const { return is_private ? "private" : is_gated ? "gated" : ""; }
};
// Parses the answer about a revision. Errc::invalid. `where` begins messages.
Result<HubRevision> parse_hub_revision(std::string_view json, std::string_view where);

struct HubFile {
  std::string path;  // check_file_path() accepts it
  std::uint64_t size = 0;
  // The SHA-1 of the git blob, 40 hexadecimal digits. The blob of a file in LFS is a pointer and not the content.
  std::string git_sha1;
  std::optional<Digest> sha256;  // of the content; for files in LFS

  bool operator==(const HubFile&) const = default;
};

// The most that all pages of a listing may have together.
struct HubListingBounds {
  std::uint64_t bytes = limits::kHubListingMax;
  std::size_t pages = limits::kHubPagesMax;
  std::size_t rows = limits::kHubRowsMax;
  std::size_t files = limits::kFilesPerVersionMax;
};

// Collects the pages of a listing.
class HubListing {
 public:
  // `where` begins messages.
  explicit HubListing(std::string where, HubListingBounds bounds = {});

  // Errc::invalid: not a page, a path that a version cannot have, sizes or digests that cannot be, or a bound.
  Status add_page(std::string_view json);
  // Returns the files by path, once all pages are added. Errc::invalid: a path is there twice, or a file is a directory
  // of another one.
  Result<std::vector<HubFile>> finish();

 private:
  Status add_row(const JsonValue& row);
  Error refused(std::string_view path, std::string_view why) const;
  Status check_apart() const;

  const std::string where_;
  const HubListingBounds bounds_;
  std::uint64_t page_bytes_ = 0;  // of all pages
  std::uint64_t file_bytes_ = 0;  // sizes of all files
  std::size_t pages_ = 0, rows_ = 0;
  std::vector<HubFile> files_;
  std::vector<std::string> directories_;
};

// Selects files by patterns, as huggingface_hub does: of the whole path, in which '*' matches '/' too. A pattern that
// ends with '/' selects everything below this directory.
struct HubFilter {
  std::vector<std::string> include;  // empty: all files
  std::vector<std::string> exclude;

  bool takes(std::string_view path) const;
};

}  // namespace weft
