#include "publish/gather_rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "os/entries.h"
#include "weft/model/manifest.h"

namespace weft {

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "something else";
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string below(const std::string& directory, const std::string& name) {
  return directory.ends_with('/') ? directory + name : directory + "/" + name;
}

Status check_named(const std::string& where, const std::string& path) {
  Status named = check_file_path(path);
  if (named.ok()) return {};
  return Error{Errc::invalid, fmt::format("{}: {}", printable(where, limits::kPathMax), named.error().message)};
}

Status check_regular(const std::string& where, const std::string& path, mode_t mode) {
  if (!S_ISREG(mode))
    return Error{Errc::invalid,
                 fmt::format("{}: expected a regular file or a directory, got {}", where, kind_of(mode))};
  return check_named(where, path);
}

namespace {

// True for a link without a target, and for a loop of links. Any other error may hide a file.
bool leads_nowhere(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::not_dir || error.code == Errc::invalid;
}

// Returns the program that keeps a directory of this path; "" for any other directory.
std::string_view keeper_of(std::string_view path) {
  const auto is_last = [&](std::string_view name) {
    return path == name ||
           (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '/');
  };
  if (is_last(".git")) return "git";
  return is_last(".cache/huggingface") ? "huggingface_hub" : "";
}

// `entry` is a link.
Result<std::optional<struct stat>> stat_link(const TreeEntry& entry, const std::string& where, LinkRule& rule) {
  auto st = stat_target_at(entry.directory, entry.name, where);
  if (st.ok() && S_ISREG(st->st_mode)) return std::optional(*st);
  if (!st.ok() && !leads_nowhere(st.error())) return st.error();
  const bool is_directory = st.ok() && S_ISDIR(st->st_mode);
  if (rule.links == Links::skip && (is_directory || !st.ok())) {
    rule.skipped.push_back(
        fmt::format("{}: left out: it is a link {}", where, is_directory ? "to a directory" : "that leads nowhere"));
    return std::optional<struct stat>();
  }
  if (!st.ok()) return Error{st.error().code, fmt::format("{}: link that leads nowhere", where)};
  if (!is_directory || rule.links != Links::follow)
    return Error{Errc::invalid,
                 fmt::format("{}: expected a link to a regular file, got a link to {}", where, kind_of(st->st_mode))};
  // links may lead upwards, and to directories with further links
  if (++rule.followed <= limits::kFilesPerVersionMax) return std::optional(*st);
  return Error{Errc::invalid,
               fmt::format("{}: expected at most {} links to directories", where, limits::kFilesPerVersionMax)};
}

}  // namespace

Result<std::optional<struct stat>> stat_published(const TreeEntry& entry, const std::string& where,
                                                  std::string_view path, LinkRule& rule) {
  std::optional<struct stat> st = entry.st;
  if (S_ISLNK(entry.st.st_mode)) {
    WEFT_TRY(st, stat_link(entry, where, rule));
  }
  if (!st || !S_ISDIR(st->st_mode)) return st;
  const std::string_view keeper = keeper_of(path);
  if (keeper.empty()) return st;
  rule.skipped.push_back(fmt::format("{}: left out: it is a directory of {}", where, keeper));
  return std::optional<struct stat>();
}

Status check_directory(const std::string& where, const std::string& path, const struct stat& st,
                       const struct stat* store) {
  if (store != nullptr && st.st_dev == store->st_dev && st.st_ino == store->st_ino)
    return Error{Errc::invalid, fmt::format("{}: this is the store itself; publish from beside it", where)};
  if (std::count(path.begin(), path.end(), '/') >= static_cast<std::ptrdiff_t>(limits::kPathComponentsMax))
    return Error{Errc::invalid,
                 fmt::format("{}: expected at most {} directories deep", where, limits::kPathComponentsMax)};
  return {};
}

}  // namespace weft
