#include "catalog/layout.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/core.h>

#include "base/text.h"
#include "catalog/cluster_files.h"
#include "catalog/journal.h"
#include "catalog/scrub_state.h"
#include "diskformat/uuid.h"
#include "index/env.h"
#include "index/tables.h"
#include "os/file_lock.h"
#include "os/file_ops.h"
#include "os/lookups/users.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kIdentityMax = 64U << 10U;
constexpr int kAttempts = 16;
constexpr std::string_view kMakerLock = "maker.lock";
constexpr std::array<std::string_view, 6> kDirectories = {"index", "packs", "manifests", "journal", "tmp", "cache"};

SafePath identity_path(const SafePath& path) {
  return path / "weft-store";
}
// A second copy of the record, for a store whose file weft-store is damaged or missing.
SafePath identity_copy_path(const SafePath& path) {
  return path / "journal/weft-store";
}

Error no_store(std::string_view path) {
  return Error{Errc::not_found, fmt::format("{}: no store here: expected a file weft-store", path)};
}

Status create_index(const SafePath& dir) {
  WEFT_CHECK(Env::create(dir));
  EnvOptions options;
  options.write = true;
  WEFT_TRY(std::unique_ptr<Env> env, Env::open(dir, options));
  WEFT_TRY(WriterLock lock, env->lock_writer());
  return env->write(lock, [](Txn& txn) { return put_counters(txn, Counters{}); });
}

Status put_identity(const SafePath& path, const SafePath& file, const StoreInfo& info) {
  return replace_file(file, path / "tmp/weft-store", seal_record(RecordKind::identity, encode_row(info)));
}

bool is_gone(const Error& error) {
  return error.code == Errc::not_found || error.code == Errc::not_dir;
}

Result<StoreInfo> read_identity_file(const SafePath& file) {
  WEFT_TRY(const std::vector<std::byte> bytes, read_file(file, kIdentityMax));
  WEFT_TRY(const std::vector<std::byte> payload, open_record(RecordKind::identity, bytes, file));
  return decode_row<StoreInfo>(payload, file);
}

// The only files in the directories of a store before the file weft-store exists. A directory with any other file does
// not belong to a store and is kept.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kFirstFiles = {
    {{"index", "data.mdb"},
     {"index", "lock.mdb"},
     {"index", "gc"},
     {"index", "open"},
     {"index", "queue"},
     {"index", "readers"},
     {"index", "spare"},
     {"index", "writer"},
     {"journal", "0000000000000001.log"},
     {"journal", "0000000000000001.copy"},
     {"journal", "weft-store"},
     {"tmp", "weft-store"}}};

bool is_first_file(std::string_view directory, std::string_view name) {
  return std::ranges::find(kFirstFiles, std::pair(directory, name)) != kFirstFiles.end();
}

// True if a creation was killed before it wrote the file weft-store: only a store's directories, with kFirstFiles. A
// store that has lost that file has journal records or packs, and a restore has its mark in tmp/.
bool is_hardly_made(const SafePath& path, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "daemon.lock") continue;
    if (std::ranges::find(kDirectories, name) == kDirectories.end()) return false;
    const auto inside = list_directory(path / name);
    if (!inside.ok()) return false;
    if (!std::ranges::all_of(*inside, [&](const std::string& file) { return is_first_file(name, file); })) return false;
  }
  const Journal journal(path);
  const auto size = journal.size();
  const auto mark = journal.mark();
  return size.ok() && *size == 0 && mark.ok() && (!*mark || (*mark)->journal_end == 0);
}

// Gives the directory to a group. Files created below inherit the group.
Status share_directory(const SafePath& path, const std::string& group) {
  WEFT_TRY(const gid_t gid, group_id(group));
  WEFT_TRY(const Fd dir, open_directory(path));
  return give_to_group(dir.get(), gid, path);
}

