#include "packs/assembled.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "diskformat/pack_names.h"
#include "os/file_lock.h"
#include "packs/blob_check.h"
#include "packs/collect.h"
#include "packs/toc_cache.h"

namespace weft {
namespace {

constexpr std::uint64_t kBoundShare = 10;  // default limit: at most 1 / 10 of the file system
constexpr std::uint64_t kPacksShare = 2;   // default limit: at most 1 / 2 of the packs
constexpr std::size_t kBoundTextMax = 32;  // bytes
constexpr mode_t kLockMode = 0600;         // users who may only read the store must not block its writers
constexpr auto kLockWaitMax = std::chrono::seconds(10);
constexpr int kMeasuredFor = 100;  // times as long as the measuring took, which so takes a hundredth of the time

DiskSpace space_of(const SafePath& directory) {
  return disk_space(directory.root().fd()).value_or(DiskSpace());
}

// Returns the disk bytes that eviction of the file frees; all of its bytes if the file system does not tell.
std::uint64_t own_bytes(const SafePath& path, std::uint64_t size) {
  const auto fd = open_file(path, O_RDONLY);
  const auto own = fd.ok() ? unshared_bytes(fd->get()) : std::nullopt;
  return own ? std::min(*own, size) : size;
}

bool lists_all(const PackListing& listing, const AssembledSource& file) {
  std::uint64_t offset = 0;
  for (const ContentId& blob : file.blobs) {
    if (!listing.has(blob, offset)) return false;
    offset += blob.length;
  }
  return listing.size() == file.blobs.size();
}

bool is_linked(const OpenPack& pack) {
  const auto st = stat_fd(pack.fd(), "pack");
  return st.ok() && st->st_nlink > 0;
}

bool is_same_file(const OpenPack& a, const OpenPack& b) {
  const auto one = stat_fd(a.fd(), "pack"), other = stat_fd(b.fd(), "pack");
  return one.ok() && other.ok() && one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

Status check_pack(const OpenPack& pack, const PackToc& toc, std::string_view where, const Progress& progress) {
  for (const PackEntry& entry : toc.entries) WEFT_CHECK(check_blob(pack.fd(), where, entry, progress));
  return {};
}

bool is_damage(const Status& status) {
  return !status.ok() && (status.error().code == Errc::corrupt || status.error().code == Errc::io);
}

}  // namespace

AssembledPacks::AssembledPacks(const SafePath& store_path, Options options)
    : dir_(store_path / "cache"), packs_(store_path / "packs"), options_(std::move(options)) {}

Result<Fd> AssembledPacks::open_lock() const {
  return open_file(path() / "lock", O_RDWR | O_CREAT, kLockMode);
}

// Changes of the directory take little time. A process that keeps the lock longer must not block a mount.
Result<Fd> AssembledPacks::lock() const {
  using Clock = std::chrono::steady_clock;
  WEFT_TRY(Fd fd, open_lock());
  Patience patience;
  patience.cancelled = [end = Clock::now() + kLockWaitMax] { return Clock::now() > end; };
  WEFT_CHECK(wait_for_lock(fd.get(), LockKind::exclusive, patience, path() / "lock"));
  return fd;
}

bool AssembledPacks::writable() const {
  return ::faccessat(path().root().fd(), path().relative().c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0 &&
         open_lock().ok();
}

Result<std::set<PackId>> AssembledPacks::pinned() const {
  return options_.pinned ? options_.pinned() : std::set<PackId>{};
}

std::vector<PackId> AssembledPacks::list() const {
  auto packs = dir_.list();
  if (!packs.ok()) return {};
  std::erase_if(*packs, [this](PackId id) { return !stat_file(toc_in(path(), id)).ok(); });
  return std::move(packs).value();
}

Result<AssembledPacks::Found> AssembledPacks::find(const AssembledSource& file) const {
  WEFT_TRY(std::shared_ptr<const OpenPack> pack, dir_.open_alone(file.id));
  WEFT_TRY(const auto listing, dir_.listing(file.id));
  if (pack->size() != file.size || !lists_all(*listing, file))
    return Error{Errc::corrupt, fmt::format("{}: {} is another file", file.where, pack_in(path(), file.id))};
  // If the .pack still has its name, the .toc that was read belongs to it.
  if (!is_linked(*pack)) return Error{Errc::not_found, fmt::format("{}: just evicted", file.where)};
  if (!options_.boot.empty() && listing->boot() == options_.boot) return Found{std::move(pack), true};
  const auto whole = judged(*pack);
  if (whole && !*whole) return Error{Errc::corrupt, fmt::format("{}: its assembled file is damaged", file.where)};
  return Found{std::move(pack), whole.has_value()};
}

bool AssembledPacks::has(const AssembledSource& file) const {
  const auto found = find(file);
  return found.ok() && found->verified;
}

std::optional<bool> AssembledPacks::judged(const OpenPack& pack) const {
  const std::lock_guard lock(mutex_);
  const auto found = judged_.find(pack.id());
  if (found == judged_.end() || !is_same_file(*found->second.pack, pack)) return {};
  return found->second.whole;
}

Status AssembledPacks::verify(const AssembledSource& file, const Progress& progress) {
  WEFT_TRY(const Found found, find(file));
  if (found.verified) return {};
  WEFT_TRY(PackToc toc, dir_.toc(file.id));
  Status whole = check_pack(*found.pack, toc, pack_in(path(), file.id), progress);
  if (!whole.ok() && !is_damage(whole)) return whole;
  const bool told = whole.ok() ? note_verified(*found.pack, std::move(toc)).ok() : remove(*found.pack);
  if (!told) remember(found.pack, whole.ok());
  if (whole.ok()) return whole;
  damaged_.fetch_add(1, std::memory_order_relaxed);
  log_info("{}; {}", whole.error().message, told ? "deleted" : "it is not used");
  return Error{Errc::corrupt, whole.error().message};
}

void AssembledPacks::remember(std::shared_ptr<const OpenPack> pack, bool whole) {
  const std::lock_guard lock(mutex_);
  std::erase_if(judged_, [](const auto& known) { return !is_linked(*known.second.pack); });
  const PackId id = pack->id();
  judged_[id] = {std::move(pack), whole};
}

Status AssembledPacks::note_verified(const OpenPack& pack, PackToc toc) const {
  WEFT_TRY(const Fd locked, lock());
  if (!is_linked(pack)) return Error{Errc::not_found, fmt::format("{}: just evicted", pack_in(path(), pack.id()))};
  WEFT_TRY(const auto temp, make_temp(pack.id()));
  toc.boot = options_.boot;
  const SafePath fresh = toc_in(temp->path(), pack.id());
  WEFT_CHECK(write_toc(fresh, toc));
  return rename_file(fresh, toc_in(path(), pack.id()));
}

bool AssembledPacks::remove(const OpenPack& pack) {
  const auto locked = lock();
  return locked.ok() && (!is_linked(pack) || remove_pack(dir_, pack.id()).ok());
}

bool AssembledPacks::evict(PackId id) {
  if (!remove_pack(dir_, id).ok()) return false;
  log_debug(LogCategory::store, "assembled file {} evicted", pack_name(id));
  evicted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::vector<PackId> AssembledPacks::temporaries() const {
  std::vector<PackId> ids;
  const auto names = list_directory(path() / "tmp");
  if (!names.ok()) return ids;
  for (const std::string& name : *names)
    if (const auto id = pack_of_name(name, "")) ids.push_back(*id);
  return ids;
}

std::uint64_t AssembledPacks::bytes_being_made() const {
  std::uint64_t bytes = 0;
  for (const PackId id : temporaries()) {
    const auto st = stat_file(pack_in(path() / ("tmp/" + pack_name(id)), id));
    if (st.ok()) bytes += static_cast<std::uint64_t>(st->st_size);
  }
  return bytes;
}

Result<std::unique_ptr<TempArea>> AssembledPacks::make_temp(PackId id) const {
  const SafePath parent = path() / "tmp";
  WEFT_CHECK(make_directories(parent));
  return TempArea::make_at(parent / pack_name(id));
}

Result<std::vector<CachedPack>> AssembledPacks::entries(const std::set<PackId>& pinned) const {
  return packs_by_use(path(), list(), pinned);
}

// Evicts files until one of `bytes` fits. The caller has locked the directory. If this file shares blocks, the stored
// ones may share theirs too. Eviction then frees only the blocks that are not shared.
Status AssembledPacks::make_room(PackId id, std::uint64_t bytes, std::uint64_t disk_bytes, std::uint64_t share) {
  WEFT_CHECK(clear_temporaries(path() / "tmp", false));
  WEFT_TRY(const std::set<PackId> kept, pinned());
  WEFT_TRY(std::vector<CachedPack> packs, entries(kept));
  std::uint64_t taken = bytes_being_made(), movable = 0, released = 0;
  for (CachedPack& pack : packs) {
    taken += pack.size;
    if (pack.pinned) continue;
    pack.disk_bytes = disk_bytes < bytes ? own_bytes(pack_in(path(), pack.id), pack.size) : pack.size;
    movable += pack.size;
    released += pack.disk_bytes;
  }
  std::vector<CachedPack> all = packs;
  all.push_back({.id = id, .size = bytes, .pinned = kept.contains(id)});
  const std::uint64_t bound = bound_of(all, share);
  const auto within_bound = [&](std::uint64_t freed) { return bytes <= bound && taken - freed <= bound - bytes; };
  const auto on_disk = [&](std::uint64_t freed) {
    const DiskSpace space = space_of(path());
    return disk_bytes == 0 || space.available + freed >= disk_bytes + cache_reserve(space);
  };
  const Error full{
      Errc::no_space,
      fmt::format("{}: no space for {} (the bound is {}, {} of it taken, and a part of the disk stays free)", path(),
                  human_bytes(bytes), human_bytes(bound), human_bytes(taken))};
  if (!within_bound(movable) || !on_disk(released)) return full;  // evict nothing if that does not suffice
  for (const CachedPack& pack : packs) {
    if (within_bound(0) && on_disk(0)) return {};
    const bool helps = !within_bound(0) || pack.disk_bytes > 0;
    if (helps && !pack.pinned && evict(pack.id)) taken -= pack.size;
  }
  return within_bound(0) && on_disk(0) ? Status{} : full;
}

// A stored pair that find() rejects is damaged or half removed, so it is removed first.
Result<AssembledPart> AssembledPacks::begin_part(const AssembledSource& file, std::uint64_t disk_bytes,
                                                 std::uint64_t share) {
  if (find(file).ok()) return Error{Errc::exists, fmt::format("{}: assembled already", file.where)};
  AssembledPart part;
  WEFT_TRY(part.temp, make_temp(file.id));
  WEFT_CHECK(remove_pack(dir_, file.id));
  WEFT_CHECK(make_room(file.id, file.size, disk_bytes, share));
  return part;
}

Result<AssembledPart> AssembledPacks::begin_with(const AssembledSource& file, int fd, Take take) {
  const std::uint64_t share = share_max();
  WEFT_TRY(const Fd locked, lock());
  WEFT_TRY(AssembledPart part, begin_part(file, 0, share));
  WEFT_TRY(part.writer, PackWriter::take_in(path(), part.temp->path(), file.id, fd, take));
  if (part.writer) {
    part.writer->keep_in_memory();  // nothing durable depends on it, and the publisher waits
    return part;
  }
  return Error{Errc::unsupported, fmt::format("{}: the file that has it cannot become the assembled one", file.where)};
}

Result<AssembledPart> AssembledPacks::begin(const AssembledSource& file, std::uint64_t disk_bytes) {
  const std::uint64_t share = share_max();
  WEFT_TRY(const Fd locked, lock());
  WEFT_TRY(AssembledPart part, begin_part(file, disk_bytes, share));
  WEFT_TRY(part.writer, PackWriter::create_in(path(), part.temp->path(), file.id));
  WEFT_CHECK(part.writer->set_size(file.size));
  return part;
}

Status AssembledPacks::finish(AssembledPart part, std::vector<PackEntry> entries) {
  for (PackEntry& entry : entries) part.writer->list(std::move(entry));
  part.writer->set_boot(options_.boot);
  WEFT_CHECK(part.writer->sync());
  WEFT_TRY(const Fd locked, lock());
  touch_file(part.writer->fd());
  return part.writer->publish();
}

std::optional<std::uint64_t> AssembledPacks::chosen_max() const {
  if (options_.bytes_max) return options_.bytes_max;
  return parse_u64(read_line(open_file(path() / "bytes_max", O_RDONLY), kBoundTextMax));
}

std::uint64_t AssembledPacks::bound_of(const std::vector<CachedPack>& packs, std::uint64_t share) const {
  if (const auto bound = chosen_max()) return *bound;
  std::uint64_t pinned = 0, largest = 0;
  for (const CachedPack& pack : packs)
    if (pack.pinned)
      pinned += pack.size;
    else
      largest = std::max(largest, pack.size);
  return pinned + std::max(share, largest);
}

std::uint64_t AssembledPacks::share_max() const {
  const std::uint64_t of_disk = space_of(path()).total / kBoundShare;
  if (chosen_max() || block_bytes() != 0) return of_disk;
  return std::min(of_disk, bytes_of_packs() / kPacksShare);
}

std::optional<std::uint64_t> AssembledPacks::block_bytes() const {
  if (!options_.block_bytes) return 0;
  {
    const std::lock_guard lock(mutex_);
    if (block_bytes_) return block_bytes_;
  }
  const auto found = options_.block_bytes();
  if (!found.ok()) return {};
  const std::lock_guard lock(mutex_);
  return block_bytes_ = *found;
}

std::uint64_t AssembledPacks::bytes_of_packs() const {
  using Clock = std::chrono::steady_clock;
  const auto begun = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (begun < measured_until_) return packs_bytes_;
  }
  std::uint64_t bytes = 0;
  const auto names = list_directory(packs_);
  if (!names.ok()) return bytes;
  for (const std::string& name : *names)
    if (const auto st = stat_file(packs_ / name); st.ok()) bytes += allocated_bytes(*st);
  const auto ended = Clock::now();
  const std::lock_guard lock(mutex_);
  measured_until_ = ended + kMeasuredFor * (ended - begun);
  return packs_bytes_ = bytes;
}

Status AssembledPacks::set_bytes_max(std::uint64_t bytes_max) {
  {
    WEFT_TRY(const Fd locked, lock());
    const SafePath fresh = path() / "bytes_max.new";
    WEFT_TRY(const Fd fd, open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC));
    const std::string text = fmt::format("{}\n", bytes_max);
    WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(text)), fresh));
    WEFT_CHECK(rename_file(fresh, path() / "bytes_max"));
  }
  auto swept = sweep(nullptr, false);
  return swept.ok() ? Status{} : std::move(swept).error();
}

