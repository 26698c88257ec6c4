#include "node/assembled_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "base/text.h"
#include "store/file_ops.h"

namespace weft {
namespace {

constexpr std::string_view kPart = ".part";
constexpr std::string_view kPin = ".pin";
constexpr std::uint64_t kBoundShare = 10;    // of the file system, where nobody names a bound
constexpr std::uint64_t kFreeShare = 20;     // of the file system stays free
constexpr std::uint64_t kBoundTextMax = 32;  // bytes
constexpr mode_t kFileMode = 0644;
constexpr mode_t kLockMode = 0600;  // who may only read the store must not hold up those who change it

struct Space {
  std::uint64_t total = 0, available = 0;  // bytes
};

Space space_of(const std::string& path) {
  struct statvfs facts {};
  if (::statvfs(path.c_str(), &facts) != 0) return {};
  return {facts.f_blocks * facts.f_frsize, facts.f_bavail * facts.f_frsize};
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

struct Pin {
  Digest key;
  VersionId version = 0;
  const std::string* name = nullptr;
};

// What is not ours by its name is left alone.
std::vector<Pin> pins_of(const std::vector<std::string>& names) {
  std::vector<Pin> pins;
  for (const std::string& name : names) {
    if (!name.ends_with(kPin)) continue;
    const auto words = split(std::string_view(name).substr(0, name.size() - kPin.size()), '.');
    if (words.size() != 2) continue;
    const auto key = digest_from_hex(words[0]);
    const auto version = parse_u64(words[1]);
    if (key && version) pins.push_back({*key, *version, &name});
  }
  return pins;
}

constexpr std::uint64_t kSecond = 1'000'000'000;  // in nanoseconds

std::uint64_t time_ns_of(const struct stat& st) {
  return static_cast<std::uint64_t>(st.st_mtim.tv_sec) * kSecond + static_cast<std::uint64_t>(st.st_mtim.tv_nsec);
}

void touch(int fd) {
  static_cast<void>(::futimens(fd, nullptr));  // only the order of eviction depends on it
}

}  // namespace

void note_use(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) == 0) {
    const std::uint64_t now = now_ns(), noted = time_ns_of(st);
    if (noted <= now && now - noted < kSecond) return;
  }
  touch(fd);
}

// All of it where the file system cannot tell.
std::uint64_t own_bytes(const std::string& path, std::uint64_t size) {
  const auto fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  const auto own = fd.ok() ? unshared_bytes(fd->get()) : std::nullopt;
  return own ? std::min(*own, size) : size;
}

struct AssembledDir::Entry {
  std::string path;
  Digest key;
  bool part = false;
  bool pinned = false;
  std::uint64_t size = 0;
  std::uint64_t own = 0;  // of it, on blocks that no other file has
  std::uint64_t used_ns = 0;
};

AssembledPart::~AssembledPart() {
  if (fd_.valid()) static_cast<void>(remove_file(path_));
}

AssembledDir::AssembledDir(std::string path, std::optional<std::uint64_t> bytes_max)
    : path_(std::move(path)), bytes_max_(bytes_max), evicted_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

AssembledDir AssembledDir::view(const std::string& store_path) {
  return {store_path + "/cache/assembled", {}};
}

Result<AssembledDir> AssembledDir::open(const std::string& store_path, std::optional<std::uint64_t> bytes_max) {
  AssembledDir dir(store_path + "/cache/assembled", bytes_max);
  Status made = make_directory(dir.path_);
  if (!made.ok() && made.error().code != Errc::exists) return std::move(made).error();
  if (made.ok()) dir.resemble_parent();
  WEFT_CHECK(dir.lock());
  if (::faccessat(AT_FDCWD, dir.path_.c_str(), W_OK, AT_EACCESS) != 0) return sys_error(errno, dir.path_);
  return dir;
}

// A mount of root's must not leave in a user's store what the user cannot remove.
void AssembledDir::resemble_parent() const {
  const auto parent = stat_file(parent_of(path_));
  if (!parent.ok()) return;
  const bool owned = ::chown(path_.c_str(), parent->st_uid, parent->st_gid) == 0;
  if (!owned || ::chmod(path_.c_str(), parent->st_mode & 07777U) != 0) log_info("{}: keeps its own mode", path_);
}

void AssembledDir::take_owner(int fd) const {
  const auto dir = stat_file(path_);
  const auto mine = stat_fd(fd, path_);
  if (!dir.ok() || !mine.ok() || (dir->st_uid == mine->st_uid && dir->st_gid == mine->st_gid)) return;
  if (::fchown(fd, dir->st_uid, dir->st_gid) != 0) return;  // then the owner of the directory still can unlink it
}

Result<Fd> AssembledDir::lock() const {
  const std::string where = path_ + "/lock";
  auto fd = open_file(where, O_RDWR);
  if (!fd.ok() && fd.error().code == Errc::not_found) {
    fd = open_file(where, O_RDWR | O_CREAT, kLockMode);
    if (fd.ok()) take_owner(fd->get());
  }
  if (!fd.ok()) return fd;
  WEFT_CHECK(lock_fd(fd->get(), LockKind::exclusive, LockWait::yes, where));
  return fd;
}

