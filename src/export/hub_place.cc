#include "export/hub_place.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "os/entries.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr char kSnapshotStage[] = "snapshot";
constexpr char kWritten[] = "written";
constexpr char kLock[] = "lock";
constexpr std::size_t kHashedAtOnce = 1U << 20U;

// Returns the target of the link at `path` in a snapshot. It leads up to the repository, then down.
std::string blob_target(std::string_view path, const Digest& blob) {
  std::string target = "../../";
  for (auto slashes = std::ranges::count(path, '/'); slashes > 0; --slashes) target += "../";
  return target + "blobs/" + to_hex(blob);
}

// Hashes a file that was just written, from the page cache: its chunks were written in any order.
Result<Digest> plain_digest(const Fd& file, std::uint64_t size, std::string_view where) {
  Sha256 hash;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size, kHashedAtOnce)));
  for (std::uint64_t at = 0; at < size;) {
    const auto part =
        std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - at)));
    WEFT_CHECK(read_exact(file.get(), at, part, where));
    hash.update(part);
    at += part.size();
  }
  return hash.finish();
}

// Makes the directories of a path below `root`, and opens the last one.
Result<Beneath> ensure_directories(const Beneath& root, std::string_view path) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = path.find('/', end + 1);
    const Status made = root.make_directory(std::string(path.substr(0, end)), kExportDirectoryMode);
    if (!made.ok() && made.error().code != Errc::exists) return made.error();
  }
  return root.directory(std::string(path));
}

// Returns the target of a link; nothing for any other entry.
Result<std::optional<std::string>> target_of_link(const Beneath& directory, const std::string& name) {
  WEFT_TRY(const struct stat st, directory.stat(name));
  if (!S_ISLNK(st.st_mode)) return std::optional<std::string>();
  WEFT_TRY(const Fd link, open_at(directory.fd(), name, O_PATH));
  WEFT_TRY(std::string target, read_link(link.get()));
  return std::optional(std::move(target));
}

// Removes the entries of a stage, best effort. The lock goes last, because without it no export removes the rest.
void empty_stage(const Beneath& stage) {
  const auto names = stage.list();
  if (!names.ok()) return;
  for (const std::string& name : *names)
    if (name != kLock) static_cast<void>(stage.remove_tree(name));
  static_cast<void>(stage.remove_tree(kLock));
}

}  // namespace

Result<std::unique_ptr<HubPlace>> HubPlace::open(const std::string& cache, const HubNames& names) {
  std::unique_ptr<HubPlace> out(new HubPlace(names));
  WEFT_CHECK(out->open_cache(cache));
  WEFT_CHECK(out->enter(out->cache_, names.repository, out->repository_));
  WEFT_CHECK(out->enter(out->repository_, "blobs", out->blobs_));
  WEFT_CHECK(out->enter(out->repository_, "refs", out->refs_));
  WEFT_CHECK(out->enter(out->repository_, "snapshots", out->snapshots_));
  const std::string main(kMainRevision);
  if (std::ranges::find(names.refs, main) == names.refs.end() && !has_entry(out->refs_.fd(), main))
    out->names_.refs.insert(out->names_.refs.begin(), main);
  const std::string stage = export_stage_name();
  WEFT_TRY(MadeDirectory made, make_directory_in(out->repository_, stage, kExportStageMode));
  out->stage_name_ = stage;
  out->stage_inode_ = made.inode;
  out->stage_ = std::move(made.directory);
  out->lock_stage();
  out->remove_left_stages();
  return out;
}

// The lock file gets its name once it is locked. A file system without locks has none.
void HubPlace::lock_stage() {
  auto file = stage_.open_file(kWritten, O_RDWR | O_CREAT | O_EXCL, kExportFileMode);
  if (!file.ok()) return;
  if (lock_fd(file->get(), LockKind::exclusive, LockWait::no, stage_.path()).ok() &&
      stage_.rename(kWritten, stage_, kLock).ok())
    lock_ = std::move(file).value();
  else
    static_cast<void>(stage_.unlink(kWritten));
}

// Removes what killed exports of this user have left. Best effort.
void HubPlace::remove_left_stages() const {
  const auto names = repository_.list();
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kExportStageBegin) || name == stage_name_) continue;
    const auto left = repository_.directory(name);
    if (!left.ok()) continue;
    const auto st = stat_fd(left->fd(), left->path());
    if (!st.ok() || st->st_uid != own_user()) continue;
    const auto lock = left->open_file(kLock, O_RDWR);
    if (!lock.ok() || !lock_fd(lock->get(), LockKind::exclusive, LockWait::no, left->path()).ok()) continue;
    empty_stage(*left);
    static_cast<void>(repository_.remove(name, inode_of(*st)));
  }
}

Status HubPlace::open_cache(const std::string& path) {
  auto there = Beneath::open(path);
  if (there.ok()) {
    cache_ = std::move(there).value();
    return {};
  }
  if (there.error().code != Errc::not_found) return std::move(there).error();
  WEFT_TRY(auto place, parent_and_name(path));
  above_ = std::move(place.first);
  return enter(above_, place.second, cache_);
}

// Opens a directory, or makes it.
Status HubPlace::enter(const Beneath& above, const std::string& name, Beneath& into) {
  auto made = make_directory_in(above, name, kExportDirectoryMode);
  if (made.ok()) {
    made_.push_back({&above, name, made->inode});
    into = std::move(made->directory);
    return {};
  }
  if (made.error().code != Errc::exists) return std::move(made).error();
  WEFT_TRY(into, above.directory(name));
  return {};
}