// Makes the lock files readable for the group, whatever the umask was: readers of the group lock them.
Status share_locks(const SafePath& path) {
  for (const SafePath& file : {path / "index/readers", path / "index/open"}) {
    WEFT_TRY(const Fd lock, open_file(file, O_RDWR));
    WEFT_CHECK(set_mode(lock.get(), 0640, file));
  }
  return {};
}

// Refuses root a store that other users can write to: with the store's content they could control what root does. The
// group bits also cover the grants of an access control list.
Status check_writers(const SafePath& path) {
  if (own_user() != 0 || trusts_all_owners()) return {};
  std::vector<SafePath> directories = {path};
  for (std::string_view name : kDirectories) directories.push_back(path / name);
  for (const SafePath& directory : directories) {
    WEFT_TRY(const auto opened, if_there(open_directory(directory)));
    if (!opened) continue;
    WEFT_TRY(const struct stat st, stat_fd(opened->get(), directory));
    if (st.st_uid == path.root().owner() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) continue;
    return Error{Errc::permission,
                 fmt::format("{}: owner {}, mode {:04o}: users other than the store's owner ({}) and root can write "
                             "here, and root uses such a store only with --trust-store (mounts: -o trust_store)",
                             directory, st.st_uid, st.st_mode & 07777U, *path.root().owner())};
  }
  return {};
}

// f_type values from statfs(2), linux/magic.h and the sources of the file systems.
constexpr std::array<std::pair<unsigned long, std::string_view>, 21> kUnsuitable = {{
    {0x6969, "nfs"},        {0x517B, "smb"},          {0xFF534D42, "cifs"},  {0xFE534D42, "smb2"},
    {0x01021997, "9p"},     {0x0BD00BD0, "lustre"},   {0x47504653, "gpfs"},  {0x00C36400, "ceph"},
    {0x5346414F, "afs"},    {0x6B414653, "afs"},      {0x73757245, "coda"},  {0x0000564C, "ncp"},
    {0x19830326, "beegfs"}, {0x20030528, "orangefs"}, {0x65735546, "fuse"},  {0x65735543, "fusectl"},
    {0xAAD7AAEA, "panfs"},  {0x01161970, "gfs2"},     {0x7461636F, "ocfs2"}, {0x786F4256, "vboxsf"},
    {0xBACBACBC, "vmhgfs"},
}};

constexpr std::uint64_t kSpareBytes = 4U << 20U;
constexpr std::uint64_t kSmallest = 16U << 10U;
constexpr std::uint64_t kShare = 64;  // the spare takes at most 1/64 of the file system

SafePath spare_path(const SafePath& store_path) {
  return store_path / "index/spare";
}

}  // namespace

Result<std::vector<std::string>> own_entries(const SafePath& path) {
  constexpr const char* kLostAndFound = "lost+found";
  WEFT_TRY(std::vector<std::string> names, list_directory(path));
  std::erase(names, kMakerLock);
  if (const auto st = stat_file(path / kLostAndFound); st.ok() && S_ISDIR(st->st_mode))
    std::erase(names, kLostAndFound);
  return names;
}

Status check_unused(const SafePath& path) {
  if (stat_file(identity_path(path)).ok())
    return Error{Errc::exists, fmt::format("{}: there is a store already", path)};
  WEFT_TRY(const std::vector<std::string> names, own_entries(path));
  if (names.empty() || is_hardly_made(path, names)) return {};
  return Error{Errc::exists, fmt::format("{}: expected an empty directory, there is {}", path, printable(names[0]))};
}

Status lay_out(const SafePath& path) {
  for (std::string_view name : kDirectories) WEFT_CHECK(make_directories(path / name));
  WEFT_CHECK(Journal(path).create());
  WEFT_CHECK(create_index(path / "index"));
  for (std::string_view name : kDirectories) WEFT_CHECK(sync_directory(path / name));
  make_spare(path);
  WEFT_CHECK(lock_against_daemon(path));  // creates the lock file
  return {};
}