std::string AssembledDir::file(const Digest& key) const {
  return fmt::format("{}/{}", path_, to_hex(key));
}

// What is not ours by its name is left alone.
std::vector<AssembledDir::Entry> AssembledDir::list() const {
  const auto names = list_directory(path_);
  if (!names.ok()) return {};
  std::vector<Entry> entries;
  const std::vector<Pin> pins = pins_of(*names);
  for (const std::string& name : *names) {
    std::string_view hex = name;
    const bool part = hex.ends_with(kPart);
    if (part) hex.remove_suffix(kPart.size());
    const auto key = digest_from_hex(hex);
    if (!key) continue;
    Entry entry{path_ + "/" + name, *key, part};
    const auto st = stat_file(entry.path);
    if (!st.ok() || !S_ISREG(st->st_mode)) continue;
    entry.pinned = std::ranges::any_of(pins, [&key](const Pin& pin) { return pin.key == *key; });
    entry.size = static_cast<std::uint64_t>(st->st_size);
    entry.used_ns = time_ns_of(*st);
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used_ns < b.used_ns; });
  return entries;
}

bool AssembledDir::has(const Digest& key) const {
  return ::access(file(key).c_str(), R_OK) == 0;
}

Result<Fd> AssembledDir::find(const Digest& key, std::uint64_t size) const {
  const std::string where = file(key);
  const Error absent{Errc::not_found, fmt::format("{}: not there", where)};
  auto fd = open_file(where, O_RDONLY | O_NOFOLLOW);
  if (!fd.ok()) return fd.error().code == Errc::not_found ? absent : std::move(fd).error();
  // Only who evicts it holds it exclusively: then it is as good as gone.
  if (!lock_fd(fd->get(), LockKind::shared, LockWait::no, where).ok()) return absent;
  WEFT_TRY(const struct stat st, stat_fd(fd->get(), where));
  if (st.st_nlink == 0 || !S_ISREG(st.st_mode) || static_cast<std::uint64_t>(st.st_size) != size) return absent;
  note_use(fd->get());
  return fd;
}