AssembledUsage AssembledPacks::usage() const {
  AssembledUsage usage;
  usage.parts = temporaries().size();
  const auto kept = pinned();
  const auto packs = entries(kept.ok() ? *kept : std::set<PackId>{});
  usage.bytes_max = bound_of(packs.ok() ? *packs : std::vector<CachedPack>(), share_max());
  if (!packs.ok()) return usage;
  for (const CachedPack& pack : *packs) {
    ++usage.files;
    usage.bytes += pack.size;
    usage.pinned_files += pack.pinned ? 1 : 0;
    usage.pinned_bytes += pack.pinned ? pack.size : 0;
  }
  return usage;
}

// Removes the .pack or .toc of a file whose other half is missing.
void AssembledPacks::remove_litter() const {
  const auto names = list_directory(path());
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto pack = pack_of_name(name, ".pack"), toc = pack_of_name(name, ".toc");
    const bool lone =
        (pack && !stat_file(toc_in(path(), *pack)).ok()) || (toc && !stat_file(pack_in(path(), *toc)).ok());
    if (lone) static_cast<void>(remove_file(path() / name));
  }
}

Result<AssembledSweep> AssembledPacks::sweep(const std::set<PackId>* needed, bool dry_run) {
  const std::uint64_t share = share_max();
  WEFT_TRY(const Fd locked, lock());
  AssembledSweep swept;
  WEFT_TRY(swept.parts, clear_temporaries(path() / "tmp", dry_run));
  if (!dry_run) remove_litter();
  WEFT_TRY(const std::set<PackId> keep, pinned());
  WEFT_TRY(std::vector<CachedPack> packs, entries(keep));
  const auto go = [&](const CachedPack& pack) {
    if (!dry_run && !evict(pack.id)) return false;
    ++swept.files;
    swept.bytes += pack.size;
    return true;
  };
  std::erase_if(packs,
                [&](const CachedPack& pack) { return needed != nullptr && !needed->contains(pack.id) && go(pack); });
  std::uint64_t kept = 0;
  for (const CachedPack& pack : packs) kept += pack.size;
  const std::uint64_t bound = bound_of(packs, share);
  for (const CachedPack& pack : packs)
    if (kept > bound && !pack.pinned && go(pack)) kept -= pack.size;
  return swept;
}

}  // namespace weft