Status make_store(const SafePath& path) {
  const StoreInfo info{kStoreFormat, random_uuid(), now_ns()};
  WEFT_CHECK(put_identity(path, identity_copy_path(path), info));
  return put_identity(path, identity_path(path), info);
}

Result<SafePath> open_damaged_store(const std::string& path) {
  auto opened = SafePath::open_owned(path);
  if (!opened.ok() && is_gone(opened.error())) return no_store(path);
  if (opened.ok()) WEFT_CHECK(check_writers(*opened));
  return opened;
}

Result<SafePath> open_store_directory(const std::string& path) {
  WEFT_TRY(SafePath opened, open_damaged_store(path));
  WEFT_CHECK(check_is_store(opened));
  return opened;
}

// Repeats if the previous holder deleted the store together with the lock file or the directory.
Result<Maker> lock_maker(const std::string& path, const Patience& patience) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    WEFT_CHECK(make_directories(path));
    WEFT_TRY(SafePath directory, SafePath::open_owned(path));
    WEFT_CHECK(check_writers(directory));
    const SafePath file = directory / kMakerLock;
    WEFT_TRY(auto lock, if_there(open_with_stat(file, O_RDWR | O_CREAT, 0600)));
    if (!lock) continue;
    WEFT_CHECK(wait_for_lock(lock->fd.get(), LockKind::exclusive, patience, file));
    const auto there = stat_file(file);
    if (there.ok() && inode_of(*there) == inode_of(lock->st)) return Maker{std::move(directory), std::move(lock->fd)};
  }
  return Error{Errc::busy, fmt::format("{}: it is made and taken away all the time", path)};
}

Status create_store(const std::string& path, const CreateOptions& options) {
  const bool was_there = stat_file(path).ok();
  WEFT_TRY(const Maker maker, lock_maker(path, options.patience));  // the second of two processes finds a store
  const SafePath& store = maker.directory;
  Status status = check_file_system(store);
  if (status.ok()) status = check_unused(store);
  if (status.ok()) {
    status = remove_store(store);  // left by a killed creation
    if (status.ok() && !options.group.empty()) status = share_directory(store, options.group);
    if (status.ok()) status = lay_out(store);
    if (status.ok() && !options.group.empty()) status = share_locks(store);
    if (status.ok()) status = make_store(store);
    if (!status.ok()) static_cast<void>(remove_store(store));
  }
  if (!status.ok() && !stat_file(identity_path(store)).ok()) static_cast<void>(remove_maker_lock(store));
  if (!status.ok() && !was_there) static_cast<void>(remove_empty_directory(path));
  return status;
}

Status remove_store(const SafePath& path) {
  WEFT_CHECK(remove_file(identity_path(path)));
  for (std::string_view name : kDirectories) WEFT_CHECK(remove_tree(path / name));
  WEFT_CHECK(remove_scrub_state(path));
  return remove_cluster_files(path);
}

Status remove_maker_lock(const SafePath& path) {
  return remove_file(path / kMakerLock);
}

// A creation writes the file weft-store last. So a directory that holds only leftovers of a creation is no store, even
// if the copy of that file is among them.
Status check_is_store(const SafePath& path) {
  auto identity = stat_file(identity_path(path));
  if (!identity.ok() && is_gone(identity.error())) {
    if (check_unused(path).ok()) return no_store(path);
    identity = stat_file(identity_copy_path(path));
  }
  if (!identity.ok() && is_gone(identity.error())) return no_store(path);
  return identity.ok() ? Status{} : Status{std::move(identity).error()};
}