bool AssembledDir::evict(const Entry& entry, bool dry_run) const {
  auto fd = open_file(entry.path, O_RDWR | O_NOFOLLOW);
  if (!fd.ok() || !lock_fd(fd->get(), LockKind::exclusive, LockWait::no, entry.path).ok()) return false;
  if (dry_run) return true;
  if (!remove_file(entry.path).ok()) return false;
  evicted_->fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool AssembledDir::remove_stale(const Entry& entry, bool dry_run) const {
  auto fd = open_file(entry.path, O_RDWR | O_NOFOLLOW);
  if (!fd.ok() || !lock_fd(fd->get(), LockKind::exclusive, LockWait::no, entry.path).ok()) return false;
  return dry_run || remove_file(entry.path).ok();
}

// With the directory locked. Where this file shares blocks so may the others: the disk gets only their own back.
Status AssembledDir::make_room(std::uint64_t bytes, std::uint64_t disk_bytes) const {
  std::vector<Entry> entries = list();
  std::erase_if(entries, [&](const Entry& entry) { return entry.part && remove_stale(entry, false); });
  std::uint64_t taken = 0, movable = 0, given_back = 0;
  for (Entry& entry : entries) {
    taken += entry.size;
    if (entry.part || entry.pinned) continue;
    entry.own = disk_bytes < bytes ? own_bytes(entry.path, entry.size) : entry.size;
    movable += entry.size;
    given_back += entry.own;
  }
  const std::uint64_t bound = bytes_max();
  const auto within_bound = [&](std::uint64_t freed) { return bytes <= bound && taken - freed <= bound - bytes; };
  const auto on_disk = [&](std::uint64_t freed) {
    const Space space = space_of(path_);
    return disk_bytes == 0 || space.available + freed >= disk_bytes + space.total / kFreeShare;
  };
  const Error full{
      Errc::no_space,
      fmt::format("{}: no room for {} (the bound is {}, {} of it taken, and a part of the disk stays free)", path_,
                  human_bytes(bytes), human_bytes(bound), human_bytes(taken))};
  if (!within_bound(movable) || !on_disk(given_back)) return full;  // nothing goes in vain
  for (const Entry& entry : entries) {
    if (within_bound(0) && on_disk(0)) return {};
    const bool helps = !within_bound(0) || entry.own > 0;
    if (helps && !entry.part && !entry.pinned && evict(entry, false)) taken -= entry.size;
  }
  return within_bound(0) && on_disk(0) ? Status{} : full;
}

Result<AssembledPart> AssembledDir::begin(const Digest& key, std::uint64_t size, std::uint64_t disk_bytes) const {
  const std::string where = file(key) + std::string(kPart);
  WEFT_TRY(const Fd locked, lock());
  if (has(key)) return Error{Errc::exists, fmt::format("{}: there already", file(key))};
  WEFT_TRY(Fd fd, open_file(where, O_RDWR | O_CREAT | O_NOFOLLOW, kFileMode));
  WEFT_CHECK(lock_fd(fd.get(), LockKind::exclusive, LockWait::no, where));
  AssembledPart part(key, std::move(fd), where);
  take_owner(part.fd());
  if (::ftruncate(part.fd(), 0) != 0) return sys_error(errno, where);  // of one that died
  WEFT_CHECK(make_room(size, disk_bytes));
  if (::ftruncate(part.fd(), static_cast<off_t>(size)) != 0) return sys_error(errno, where);
  return part;
}

Status AssembledDir::finish(AssembledPart part) const {
  WEFT_CHECK(sync_file(part.fd(), part.path()));
  WEFT_TRY(const Fd locked, lock());
  touch(part.fd());
  WEFT_CHECK(unlock_fd(part.fd(), part.path()));
  WEFT_CHECK(rename_new(part.path(), file(part.key())));
  part.fd_.reset();
  return {};
}

std::string AssembledDir::pin_file(const Digest& key, VersionId version) const {
  return fmt::format("{}.{}{}", file(key), version, kPin);
}

Result<bool> AssembledDir::pin(const Digest& key, VersionId version) const {
  WEFT_TRY(const Fd locked, lock());
  const auto marker = open_file(pin_file(key, version), O_WRONLY | O_CREAT | O_EXCL, kFileMode);
  if (!marker.ok() && marker.error().code == Errc::exists) return false;
  if (!marker.ok()) return marker.error();
  take_owner(marker->get());
  return true;
}

Status AssembledDir::unpin(const Digest& key, VersionId version) const {
  WEFT_TRY(const Fd locked, lock());
  return remove_file(pin_file(key, version));
}

std::uint64_t AssembledDir::bytes_max() const {
  if (bytes_max_) return *bytes_max_;
  const auto text = read_file(path_ + "/bytes_max", kBoundTextMax);
  if (text.ok()) {
    std::string_view digits(reinterpret_cast<const char*>(text->data()), text->size());
    if (digits.ends_with('\n')) digits.remove_suffix(1);
    if (const auto bound = parse_u64(digits)) return *bound;
  }
  return space_of(parent_of(path_)).total / kBoundShare;
}

Status AssembledDir::set_bytes_max(std::uint64_t bytes_max) const {
  {
    WEFT_TRY(const Fd locked, lock());
    const std::string fresh = path_ + "/bytes_max.new";
    WEFT_TRY(const Fd fd, open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC, kFileMode));
    const std::string text = fmt::format("{}\n", bytes_max);
    WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(text)), fresh));
    take_owner(fd.get());
    WEFT_CHECK(rename_file(fresh, path_ + "/bytes_max"));
  }
  return sweep(nullptr, false).ok() ? Status{} : Error{Errc::io, fmt::format("{}: could not be cleared", path_)};
}

AssembledUsage AssembledDir::usage() const {
  AssembledUsage usage;
  usage.bytes_max = bytes_max();
  for (const Entry& entry : list()) {
    usage.parts += entry.part ? 1 : 0;
    if (entry.part) continue;
    ++usage.files;
    usage.bytes += entry.size;
    usage.pinned_files += entry.pinned ? 1 : 0;
    usage.pinned_bytes += entry.pinned ? entry.size : 0;
  }
  return usage;
}

// Of versions that do not need the file, or are gone.
Status AssembledDir::drop_pins(const Needed& needed) const {
  WEFT_TRY(const std::vector<std::string> names, list_directory(path_));
  for (const Pin& pin : pins_of(names)) {
    const auto found = needed.find(pin.key);
    if (found != needed.end() && found->second.contains(pin.version)) continue;
    WEFT_CHECK(remove_file(path_ + "/" + *pin.name));
  }
  return {};
}

Result<AssembledSweep> AssembledDir::sweep(const Needed* needed, bool dry_run) const {
  AssembledSweep swept;
  WEFT_TRY(const Fd locked, lock());
  const auto is_needed = [&](const Digest& key) { return needed == nullptr || needed->contains(key); };
  std::uint64_t kept = 0;
  std::vector<Entry> left;
  for (Entry& entry : list()) {
    if (entry.part) {
      if (remove_stale(entry, dry_run)) ++swept.parts;
    } else if (!is_needed(entry.key) && evict(entry, dry_run)) {
      ++swept.files;
      swept.bytes += entry.size;
    } else {
      kept += entry.size;
      left.push_back(std::move(entry));
    }
  }
  if (needed != nullptr && !dry_run) WEFT_CHECK(drop_pins(*needed));
  const std::uint64_t bound = bytes_max();
  for (const Entry& entry : left) {
    if (kept <= bound) break;
    if (entry.pinned || !evict(entry, dry_run)) continue;
    kept -= entry.size;
    ++swept.files;
    swept.bytes += entry.size;
  }
  return swept;
}

}  // namespace weft
