#include "fuse/drafts/draft_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/limits.h"
#include "os/file_ops.h"
#include "os/open_beneath.h"

namespace weft {
namespace {

constexpr mode_t kShared = 01777;
constexpr char kNextShared[] = "namespace";  // in folder(): a shared directory that is not named yet

int result_of(long outcome) {
  return outcome < 0 ? -errno : 0;
}

int open_beneath(int directory, const char* path, int flags, Fd& out) {
  const int always = O_NOFOLLOW | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY);  // O_PATH allows few other flags
  const int fd = weft::open_beneath(directory, path, flags | always, 0, Resolve::no_links_no_mounts);
  if (fd < 0) return fd;
  out = Fd(fd);
  return 0;
}

std::string by_descriptor(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

bool is_overlay(int fd) {
  struct statfs facts {};
  return ::fstatfs(fd, &facts) == 0 && facts.f_type == OVERLAYFS_SUPER_MAGIC;
}

// Names a file that was made without a name (O_TMPFILE), which would vanish with its process.
int name_it(int fd, int directory, const char* name) {
  return result_of(::linkat(AT_FDCWD, by_descriptor(fd).c_str(), directory, name, AT_SYMLINK_FOLLOW));
}

// Copies content. Shares the blocks of the original if the file system can.
int copy_content(int from, int to, std::uint64_t bytes) {
  if (clone_file(from, to)) return 0;
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t count = ::copy_file_range(from, nullptr, to, nullptr, bytes - done, 0);
    if (count < 0) return -errno;
    if (count == 0) break;
    done += static_cast<std::uint64_t>(count);
  }
  return 0;
}

Result<Fd> make_and_open(int directory, const char* name, mode_t mode, const std::string& where) {
  if (::mkdirat(directory, name, mode) != 0 && errno != EEXIST) return sys_error(errno, where);
  Fd fd;
  if (const int failed = open_beneath(directory, name, O_RDONLY | O_DIRECTORY, fd); failed != 0)
    return sys_error(-failed, where);
  return fd;
}

}  // namespace

Result<std::unique_ptr<DraftTree>> DraftTree::open(const std::string& store) {
  WEFT_TRY(const Fd home, open_file(store, O_RDONLY | O_DIRECTORY));
  const std::string where = store + "/drafts";
  WEFT_TRY(Fd folder, make_and_open(home.get(), "drafts", 0700, where));
  WEFT_CHECK(make_and_open(folder.get(), "publishing", 0711, where + "/publishing"));
  WEFT_TRY(Fd root, make_and_open(folder.get(), "tree", 0700, where + "/tree"));
  WEFT_CHECK(weft::set_mode(root.get(), kShared, where + "/tree"));
  WEFT_TRY(const struct stat st, stat_fd(root.get(), where + "/tree"));
  const auto packs = stat_file(store + "/packs");
  const uid_t owner_of_packs = packs.ok() ? packs->st_uid : st.st_uid;
  std::unique_ptr<DraftTree> tree(new DraftTree(std::move(folder), std::move(root), st, owner_of_packs));
  tree->look_through(tree->root_.get(), kNewIno, 0);
  return tree;
}

DraftTree::DraftTree(Fd folder, Fd root, const struct stat& st, uid_t owner_of_packs)
    : folder_(std::move(folder)),
      root_(std::move(root)),
      root_st_(st),
      owner_of_packs_(owner_of_packs),
      hides_mappings_(is_overlay(root_.get())) {}

// True if a file counts as a draft's. A pack of a version has a second name in packs/. A user's file counts even with
// two names: the user can give it a second one through the process that publishes it.
bool DraftTree::counts(const struct stat& st) const {
  return S_ISREG(st.st_mode) && (st.st_nlink == 1 || st.st_uid != owner_of_packs_);
}

Ino DraftTree::number_of(const struct stat& st) const {
  if (st.st_ino == root_st_.st_ino && st.st_dev == root_st_.st_dev) return kNewIno;
  return kNewIno | (st.st_ino & kDraftNumberMask);
}

void DraftTree::remember(Ino ino, Ino dir, std::string_view name) {
  if (ino == kNewIno) return;
  const std::lock_guard lock(mutex_);
  Place& place = places_[ino];
  place.dir = dir;
  place.name = name;
}

void DraftTree::forget(Ino ino) {
  const std::lock_guard lock(mutex_);
  places_.erase(ino);
}

int DraftTree::known_path(Ino ino, std::string& out) {
  const std::lock_guard lock(mutex_);
  out.clear();
  for (unsigned depth = 0; ino != kNewIno; ++depth) {
    const auto place = places_.find(ino);
    if (place == places_.end()) return -ESTALE;
    if (depth == limits::kPathComponentsMax) return -ELOOP;
    out = out.empty() ? place->second.name : place->second.name + "/" + out;
    ino = place->second.dir;
  }
  return 0;
}

