#include "publish/gather.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "os/entries.h"
#include "os/tree_walk.h"
#include "publish/gather_rules.h"
#include "publish/mounted_files.h"

namespace weft {
namespace {

// Entries of one directory tree. Each file of a version may have all directories of its path for itself.
constexpr std::size_t kGatheredMax = limits::kFilesPerVersionMax * limits::kPathComponentsMax;

// Walks one PATH of the command line.
class Walk {
 public:
  Walk(std::vector<SourceFile>& files, const struct stat* store, LinkRule& rule)
      : files_(files), store_(store), rule_(rule) {}

  Status start(const std::string& where) {
    WEFT_TRY(struct stat st, stat_file(where));
    if (S_ISDIR(st.st_mode)) return directory(where, st);
    return file(where, base_name(where), st);
  }

 private:
  Status file(const std::string& where, const std::string& path, const struct stat& st) {
    WEFT_CHECK(check_regular(where, path, st.st_mode));
    return add({path, where, static_cast<std::uint64_t>(st.st_size)});
  }

  Status add(SourceFile file) {
    if (files_.size() >= limits::kFilesPerVersionMax)
      return Error{Errc::invalid, fmt::format("{}: expected at most {} files and empty directories", file.where,
                                              limits::kFilesPerVersionMax)};
    files_.push_back(std::move(file));
    return {};
  }

  Status directory(const std::string& where, const struct stat& st) {
    WEFT_CHECK(check_directory(where, "", st, store_));
    return contents(where, "");
  }

  // Adds what is below the directory `where`, whose place in the version is `path`.
  Status contents(const std::string& where, const std::string& path) {
    WEFT_TRY(const Fd root, open_file(where, O_RDONLY | O_DIRECTORY));
    TreeWalk walk(kGatheredMax);
    const auto inside = [&path](const TreeEntry& entry) { return path.empty() ? entry.path : below(path, entry.path); };
    walk.visit = [&](const TreeEntry& entry) { return visit(below(where, entry.path), inside(entry), entry); };
    walk.leave = [&](const TreeEntry* entry, int, const std::vector<std::string>&) {
      return entry == nullptr ? Status{} : leave(below(where, entry->path), inside(*entry));
    };
    walk.components_max = limits::kPathComponentsMax + 1;  // check_directory() refuses deeper ones
    return walk_tree(root, where, walk);
  }

  Result<WalkNext> visit(const std::string& where, const std::string& path, const TreeEntry& entry) {
    WEFT_TRY(const auto st, stat_published(entry, where, path, rule_));
    if (!st) return WalkNext::pass;
    WEFT_CHECK(S_ISDIR(st->st_mode) ? check_directory(where, path, *st, store_) : file(where, path, *st));
    if (S_ISDIR(st->st_mode)) entered_.push_back(files_.size());
    if (!S_ISLNK(entry.st.st_mode) || !S_ISDIR(st->st_mode)) return WalkNext::enter;
    WEFT_CHECK(contents(where, path));
    WEFT_CHECK(leave(where, path));
    return WalkNext::pass;
  }

  // Adds a directory without published entries.
  Status leave(const std::string& where, const std::string& path) {
    const std::size_t before = entered_.back();
    entered_.pop_back();
    if (files_.size() != before) return {};
    WEFT_CHECK(check_named(where, path));
    SourceFile empty{path, where};
    empty.directory = true;
    return add(std::move(empty));
  }

  std::vector<SourceFile>& files_;
  const struct stat* store_;
  LinkRule& rule_;
  std::vector<std::size_t> entered_;  // number of sources before each entered directory
};

// Removes directories that another source is, or lies in. `files` are sorted by path.
void drop_filled(std::vector<SourceFile>& files) {
  std::vector<SourceFile> kept;
  kept.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string inside = files[i].path + '/';
    const auto below = std::ranges::lower_bound(files.begin() + static_cast<std::ptrdiff_t>(i), files.end(), inside, {},
                                                &SourceFile::path);
    const bool again = i + 1 < files.size() && files[i + 1].directory && files[i + 1].path == files[i].path;
    if (files[i].directory && (again || (below != files.end() && below->path.starts_with(inside)))) continue;
    kept.push_back(std::move(files[i]));
  }
  files = std::move(kept);
}

// Refuses equal paths, and a file where another needs a directory. `files` are sorted by path.
Status check_paths_apart(std::span<const SourceFile> files) {
  auto at_or_after = [&](const std::string& path) {
    return std::lower_bound(files.begin(), files.end(), path,
                            [](const SourceFile& file, const std::string& p) { return file.path < p; });
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SourceFile& file = files[i];
    if (i + 1 < files.size() && files[i + 1].path == file.path)
      return Error{Errc::invalid,
                   fmt::format("{} and {}: both would be {}", file.where, files[i + 1].where, file.path)};
    auto inside = at_or_after(file.path + "/");
    if (inside != files.end() && inside->path.starts_with(file.path + "/"))
      return Error{Errc::invalid, fmt::format("{} would be the file {}, and {} needs a directory of that name",
                                              file.where, file.path, inside->where)};
  }
  return {};
}

bool has_file(std::span<const SourceFile> sources) {
  return !std::ranges::all_of(sources, &SourceFile::directory);
}

Result<std::vector<SourceFile>> sort_sources(std::vector<SourceFile> files) {
  std::ranges::stable_sort(files, {}, [](const SourceFile& file) { return std::tie(file.role, file.path); });
  const auto made_here =
      std::ranges::find_if(files, [](const SourceFile& file) { return file.role != FileRole::published; });
  std::vector<SourceFile> published(std::make_move_iterator(files.begin()), std::make_move_iterator(made_here));
  drop_filled(published);
  WEFT_CHECK(check_paths_apart(published));
  std::move(made_here, files.end(), std::back_inserter(published));
  return published;
}

}  // namespace

