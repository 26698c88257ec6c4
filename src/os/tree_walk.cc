#include "os/tree_walk.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <cstdint>

#include "base/text.h"
#include "os/entries.h"

namespace weft {
namespace {

constexpr std::size_t kRemovedDepthMax = 255;
constexpr std::size_t kRemovedMax = SIZE_MAX;  // no bound: a removal removes as many entries as users have made

class Walker {
 public:
  Walker(const std::string& where, const TreeWalk& walk) : where_(where), walk_(walk) {}

  Status directory(const Fd& fd, const TreeEntry* entry) {
    const std::string path = entry == nullptr ? "" : entry->path;
    const auto names = list_directory(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), full(path));
    if (!names.ok()) return failed(names.error());
    for (const std::string& name : *names) {
      WEFT_CHECK(
          visit({fd.get(), name, path.empty() ? name : path + "/" + name, entry == nullptr ? 0 : entry->depth + 1}));
      if (ended_) return {};
    }
    return walk_.leave ? walk_.leave(entry, fd.get(), *names) : Status{};
  }

 private:
  std::string full(const std::string& path) const {
    if (where_.empty() || path.empty()) return where_ + path;
    return where_.ends_with('/') ? where_ + path : where_ + "/" + path;
  }

  Status failed(const Error& error) const { return walk_.failed ? walk_.failed(error) : error; }

  Status visit(TreeEntry entry) {
    const std::string where = full(entry.path);
    if (entry.depth >= walk_.components_max)
      return failed({Errc::invalid, fmt::format("{}: expected at most {} directories deep",
                                                printable(where, limits::kPathMax), walk_.components_max)});
    if (++entries_ > walk_.entries_max)
      return Error{Errc::invalid, fmt::format("{}: expected at most {} files and directories",
                                              printable(where, limits::kPathMax), walk_.entries_max)};
    const auto st = stat_at(entry.directory, entry.name, where);
    if (!st.ok()) return failed(st.error());
    entry.st = *st;
    WEFT_TRY(const WalkNext next, walk_.visit(entry));
    ended_ = next == WalkNext::end;
    if (next != WalkNext::enter || !S_ISDIR(entry.st.st_mode)) return {};
    const auto inner = walk_.open ? walk_.open(entry) : open_directory_at(entry.directory, entry.name);
    return inner.ok() ? directory(*inner, &entry) : failed(inner.error());
  }

  const std::string& where_;
  const TreeWalk& walk_;
  std::size_t entries_ = 0;
  bool ended_ = false;
};

Status pass_absent(const Error& error) {
  return error.code == Errc::not_found ? Status{} : Status{error};
}

// Removes everything below a directory. Directories at kRemovedDepthMax are moved to the top instead: so the user who
// made them cannot make the removal use more stack or descriptors. Returns true if some were moved: the caller repeats
// the removal.
Result<bool> remove_below(const Fd& top, dev_t device, const std::string& where) {
  bool moved = false;
  TreeWalk walk(kRemovedMax);
  walk.failed = pass_absent;
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    const std::string path = where + "/" + entry.path;
    if (!S_ISDIR(entry.st.st_mode)) {
      WEFT_CHECK(remove_at(entry.directory, entry.name, 0, path));
      return WalkNext::pass;
    }
    if (entry.st.st_dev != device) return Error{Errc::busy, fmt::format("{}: something is mounted here", path)};
    if (entry.depth < kRemovedDepthMax) return WalkNext::enter;
    moved = true;
    WEFT_CHECK(rename_at(entry.directory, entry.name, top.get(), random_hex(16), 0, path));
    return WalkNext::pass;
  };
  walk.leave = [&](const TreeEntry* entry, int, const std::vector<std::string>&) -> Status {
    return entry == nullptr ? Status{}
                            : remove_at(entry->directory, entry->name, AT_REMOVEDIR, where + "/" + entry->path);
  };
  walk.components_max = kRemovedDepthMax + 1;
  WEFT_CHECK(walk_tree(top, where, walk));
  return moved;
}

}  // namespace

Status walk_tree(const Fd& root, const std::string& where, const TreeWalk& walk) {
  return Walker(where, walk).directory(root, nullptr);
}

Status remove_tree_at(int directory, const std::string& name, const std::string& where) {
  for (;;) {
    const auto st = stat_at(directory, name, where);
    if (!st.ok()) return pass_absent(st.error());
    if (!S_ISDIR(st->st_mode)) return remove_at(directory, name, 0, where);
    WEFT_TRY(const Fd top, open_directory_at(directory, name));
    WEFT_TRY(const bool moved, remove_below(top, st->st_dev, where));
    if (!moved) return remove_at(directory, name, AT_REMOVEDIR, where);
  }
}

Status remove_tree(const std::string& path) {
  return remove_tree_at(AT_FDCWD, path, path);
}

}  // namespace weft