Result<StoreIdentity> read_identity(const SafePath& path) {
  SafePath file = identity_path(path);
  auto info = read_identity_file(file);
  if (!info.ok() && (is_gone(info.error()) || info.error().code == Errc::corrupt)) {
    WEFT_CHECK(check_is_store(path));
    auto copy = read_identity_file(identity_copy_path(path));
    if (copy.ok()) {
      info = std::move(copy);
      file = identity_copy_path(path);
    }
  }
  if (!info.ok() && is_gone(info.error()))
    return Error{Errc::corrupt, fmt::format("{}: it is gone, and {} is damaged; run `weft fsck --rebuild`",
                                            identity_path(path), identity_copy_path(path))};
  if (!info.ok()) return std::move(info).error();
  WEFT_CHECK(check_file_system(path));
  if (info->format == kStoreFormat) return StoreIdentity{*std::move(info), file.str()};
  const bool newer = info->format > kStoreFormat;
  return Error{Errc::unsupported,
               fmt::format("{}: expected a store of format {}, got {}: {}", path, kStoreFormat, info->format,
                           newer ? "a newer weft made this store, use that version of weft"
                                 : "export with the old version, import with the new one")};
}

Result<std::vector<SafePath>> damaged_identities(const SafePath& path, const std::string& whole) {
  std::vector<SafePath> damaged;
  for (const SafePath& file : {identity_copy_path(path), identity_path(path)}) {
    if (file.str() == whole) continue;
    const auto there = read_identity_file(file);
    if (there.ok()) continue;
    if (!is_gone(there.error()) && there.error().code != Errc::corrupt) return there.error();
    damaged.push_back(file);
  }
  return damaged;
}

Result<StoreIdentity> recover_identity(const SafePath& path) {
  auto identity = read_identity(path);
  if (identity.ok() || (!is_gone(identity.error()) && identity.error().code != Errc::corrupt)) return identity;
  bool any = false;
  const auto journal = Journal(path).each(0, UINT64_MAX, [&any](const JournaledEvent& /*event*/) -> Status {
    any = true;
    return {};
  });
  if (!journal.ok() || !any) return identity;
  return StoreIdentity{{kStoreFormat, random_uuid(), now_ns()}, ""};
}

Result<std::vector<SafePath>> mend_identity(const SafePath& path, const StoreIdentity& identity) {
  WEFT_TRY(std::vector<SafePath> damaged, damaged_identities(path, identity.file));
  for (const SafePath& file : damaged) WEFT_CHECK(put_identity(path, file, identity.info));
  return damaged;
}

std::optional<std::string_view> unsuitable_file_system(unsigned long f_type) {
  const auto* found = std::find_if(kUnsuitable.begin(), kUnsuitable.end(),
                                   [f_type](const auto& entry) { return entry.first == (f_type & 0xFFFFFFFFUL); });
  if (found == kUnsuitable.end()) return {};
  return found->second;
}

Status check_file_system(const SafePath& directory) {
  WEFT_TRY(const unsigned long type, file_system_type(directory.root().fd(), directory));
  auto name = unsuitable_file_system(type);
  if (!name) return {};
  return Error{Errc::unsupported,
               fmt::format("{}: a store cannot lie on {}; expected a local file system (ext4, xfs, btrfs, tmpfs)",
                           directory, *name)};
}

// On a full disk the spare takes the free space: the space that release_spare() freed before, or space from gc.
void make_spare(const SafePath& store_path) {
  const SafePath path = spare_path(store_path);
  const auto disk = disk_space(store_path.root().fd());
  if (!disk) return;
  const std::uint64_t wanted = std::min(kSpareBytes, disk->total / kShare);
  const auto fd = open_file(path, O_WRONLY | O_CREAT, 0600);
  if (!fd.ok()) return;
  for (std::uint64_t bytes = wanted; bytes >= kSmallest; bytes /= 2)
    if (::posix_fallocate(fd->get(), 0, static_cast<off_t>(bytes)) == 0) return;
  const auto st = stat_fd(fd->get(), path);
  if (st.ok() && st->st_blocks == 0) static_cast<void>(remove_file(path));
}

bool release_spare(const SafePath& store_path) {
  const SafePath path = spare_path(store_path);
  return stat_file(path).ok() && remove_file(path).ok();
}

}  // namespace weft