int DraftTree::path(Ino ino, std::string& out) {
  return known_path(ino, out);
}

int DraftTree::reach(Ino ino, int flags, Fd& fd, struct stat& st) {
  std::string path;
  if (const int failed = known_path(ino, path); failed != 0) return failed;
  if (const int failed = open_beneath(root_.get(), path.empty() ? "." : path.c_str(), flags, fd); failed != 0)
    return failed == -ENOENT ? -ESTALE : failed;
  if (::fstat(fd.get(), &st) != 0) return -errno;
  return number_of(st) == ino ? 0 : -ESTALE;
}

// Opens a file. Another mount of this store may have moved it: then the whole tree is searched.
int DraftTree::open_there(Ino ino, int flags, Fd& fd, struct stat& st) {
  const int first = reach(ino, flags, fd, st);
  if (first != -ESTALE) return first;
  look_through(root_.get(), kNewIno, 0);
  const int second = reach(ino, flags, fd, st);
  return second == -ESTALE ? -ENOENT : second;
}

// Returns the bytes of all drafts below a directory, and caches their places. Call with the rights of this process: a
// user needs none for a number to be found again.
std::uint64_t DraftTree::look_through(int directory, Ino dir, unsigned depth) {
  if (depth == limits::kPathComponentsMax) return 0;
  Fd copy;
  if (open_beneath(directory, ".", O_RDONLY | O_DIRECTORY, copy) != 0) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(copy.get()), ::closedir);
  if (!list) return 0;
  std::uint64_t bytes = 0;
  copy.release();
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    DraftFound found;
    if (found_at(directory, dir, entry->d_name, found) != 0) continue;
    if (counts(found.st)) bytes += static_cast<std::uint64_t>(found.st.st_size);
    Fd below;
    if (S_ISDIR(found.st.st_mode) && open_beneath(directory, entry->d_name, O_RDONLY | O_DIRECTORY, below) == 0)
      bytes += look_through(below.get(), found.ino, depth + 1);
  }
  return bytes;
}

void DraftTree::opened(int fd) {
  const std::lock_guard lock(mutex_);
  open_.insert(fd);
}

void DraftTree::closed(int fd) {
  const std::lock_guard lock(mutex_);
  open_.erase(fd);
}

std::uint64_t DraftTree::bytes() {
  std::uint64_t bytes = look_through(root_.get(), kNewIno, 0);
  const std::lock_guard lock(mutex_);
  for (const int fd : open_) {
    struct stat st {};
    if (::fstat(fd, &st) == 0 && st.st_nlink == 0) bytes += static_cast<std::uint64_t>(st.st_size);
  }
  return bytes;
}

int DraftTree::found_at(int directory, Ino dir, const char* name, DraftFound& found) {
  if (::fstatat(directory, name, &found.st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  if (found.st.st_dev != root_st_.st_dev) return -EXDEV;
  if ((found.st.st_ino & ~std::uint64_t{kDraftNumberMask}) != 0) return -EOVERFLOW;
  found.ino = number_of(found.st);
  remember(found.ino, dir, name);
  return 0;
}

int DraftTree::open_directory(Ino ino, Fd& fd) {
  struct stat st {};
  return open_there(ino, O_PATH | O_DIRECTORY, fd, st);
}

int DraftTree::lookup(Ino dir, const char* name, DraftFound& found) {
  Fd directory;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  return found_at(directory.get(), dir, name, found);
}

int DraftTree::stat(Ino ino, struct stat& st) {
  Fd fd;
  return open_there(ino, O_PATH, fd, st);
}

int DraftTree::read_link(Ino ino, std::string& target) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(fd.get(), "", text.data(), text.size());
  if (length < 0) return -errno;
  target.assign(text.data(), static_cast<std::size_t>(length));
  return 0;
}

int DraftTree::list(Ino dir, off_t offset, const AddEntry& add) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(dir, O_RDONLY | O_DIRECTORY, fd, st); failed != 0) return failed;
  const int directory = fd.get();
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::fdopendir(directory), ::closedir);
  if (!list) return -errno;
  fd.release();
  if (offset != 0) ::seekdir(list.get(), offset);
  errno = 0;
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    DraftFound found;
    if (name == "." || name == "..") {
      found.ino = dir;
      found.st = st;
    } else if (found_at(directory, dir, entry->d_name, found) != 0) {
      continue;  // removed meanwhile
    }
    if (!add(name, found, entry->d_off)) return 0;
    errno = 0;
  }
  return -errno;
}

