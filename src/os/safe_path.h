// Paths below a directory that is held by a descriptor (beneath.h), as values. The functions have the names and effects
// of those in sys.h, and none of them follows a link or leaves the directory.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/beneath.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

// Any thread. As text, a SafePath is the full path that the user knows.
class SafePath {
 public:
  SafePath() = default;  // no directory; assign one before use
  explicit SafePath(std::shared_ptr<const Beneath> root) : root_(std::move(root)), full_(root_->path()) {}
  explicit SafePath(Beneath root) : SafePath(std::make_shared<const Beneath>(std::move(root))) {}
  // As Beneath::open_owned().
  static Result<SafePath> open_owned(const std::string& directory);

  SafePath operator/(std::string_view below) const;
  SafePath operator+(std::string_view suffix) const;  // "packs/1" + ".toc"; not for the directory itself
  SafePath parent() const;                            // not for the directory itself
  // Returns the same path with a descriptor of its own if it is a directory: names in it then resolve in one system
  // call.
  SafePath held() const;

  const std::string& str() const { return full_; }
  operator std::string_view() const { return full_; }  // NOLINT(google-explicit-constructor): for messages
  const Beneath& root() const { return *root_; }
  std::string relative() const;  // to root(); "." for the directory itself

 private:
  std::shared_ptr<const Beneath> root_;
  std::string full_;
};

Result<Fd> open_file(const SafePath& path, int flags, mode_t mode = 0644);
Result<OpenedFile> open_with_stat(const SafePath& path, int flags, mode_t mode = 0644);
Result<Fd> open_directory(const SafePath& path);
Result<struct stat> stat_file(const SafePath& path);  // does not follow a link
Status sync_directory(const SafePath& path);
Status make_directory(const SafePath& path, mode_t mode = 0755);
Status make_directories(const SafePath& path, mode_t mode = 0755);  // without parents; fine if it exists
Status rename_file(const SafePath& from, const SafePath& to);
Status rename_new(const SafePath& from, const SafePath& to);
// Writes the file `fresh`, syncs it, renames it to `path`, and syncs the directory of `path`.
Status replace_file(const SafePath& path, const SafePath& fresh, std::span<const std::byte> bytes);
Status link_file(const SafePath& from, const SafePath& to);
Status remove_file(const SafePath& path);
Status remove_tree(const SafePath& path);
Result<std::vector<std::string>> list_directory(const SafePath& path);
Result<std::vector<std::byte>> read_file(const SafePath& path, std::uint64_t bytes_max);

// Returns "/proc/self/fd/N", for system calls that take paths only. The descriptor must stay open until the path was
// used. Errc::unsupported if /proc is not mounted.
Result<std::string> path_of_descriptor(int fd, std::string_view where);

}  // namespace weft

template <>
struct fmt::formatter<weft::SafePath> {
  constexpr fmt::format_parse_context::iterator parse(fmt::format_parse_context& context) const {
    return context.begin();  // "{}" alone
  }
  fmt::format_context::iterator format(const weft::SafePath& path, fmt::format_context& context) const;
};
