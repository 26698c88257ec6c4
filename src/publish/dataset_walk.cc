#include "publish/dataset_walk.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/limits.h"
#include "os/entries.h"
#include "publish/gather_rules.h"
#include "publish/mounted_files.h"
#include "publish/small_files.h"

namespace weft {
namespace {

// Entries of one directory. A small file has more than 8 bytes in the table, and there are fewer other files.
constexpr std::size_t kListedMax = limits::kFileTableMax / 8;

// An entry in a directory of the data set: a file or a directory.
struct Entry {
  std::string name;
  mode_t mode = 0;
  std::uint64_t bytes = 0;
  std::uint32_t path = 0;  // number of the PATH that it came from
  bool is_path = false;    // the entry is the PATH itself
};

bool named_as_container(std::string_view name) {
  return name.ends_with(".tar") || name.ends_with(".mdb") || name.ends_with(".lmdb");
}

// True for the lock file of an LMDB that is a single file: NAME-lock beside NAME.
bool is_lmdb_lock(const TreeEntry& entry) {
  constexpr std::string_view kSuffix = "-lock";
  constexpr std::uint32_t kMagic = 0xBEEF'C0DE;  // its first bytes, in the order of the machine
  const std::string& name = entry.name;
  if (!S_ISREG(entry.st.st_mode) || !name.ends_with(kSuffix)) return false;
  if (!has_entry(entry.directory, name.substr(0, name.size() - kSuffix.size()))) return false;
  const auto file = open_at(entry.directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  std::uint32_t magic = 0;
  return file.ok() && read_exact(file->get(), 0, std::as_writable_bytes(std::span(&magic, 1)), name).ok() &&
         magic == kMagic;
}

// Walks breadth first: the file table takes all files of a directory before those of the next one, and its directories
// are the queue of the walk. walk_tree() goes depth first and enters a directory between two entries. So it only lists
// here, one directory at a time, and this class descends.
class DatasetWalk {
 public:
  DatasetWalk(std::span<const std::string> paths, const struct stat* store, Links links)
      : store_(store), rule_{.links = links} {
    places_.paths.assign(paths.begin(), paths.end());
  }

  Result<GatheredFiles> run() {
    WEFT_CHECK(small_.directory(0, ""));
    WEFT_CHECK(root());
    for (std::uint32_t i = 1; i < small_.directories(); ++i) WEFT_CHECK(directory(i));
    return finish();
  }

 private:
  Status root() {
    std::vector<Entry> entries;
    for (std::uint32_t i = 0; i < places_.paths.size(); ++i) {
      const std::string& where = places_.paths[i];
      WEFT_TRY(const struct stat st, stat_file(where));
      if (!S_ISDIR(st.st_mode)) {
        entries.push_back({base_name(where), st.st_mode, static_cast<std::uint64_t>(st.st_size), i, true});
        continue;
      }
      WEFT_CHECK(check_directory(where, "", st, store_));
      WEFT_CHECK(list(where, "", i, entries));
    }
    std::ranges::stable_sort(entries, {}, &Entry::name);
    for (std::size_t i = 1; i < entries.size(); ++i)
      if (entries[i].name == entries[i - 1].name)
        return Error{Errc::invalid, fmt::format("{} and {}: both would be {}", where_of(entries[i - 1], ""),
                                                where_of(entries[i], ""), entries[i].name)};
    return add(0, "", entries);
  }

  Status directory(std::uint32_t number) {
    const std::string path = small_.path_of(number);
    const std::uint32_t source = places_.source_of(path);
    std::vector<Entry> entries;
    const std::string where = below(places_.paths[source], path);
    WEFT_CHECK(list(where, path, source, entries));
    if (!entries.empty()) return add(number, path, entries);
    WEFT_CHECK(check_count(where));
    SourceFile empty{path, where};
    empty.directory = true;
    files_.push_back(std::move(empty));
    return {};
  }

  Status list(const std::string& where, const std::string& path, std::uint32_t source, std::vector<Entry>& entries) {
    WEFT_TRY(const Fd directory, open_file(where, O_RDONLY | O_DIRECTORY));
    bool has_lmdb = false;
    TreeWalk walk(kListedMax);
    walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
      has_lmdb = has_lmdb || entry.name == "data.mdb";  // which precedes lock.mdb
      if ((has_lmdb && entry.name == "lock.mdb") || is_lmdb_lock(entry))
        left_out_.push_back(fmt::format("{}: left out: it is LMDB's lock file", below(where, entry.name)));
      else
        WEFT_CHECK(list_one(entry, below(where, entry.name), path.empty() ? entry.name : below(path, entry.name),
                            source, entries));
      return WalkNext::pass;
    };
    return walk_tree(directory, where, walk);
  }

  Status list_one(const TreeEntry& entry, const std::string& where, const std::string& inside, std::uint32_t source,
                  std::vector<Entry>& entries) {
    WEFT_TRY(const auto st, stat_published(entry, where, inside, rule_));
    if (!st) return {};
    if (S_ISDIR(st->st_mode)) WEFT_CHECK(check_directory(where, inside, *st, store_));
    entries.push_back({entry.name, st->st_mode, static_cast<std::uint64_t>(st->st_size), source});
    return {};
  }

  std::string where_of(const Entry& entry, const std::string& path) const {
    const std::string& from = places_.paths[entry.path];
    if (entry.is_path) return from;
    return below(path.empty() ? from : below(from, path), entry.name);
  }

  Status add(std::uint32_t number, const std::string& path, std::vector<Entry>& entries) {
    for (Entry& entry : entries) {
      const std::string inside = path.empty() ? entry.name : below(path, entry.name);
      if (S_ISDIR(entry.mode)) {
        WEFT_CHECK(check_named(where_of(entry, path), inside));
        WEFT_CHECK(small_.directory(number, entry.name));
        if (number != 0) continue;
        places_.top.push_back({entry.name, entry.path});
        continue;
      }
      if (!S_ISREG(entry.mode) || !check_file_path(inside).ok())
        WEFT_CHECK(check_regular(where_of(entry, path), inside, entry.mode));
      WEFT_CHECK(file(number, path, inside, entry));
    }
    return {};
  }

  Status file(std::uint32_t number, const std::string& path, const std::string& inside, const Entry& entry) {
    if (entry.bytes <= kSmallFileMax && !named_as_container(entry.name)) {
      if (number == 0) places_.root_files.push_back({entry.path, entry.is_path});
      return small_.file(number, entry.name, entry.bytes, execute_bits(entry.mode));
    }
    WEFT_CHECK(check_count(where_of(entry, path)));
    files_.push_back({inside, where_of(entry, path), entry.bytes});
    return {};
  }

  Status check_count(const std::string& where) const {
    if (files_.size() < limits::kFilesPerVersionMax) return {};
    return Error{Errc::invalid, fmt::format("{}: expected at most {} empty directories and files of {} bytes and more",
                                            where, limits::kFilesPerVersionMax, kSmallFileMax + 1)};
  }

  Result<GatheredFiles> finish() {
    if (std::ranges::all_of(files_, &SourceFile::directory) && small_.files() == 0)
      return Error{Errc::invalid, fmt::format("{}: no file to publish", places_.paths.front())};
    std::ranges::sort(files_, {}, &SourceFile::path);
    std::ranges::move(rule_.skipped, std::back_inserter(left_out_));
    GatheredFiles sources{std::move(files_), std::move(left_out_)};
    if (small_.files() == 0) return sources;
    const auto reader = std::make_shared<BundleReader>(small_.make(), std::move(places_));
    small_ = {};
    for (std::size_t i = 0; i < reader->bundles().size(); ++i)
      sources.files.push_back({.path = "",
                               .where = fmt::format("bundle {} of small files", i),
                               .size = reader->bundles()[i].bytes,
                               .open = [reader, i] { return reader->open(i); },
                               .role = FileRole::bundle});
    sources.files.push_back({.path = "",
                             .where = "the table of small files",
                             .size = reader->table_bytes().size(),
                             .open = [reader] { return reader->open_table(); },
                             .role = FileRole::file_table});
    return sources;
  }

  const struct stat* store_;
  LinkRule rule_;
  SmallFilePlaces places_;
  FileTableMaker small_;
  std::vector<SourceFile> files_;
  std::vector<std::string> left_out_;
};

}  // namespace

Result<GatheredFiles> gather_dataset(std::span<const std::string> paths, const std::string& store_path, Links links) {
  const auto store = stat_file(store_path);
  std::vector<std::string> published;
  for (const std::string& path : paths) {
    WEFT_TRY(published.emplace_back(), published_path(path));
  }
  return DatasetWalk(published, store.ok() ? &*store : nullptr, links).run();
}

}  // namespace weft
