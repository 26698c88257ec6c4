#include "endpoint/served_listing.h"

#include <fmt/core.h>

#include <utility>

#include "base/text.h"

namespace weft {
namespace {

std::string path_in(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

}  // namespace

ServedListing::ServedListing(Vfs& vfs, Ino directory, std::string path, const Options& options)
    : vfs_(vfs), root_(path), options_(options), levels_{{directory, std::move(path)}} {}

// "PLACE.PLACE:DIRECTORY": the places in each directory from the root of the listing down to DIRECTORY.
std::string ServedListing::cursor() const {
  std::string places;
  for (const Level& level : levels_) places += fmt::format("{}{}", places.empty() ? "" : ".", level.place);
  const std::string_view below =
      levels_.empty() ? std::string_view() : std::string_view(levels_.back().path).substr(root_.size());
  return fmt::format("{}:{}", places, below.starts_with('/') ? below.substr(1) : below);
}

Status ServedListing::seek(std::string_view cursor) {
  const Error refused{Errc::invalid, "cursor: expected one of an earlier page"};
  const auto colon = cursor.find(':');
  if (colon == std::string_view::npos) return refused;
  const auto places = split(cursor.substr(0, colon), '.');
  const std::string_view below = cursor.substr(colon + 1);
  const auto names = below.empty() ? std::vector<std::string_view>() : split(below, '/');
  if (places.size() != names.size() + 1 || (!options_.recursive && !names.empty())) return refused;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0) {
      const auto inner = vfs_.lookup(levels_.back().directory, names[i - 1]);
      if (!inner.ok() && inner.error().code != Errc::not_found) return inner.error();
      if (!inner.ok() || inner->type != FileType::directory) return refused;
      levels_.push_back({inner->ino, path_in(levels_.back().path, names[i - 1])});
    }
    const auto place = parse_u64(places[i]);
    if (!place || (*place != 0 && *place < kFirstPlace) || *place > kLastPlace) return refused;
    levels_.back().place = *place;
  }
  return {};
}

Status ServedListing::fill(Level& level) {
  WEFT_TRY(DirPage page, vfs_.list(level.directory, level.place));
  level.is_last = page.last || page.entries.empty();
  level.entries = std::move(page.entries);
  level.index = 0;
  return {};
}

Result<ServedFile> ServedListing::served(const Level& level, const DirEntry& entry) {
  Attr attr = entry.attr;
  if (!entry.attr_known) {
    WEFT_TRY(attr, vfs_.lookup(level.directory, entry.name));
  }
  ServedFile file{path_in(level.path, entry.name), attr.type == FileType::directory, attr.size, {}};
  if (file.is_directory) {
    if (options_.recursive) levels_.push_back({attr.ino, file.path});
    return file;
  }
  if (options_.digests) {
    WEFT_TRY(file.sha256, vfs_.sha256_of(attr.ino));
  }
  return file;
}

Result<std::optional<ServedFile>> ServedListing::next() {
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (level.index < level.entries.size()) {
      const DirEntry entry = std::move(level.entries[level.index++]);
      level.place = entry.place;
      const Level at{level.directory, level.path};
      WEFT_TRY(ServedFile file, served(at, entry));
      return std::optional(std::move(file));
    }
    if (level.is_last)
      levels_.pop_back();
    else
      WEFT_CHECK(fill(level));
  }
  return std::optional<ServedFile>();
}

}  // namespace weft