Result<bool> HubPlace::reuse(const ExportedFile& file) {
  if (!file.sha256) return false;
  if (!staged_.contains(*file.sha256)) {
    const auto st = blobs_.stat(to_hex(*file.sha256));
    if (!st.ok() && st.error().code == Errc::not_found) return false;
    if (!st.ok()) return st.error();
    if (!S_ISREG(st->st_mode) || static_cast<std::uint64_t>(st->st_size) != file.size)
      return Error{
          Errc::exists,
          fmt::format("{}/{}: expected a file of {} bytes, the bytes of {}; got another size or kind: remove it",
                      blobs_.path(), to_hex(*file.sha256), file.size, file.path)};
  }
  links_.push_back({file.path, *file.sha256});
  ++reused_files_;
  reused_bytes_ += file.size;
  return true;
}

Result<Fd> HubPlace::create(const ExportedFile& file) {
  return stage_.open_file(kWritten, O_RDWR | O_CREAT | O_EXCL, kExportFileMode | file.execute);
}

Status HubPlace::complete(const ExportedFile& file, const Fd& written) {
  Digest digest;
  if (file.sha256) {
    digest = *file.sha256;
  } else {
    WEFT_TRY(digest, plain_digest(written, file.size, file.path));
  }
  WEFT_CHECK(stage_.rename(kWritten, stage_, to_hex(digest)));  // replaces equal bytes
  staged_.insert(digest);
  links_.push_back({file.path, digest});
  return {};
}

Status HubPlace::make_directory(std::string_view path) {
  directories_.push_back(path);
  return {};
}

Status HubPlace::make_links() {
  WEFT_TRY(const MadeDirectory made, make_directory_in(stage_, kSnapshotStage, kExportDirectoryMode));
  const Beneath& root = made.directory;
  std::string_view known;
  Beneath below;
  for (const Link& link : links_) {
    const std::string_view parent = parent_of(link.path);
    if (!parent.empty() && parent != known) {
      WEFT_TRY(below, ensure_directories(root, parent));
      known = parent;
    }
    const Beneath& directory = parent.empty() ? root : below;
    WEFT_CHECK(make_link_at(directory.fd(), std::string(name_in(link.path)), blob_target(link.path, link.blob)));
  }
  for (const std::string_view path : directories_) WEFT_CHECK(ensure_directories(root, path));
  return {};
}

Status HubPlace::publish() {
  WEFT_CHECK(make_links());
  WEFT_CHECK(stage_.sync_file_system());
  WEFT_CHECK(place_blobs());
  WEFT_CHECK(place_snapshot());
  for (const Made& made : made_) WEFT_CHECK(made.above->sync());
  return place_refs();
}

// If another export has placed a blob meanwhile, the destructor removes this one.
Status HubPlace::place_blobs() {
  for (const Digest& digest : staged_) {
    const std::string name = to_hex(digest);
    Status placed = stage_.rename_new(name, blobs_, name);
    if (!placed.ok() && placed.error().code != Errc::exists) return placed;
  }
  return blobs_.sync();
}

Status HubPlace::place_snapshot() {
  Status placed = stage_.rename_new(kSnapshotStage, snapshots_, names_.commit);
  if (placed.ok()) return snapshots_.sync();
  return placed.error().code == Errc::exists ? check_snapshot() : placed;
}

// Requires that the snapshot has all files of the version. The hub's own client makes snapshots of some files, and
// names the blobs of small ones by SHA-1.
Status HubPlace::check_snapshot() const {
  WEFT_TRY(const Beneath snapshot, snapshots_.directory(names_.commit));
  std::string_view known;
  Beneath below;
  for (const Link& link : links_) {
    const std::string_view parent = parent_of(link.path);
    const auto differs = [&](std::string_view got) {
      return Error{Errc::exists, fmt::format("{}/{}: expected a link to the blob {}, got {}; remove the snapshot, or "
                                             "export to another directory",
                                             snapshot.path(), link.path, to_hex(link.blob), got)};
    };
    if (!parent.empty() && parent != known) {
      auto opened = snapshot.directory(std::string(parent));
      if (!opened.ok()) return differs("no directory above it");
      below = std::move(opened).value();
      known = parent;
    }
    const auto target = target_of_link(parent.empty() ? snapshot : below, std::string(name_in(link.path)));
    if (!target.ok()) return differs("no such entry");
    if (!*target) return differs("another kind of entry");
    if (**target != blob_target(link.path, link.blob)) return differs(fmt::format("a link to {}", printable(**target)));
  }
  return {};
}

Status HubPlace::place_refs() {
  for (const std::string& ref : names_.refs) {
    {
      WEFT_TRY(const Fd file, stage_.open_file(kWritten, O_WRONLY | O_CREAT | O_EXCL, kExportFileMode));
      WEFT_CHECK(write_exact(file.get(), 0, std::as_bytes(std::span(names_.commit)), ref));
      WEFT_CHECK(sync_file(file.get(), ref));
    }
    WEFT_CHECK(stage_.rename(kWritten, refs_, ref));
  }
  return refs_.sync();
}

HubPlace::~HubPlace() {
  if (stage_.valid()) {
    empty_stage(stage_);
    static_cast<void>(repository_.remove(stage_name_, stage_inode_));
  }
  // Only empty directories go: none after a publish.
  for (auto made = made_.rbegin(); made != made_.rend(); ++made)
    static_cast<void>(made->above->remove(made->name, made->inode));
}

}  // namespace weft