int DraftTree::access(Ino ino, int mask) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  if (S_ISLNK(st.st_mode)) return 0;
  return result_of(::faccessat(AT_FDCWD, by_descriptor(fd.get()).c_str(), mask, AT_EACCESS));
}

int DraftTree::open(Ino ino, int flags, Fd& fd) {
  struct stat st {};
  return open_there(ino, flags & ~(O_CREAT | O_EXCL), fd, st);
}

bool DraftTree::is_shared(Ino dir) {
  if (dir == kNewIno) return true;
  struct stat st {};
  return stat(dir, st) == 0 && (st.st_mode & kShared) == kShared && st.st_uid == root_st_.st_uid;
}

mode_t DraftTree::allowed(Ino dir, mode_t mode) {
  return is_shared(dir) ? mode & 0700U : mode;
}

// True if the file belongs to a version: it has another name. After gc has deleted the version, the file is still the
// store owner's.
bool DraftTree::is_others(const Fd& file, const struct stat& st) const {
  if (!S_ISREG(st.st_mode)) return false;
  if (st.st_nlink > 1) return true;
  return st.st_uid == root_st_.st_uid &&
         ::faccessat(AT_FDCWD, by_descriptor(file.get()).c_str(), W_OK, AT_EACCESS) != 0;
}

std::uint64_t DraftTree::bytes_to_copy(Ino ino) {
  Fd fd;
  struct stat st {};
  const bool copied = open_there(ino, O_PATH, fd, st) == 0 && is_others(fd, st);
  return copied ? static_cast<std::uint64_t>(st.st_size) : 0;
}