Result<std::vector<SourceFile>> gather_sources(std::span<const std::string> paths, const std::string& store_path,
                                               LinkRule& rule) {
  auto store = stat_file(store_path);
  std::vector<SourceFile> files;
  Walk walk(files, store.ok() ? &*store : nullptr, rule);
  for (const std::string& path : paths) {
    WEFT_TRY(const std::string published, published_path(path));
    WEFT_CHECK(walk.start(published));
  }
  if (!has_file(files))
    return Error{Errc::invalid, fmt::format("{}: no file to publish", paths.empty() ? "import" : paths.front())};
  return sort_sources(std::move(files));
}

Result<std::vector<SourceFile>> gather_sources(std::span<const std::string> paths, const std::string& store_path) {
  LinkRule refuses;
  return gather_sources(paths, store_path, refuses);
}

Result<std::vector<SourceFile>> check_sources(std::vector<SourceFile> files) {
  if (!has_file(files)) return Error{Errc::invalid, "import: no file to publish"};
  for (const SourceFile& file : files) {
    if (file.role == FileRole::published) WEFT_CHECK(check_named(file.where, file.path));
    if (file.role != FileRole::published && (!file.path.empty() || file.directory || !file.stored.empty()))
      return Error{Errc::invalid, fmt::format("{}: expected no path of its own", file.where)};
  }
  return sort_sources(std::move(files));
}

Take take_from(uid_t giver, Take wanted, const std::string& store_path) {
  const auto packs = stat_file(store_path + "/packs");
  return packs.ok() && packs->st_uid == giver ? wanted : Take::copy;
}

Result<Fd> open_to_read(const std::string& where) {
  return open_file(where, O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

Result<Fd> open_source(const SourceFile& file, struct stat& seen) {
  WEFT_TRY(Fd fd, file.open ? file.open() : open_to_read(file.where));
  WEFT_TRY(seen, stat_fd(fd.get(), file.where));
  if (!S_ISREG(seen.st_mode))
    return Error{Errc::changed, fmt::format("{}: expected a regular file, got {}", file.where, kind_of(seen.st_mode))};
  return fd;
}

// Compares no ctime: it changes if the store takes the file, or if another name of the file is removed.
Status remove_moved(const MovedSource& source) {
  if (source.directory) return remove_empty_directory(source.where);
  const auto now = stat_at(AT_FDCWD, source.where);
  if (!now.ok()) return now.error().code == Errc::not_found ? Status{} : Status{now.error()};
  if (check_unchanged(source.where, source.found, *now, true).ok()) return remove_file(source.where);
  return Error{Errc::changed,
               fmt::format("{}: not removed: it was replaced or written to during the import", source.where)};
}

namespace {

Status check_same(const std::string& where, const struct stat& before, const struct stat& after) {
  if (before.st_size != after.st_size)
    return Error{Errc::changed, fmt::format("{}: changed while it was read: expected {} bytes, got {}", where,
                                            before.st_size, after.st_size)};
  if (before.st_dev != after.st_dev || before.st_ino != after.st_ino)
    return Error{Errc::changed, fmt::format("{}: was replaced by another file while it was read", where)};
  return {};
}

}  // namespace

Status check_unchanged(const std::string& where, const struct stat& before, const struct stat& after, bool taken) {
  auto same_time = [](const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; };
  WEFT_CHECK(check_same(where, before, after));
  if (!same_time(before.st_mtim, after.st_mtim) || (!taken && !same_time(before.st_ctim, after.st_ctim)))
    return Error{Errc::changed, fmt::format("{}: was written to while it was read", where)};
  return {};
}

Status check_source(const SourceFile& file, const struct stat& before, const struct stat& after, bool taken) {
  return file.await ? check_same(file.where, before, after) : check_unchanged(file.where, before, after, taken);
}

}  // namespace weft
