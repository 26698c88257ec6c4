#include "weft/store/restore.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "catalog/layout.h"
#include "catalog/manifests.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "store/cluster/store_mirror.h"
#include "store/parts/parts.h"

namespace weft {
namespace {

constexpr std::uint64_t kMarkMax = 4096;
constexpr std::size_t kChangesAtOnce = 256;  // per commit; the content of these versions is in memory

SafePath mark_path(const SafePath& path) {
  return path / "tmp/restoring";
}

bool says(std::span<const std::byte> mark, std::string_view origin) {
  return std::ranges::equal(mark, std::as_bytes(std::span(origin)));
}

// Writes the mark, unless it is complete: if a kill interrupted a rewrite, the restore could not be resumed.
Status put_mark(const SafePath& path, std::string_view origin) {
  WEFT_CHECK(make_directories(path / "tmp"));
  const auto mark = read_file(mark_path(path), kMarkMax);
  const bool whole = mark.ok() && says(*mark, origin);
  WEFT_TRY(const Fd fd, open_file(mark_path(path), O_WRONLY | O_CREAT | (whole ? 0 : O_TRUNC)));
  if (!whole) WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(origin)), mark_path(path)));
  WEFT_CHECK(sync_file(fd.get(), mark_path(path)));
  return sync_directory(path / "tmp");
}

// True if the directory has nothing but the beginning of a restore that was killed before its mark was complete.
bool is_hardly_begun(const SafePath& path, std::string_view origin) {
  const auto names = own_entries(path);
  const auto begun = list_directory(path / "tmp");
  if (!names.ok() || *names != std::vector<std::string>{"tmp"} || !begun.ok()) return false;
  if (begun->empty()) return true;
  const auto mark = read_file(mark_path(path), kMarkMax);
  return *begun == std::vector<std::string>{"restoring"} && mark.ok() && mark->size() < origin.size() &&
         says(*mark, origin.substr(0, mark->size()));
}

// OK if the directory is empty or has an unfinished restore from this origin.
Status check_ours(const SafePath& path, std::string_view origin) {
  const Status unused = check_unused(path);
  if (unused.ok() || check_is_store(path).ok()) return unused;
  if (is_hardly_begun(path, origin)) return {};
  const auto mark = read_file(mark_path(path), kMarkMax);
  if (!mark.ok()) return unused;
  if (says(*mark, origin)) return {};
  return Error{Errc::exists, fmt::format("{}: another origin was being restored here; empty it first", path)};
}

// Removes the temporary files of interrupted copies.
Status remove_leftovers(const SafePath& path) {
  WEFT_TRY(const auto names, list_directory(path / "tmp"));
  for (const std::string& name : names)
    if (name != "restoring") WEFT_CHECK(remove_tree(path / ("tmp/" + name)));
  return {};
}

}  // namespace

StoreRestore::StoreRestore(Maker maker) : maker_(std::make_unique<const Maker>(std::move(maker))) {}
StoreRestore::StoreRestore(StoreRestore&& other) noexcept = default;
StoreRestore::~StoreRestore() = default;
const SafePath& StoreRestore::path() const {
  return maker_->directory;
}

Result<StoreRestore> StoreRestore::begin(const std::string& store_path, std::string_view origin,
                                         const Patience& patience) {
  WEFT_TRY(Maker maker, lock_maker(store_path, patience));
  const SafePath& path = maker.directory;
  Status ours = check_file_system(path);
  if (ours.ok()) ours = check_ours(path, origin);
  if (!ours.ok() && !check_is_store(path).ok()) static_cast<void>(remove_maker_lock(path));
  WEFT_CHECK(std::move(ours));
  WEFT_CHECK(put_mark(path, origin));
  WEFT_CHECK(remove_leftovers(path));
  for (const std::string_view made_again : {"index", "journal"}) WEFT_CHECK(remove_tree(path / made_again));
  WEFT_CHECK(lay_out(path));
  return StoreRestore(std::move(maker));
}

Result<bool> StoreRestore::has_pack(const PackToc& toc) const {
  const auto there = read_toc_of(path(), toc.pack);
  const auto st = stat_file(pack_path(path(), toc.pack));
  const bool whole = there.ok() && st.ok() && static_cast<std::uint64_t>(st->st_size) >= there->size &&
                     std::ranges::all_of(toc.entries, [&](const PackEntry& entry) {
                       return lists_blob(*there, entry.id, entry.offset);
                     });
  if (whole) return true;
  WEFT_CHECK(remove_file(toc_path(path(), toc.pack)));
  WEFT_CHECK(remove_file(pack_path(path(), toc.pack)));
  return false;
}

SafePath StoreRestore::pack_file() const {
  return path() / ("tmp/" + random_hex(12));
}

Status StoreRestore::add_pack(const SafePath& file, const PackToc& toc) const {
  WEFT_CHECK(rename_file(file, pack_path(path(), toc.pack)));
  const SafePath contents = pack_file();
  WEFT_CHECK(write_toc(contents, toc));
  return rename_file(contents, toc_path(path(), toc.pack));  // last: a pack with a .toc is complete
}

Status StoreRestore::keep_packs(const std::set<PackId>& packs) const {
  const SafePath directory = path() / "packs";
  WEFT_TRY(const auto names, list_directory(directory));
  for (const std::string& name : names) {
    const auto pack = pack_of_name(name, name.ends_with(".toc") ? ".toc" : ".pack");
    if (!pack || !packs.contains(*pack)) WEFT_CHECK(remove_file(directory / name));
  }
  return {};
}

Status StoreRestore::add_manifest(const Digest& digest, std::span<const std::byte> bytes) const {
  const Manifests manifests(path());
  if (manifests.open(digest).ok()) return {};
  WEFT_TRY(StagedManifest staged, manifests.stage(digest, bytes, Kept::anywhere));
  WEFT_CHECK(staged.sync());
  return manifests.place(std::move(staged), digest, Kept::anywhere);
}

Result<std::vector<std::string>> StoreRestore::take(std::span<const MirrorChange> changes, const ContentDecoder& decode,
                                                    Progress& progress) const {
  OpenOptions options;
  options.write = true;
  options.decode = decode;
  WEFT_TRY(const auto parts, StoreParts::open(path(), options));
  std::vector<std::string> problems;
  for (std::size_t at = 0; at < changes.size(); at += kChangesAtOnce) {
    if (progress.cancelled()) return Error{Errc::cancelled, "interrupted"};
    WEFT_TRY(const MirrorOutcome outcome,
             restore_changes(*parts, changes.subspan(at, std::min(kChangesAtOnce, changes.size() - at))));
    problems.insert(problems.end(), outcome.problems.begin(), outcome.problems.end());
  }
  return problems;
}

Status StoreRestore::finish() const {
  for (const std::string_view filled : {"packs", "manifests"}) WEFT_CHECK(sync_directory(path() / filled));
  WEFT_CHECK(make_store(path()));
  return remove_file(mark_path(path()));
}

}  // namespace weft