int DraftTree::own(Ino ino, bool empty) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  if (!is_others(fd, st)) return 0;
  const Fd original(::open(by_descriptor(fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!original.valid()) return -errno;
  const int failed = replace_by_copy(ino, original.get(), empty);
  return failed == 0 ? -ESTALE : failed;
}

int DraftTree::replace_by_copy(Ino ino, int original, bool empty) {
  std::string path;
  Ino dir = 0;
  Fd directory;
  if (const int failed = known_path(ino, path); failed != 0) return failed;
  if (const int failed = parent(ino, dir); failed != 0) return failed;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string copy = ".weft-" + random_hex(8);
  const Fd made(::openat(directory.get(), ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (!made.valid()) return -errno;
  struct stat st {};
  int failed = result_of(::fstat(original, &st));
  if (failed == 0) failed = result_of(::fchmod(made.get(), st.st_mode & 07777U));
  if (failed == 0 && !empty) failed = copy_content(original, made.get(), static_cast<std::uint64_t>(st.st_size));
  if (failed == 0) failed = name_it(made.get(), directory.get(), copy.c_str());
  if (failed == 0) failed = result_of(::renameat(directory.get(), copy.c_str(), directory.get(), name.c_str()));
  if (failed != 0) ::unlinkat(directory.get(), copy.c_str(), 0);
  if (failed == 0) forget(ino);
  return failed;
}

int DraftTree::create(Ino dir, const char* name, int flags, mode_t mode, DraftFound& made, Fd& fd) {
  Fd directory;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  const mode_t final_mode = allowed(dir, mode & 07777U);
  const mode_t first_mode = final_mode | S_IRUSR | S_IWUSR;  // the open below needs both
  const int wanted = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | (flags & O_EXCL);
  fd = Fd(::openat(directory.get(), name, wanted, first_mode));
  if (!fd.valid()) return -errno;
  if (const int failed = found_at(directory.get(), dir, name, made); failed != 0) return failed;
  if ((flags & O_EXCL) != 0) return 0;
  const bool empties = (flags & O_TRUNC) != 0;
  if (const int failed = own(made.ino, empties); failed != 0) return failed;  // another process made it meanwhile
  return empties ? result_of(::ftruncate(fd.get(), 0)) : 0;
}

int DraftTree::finish_creating(Ino dir, mode_t mode, DraftFound& made) {
  const mode_t wanted = allowed(dir, mode & 07777U);
  if ((made.st.st_mode & 07777U) != (wanted | S_IRUSR | S_IWUSR) || (made.st.st_mode & 07777U) == wanted) return 0;
  made.st.st_mode = S_IFREG | wanted;
  return set_mode(made.ino, wanted);
}

int DraftTree::make_directory(Ino dir, const char* name, mode_t mode, DraftFound& made) {
  Fd directory;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  if (::mkdirat(directory.get(), name, allowed(dir, mode & 07777U)) != 0) return -errno;
  return found_at(directory.get(), dir, name, made);
}

// The directory gets its name once it is complete. A nameless one that a dead process left is used next.
int DraftTree::share(Ino dir, const char* name, DraftFound& found) {
  Fd directory, turn, shared;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  if (const int failed = open_beneath(folder_.get(), ".", O_RDONLY | O_DIRECTORY, turn); failed != 0) return failed;
  if (::flock(turn.get(), LOCK_EX) != 0) return -errno;
  if (::mkdirat(folder_.get(), kNextShared, 0700) != 0 && errno != EEXIST) return -errno;
  if (const int failed = open_beneath(folder_.get(), kNextShared, O_RDONLY | O_DIRECTORY, shared); failed != 0)
    return failed;
  if (::fchown(shared.get(), root_st_.st_uid, root_st_.st_gid) != 0) return -errno;
  if (::fchmod(shared.get(), kShared) != 0) return -errno;
  if (::renameat2(folder_.get(), kNextShared, directory.get(), name, RENAME_NOREPLACE) != 0 && errno != EEXIST)
    return -errno;
  return found_at(directory.get(), dir, name, found);
}

void DraftTree::share_directory(Ino dir) {
  Fd fd;
  struct stat st {};
  if (open_there(dir, O_RDONLY | O_DIRECTORY, fd, st) != 0) return;
  const auto names = list_directory(Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), "a namespace of new/");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const Fd draft(::openat(fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat facts {};
    if (!draft.valid() || ::fstat(draft.get(), &facts) != 0 || S_ISLNK(facts.st_mode)) continue;
    if (S_ISREG(facts.st_mode) && facts.st_nlink > 1) continue;  // it may be a pack of a version
    static_cast<void>(::chmod(by_descriptor(draft.get()).c_str(), facts.st_mode & 07700U));
  }
  if (::fchown(fd.get(), root_st_.st_uid, root_st_.st_gid) == 0) static_cast<void>(::fchmod(fd.get(), kShared));
}

int DraftTree::make_link(Ino dir, const char* name, const char* target, DraftFound& made) {
  Fd directory;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  if (::symlinkat(target, directory.get(), name) != 0) return -errno;
  return found_at(directory.get(), dir, name, made);
}

int DraftTree::remove(Ino dir, const char* name, int flags) {
  Fd directory;
  if (const int failed = open_directory(dir, directory); failed != 0) return failed;
  DraftFound gone;
  const bool known = found_at(directory.get(), dir, name, gone) == 0;
  if (::unlinkat(directory.get(), name, flags) != 0) return -errno;
  if (known) forget(gone.ino);
  return 0;
}

int DraftTree::rename(Ino dir, const char* name, Ino new_dir, const char* new_name, unsigned flags) {
  Fd from, to;
  if (const int failed = open_directory(dir, from); failed != 0) return failed;
  if (const int failed = open_directory(new_dir, to); failed != 0) return failed;
  if (::renameat2(from.get(), name, to.get(), new_name, flags) != 0) return -errno;
  DraftFound moved;
  static_cast<void>(found_at(to.get(), new_dir, new_name, moved));
  if ((flags & RENAME_EXCHANGE) != 0) static_cast<void>(found_at(from.get(), dir, name, moved));
  return 0;
}

int DraftTree::set_mode(Ino ino, mode_t mode) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  if (S_ISLNK(st.st_mode)) return -EOPNOTSUPP;
  return result_of(::chmod(by_descriptor(fd.get()).c_str(), mode & 07777U));
}

int DraftTree::set_owner(Ino ino, uid_t uid, gid_t gid) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  return result_of(::fchownat(fd.get(), "", uid, gid, AT_EMPTY_PATH));
}

int DraftTree::set_times(Ino ino, const timespec times[2]) {
  Fd fd;
  struct stat st {};
  if (const int failed = open_there(ino, O_PATH, fd, st); failed != 0) return failed;
  if (S_ISLNK(st.st_mode)) {
    Ino dir = 0;
    std::string path;
    if (const int failed = known_path(ino, path); failed != 0) return failed;
    if (const int failed = parent(ino, dir); failed != 0) return failed;
    Fd directory;
    if (const int failed = open_directory(dir, directory); failed != 0) return failed;
    const std::string name = path.substr(path.rfind('/') + 1);
    return result_of(::utimensat(directory.get(), name.c_str(), times, AT_SYMLINK_NOFOLLOW));
  }
  return result_of(::utimensat(AT_FDCWD, by_descriptor(fd.get()).c_str(), times, 0));
}

int DraftTree::parent(Ino ino, Ino& dir) {
  if (ino == kNewIno) {
    dir = kRootIno;
    return 0;
  }
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(ino);
  if (place == places_.end()) return -ESTALE;
  dir = place->second.dir;
  return 0;
}

}  // namespace weft
