#include "drafts/draft_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "drafts/draft_clock.h"
#include "os/acting_as.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/open_beneath.h"
#include "os/tree_walk.h"

namespace weft {
namespace {

constexpr char kNextShared[] = "namespace";    // in folder(): a shared directory that is not named yet
constexpr char kSharing[] = "namespace.lock";  // in folder(): locked while that directory is made
constexpr mode_t kPermissions = 07777;

Result<Fd> open_below(int directory, const std::string& path, int flags) {
  const int always = O_NOFOLLOW | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY);  // O_PATH allows few other flags
  return open_beneath(directory, path, flags | always, 0, Resolve::no_links_no_mounts);
}

Result<Fd> open_directory_below(int directory, const std::string& path) {
  return open_below(directory, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> enter_below(const TreeEntry& entry) {
  return open_directory_below(entry.directory, entry.name);
}

Result<Fd> make_and_open(int directory, const std::string& name, mode_t mode, const std::string& where) {
  WEFT_CHECK(ensure_directory_at(directory, name, mode, where));
  auto fd = open_directory_below(directory, name);
  if (!fd.ok()) return Error{fd.error().code, where + ": " + fd.error().message};
  return fd;
}

std::size_t components_of(const std::string& path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::ranges::count(path, '/'));
}

// Opens a directory to add an entry. ELOOP: the path of the entry would be too long for path().
Result<Fd> open_to_add(DraftTree& tree, Ino dir) {
  WEFT_TRY(Fd directory, tree.open_directory(dir));
  WEFT_TRY(const std::string path, tree.places().path(dir));
  if (components_of(path) == limits::kPathComponentsMax) return too_deep(path);
  return directory;
}

// Checks whether an entry may move to where its path has `components` components: so may the entries below it.
Status check_depth(const Fd& directory, const std::string& name, std::size_t components) {
  const auto moved = open_directory_below(directory.get(), name);
  if (!moved.ok()) return {};
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [components](const TreeEntry& entry) -> Result<WalkNext> {
    if (components + entry.depth + 1 > limits::kPathComponentsMax) return too_deep(entry.path);
    return WalkNext::enter;
  };
  walk.open = enter_below;
  walk.failed = pass_failed;
  return walk_tree(*moved, name, walk);
}

}  // namespace

Result<std::unique_ptr<DraftTree>> DraftTree::open(const std::string& store) {
  WEFT_TRY(const Fd home, open_file(store, O_RDONLY | O_DIRECTORY));
  const std::string where = store + "/drafts";
  WEFT_TRY(Fd folder, make_and_open(home.get(), "drafts", 0700, where));
  mark_clock(folder.get());
  WEFT_CHECK(make_and_open(folder.get(), "publishing", 0711, where + "/publishing"));
  WEFT_TRY(Fd root, make_and_open(folder.get(), "tree", 0700, where + "/tree"));
  WEFT_CHECK(weft::set_mode(root.get(), kSharedMode, where + "/tree"));
  WEFT_TRY(const struct stat st, stat_fd(root.get(), where + "/tree"));
  std::unique_ptr<DraftTree> tree(new DraftTree(std::move(folder), std::move(root), st, DraftRules::of(store, st)));
  tree->search();
  return tree;
}

DraftTree::DraftTree(Fd folder, Fd root, const struct stat& st, DraftRules rules)
    : folder_(std::move(folder)),
      root_(std::move(root)),
      root_st_(st),
      rules_(rules),
      hides_mappings_(is_on_overlay(root_.get())),
      places_(st) {}

Result<OpenedFile> DraftTree::reach(Ino ino, int flags) {
  WEFT_TRY(const std::string path, places_.path(ino));
  auto fd = open_below(root_.get(), path.empty() ? "." : path, flags);
  if (!fd.ok()) return fd.error().code == Errc::not_found ? draft_moved() : fd.error();
  OpenedFile file{std::move(fd).value(), {}};
  WEFT_TRY(file.st, stat_fd(file.fd.get(), path));
  return places_.number_of(file.st) == ino ? Result<OpenedFile>(std::move(file)) : draft_moved();
}

// Opens a file. Another mount of this store may have moved it: then the whole tree is searched.
Result<OpenedFile> DraftTree::open_there(Ino ino, int flags) {
  auto first = reach(ino, flags);
  if (first.ok() || first.error().code != Errc::changed) return first;
  search();
  auto second = reach(ino, flags);
  if (second.ok() || second.error().code != Errc::changed) return second;
  return Error{Errc::not_found, "a draft: it does not exist"};
}

// Counts entries whose paths are too long for path(), too: a rename may move a directory down while another thread
// makes directories below it.
DraftUse DraftTree::search(const Visit& visit) {
  const auto root = open_directory_below(root_.get(), ".");
  if (!root.ok()) return {};
  DraftCount count(rules_);
  std::vector<Ino> above{kNewIno};  // the directories that lead to an entry
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [&](const TreeEntry& entry) -> Result<WalkNext> {
    above.resize(entry.depth + 1);
    const auto draft = places_.found(entry.st, above.back(), entry.name);
    if (!draft.ok()) return WalkNext::pass;
    if (visit) visit(above.back(), entry.name);
    count.add(entry.st);
    above.push_back(draft->ino);
    return WalkNext::enter;
  };
  walk.open = enter_below;
  walk.failed = pass_failed;
  walk.components_max = 2 * limits::kPathComponentsMax;
  static_cast<void>(walk_tree(*root, "new", walk));
  return count.use();
}

void DraftTree::opened(int fd) {
  const MutexLock lock(mutex_);
  open_.insert(fd);
}

void DraftTree::closed(int fd) {
  const MutexLock lock(mutex_);
  open_.erase(fd);
}

DraftUse DraftTree::use() {
  DraftUse use = search();
  const MutexLock lock(mutex_);
  for (const int fd : open_) {
    const auto st = stat_fd(fd, "a draft");
    if (!st.ok() || st->st_nlink != 0) continue;
    use.bytes += static_cast<std::uint64_t>(st->st_size);
    ++use.inodes[st->st_uid];
  }
  return use;
}

Result<DraftFound> DraftTree::found_at(int directory, Ino dir, const std::string& name) {
  WEFT_TRY(const struct stat st, stat_at(directory, name));
  WEFT_TRY(DraftFound draft, places_.found(st, dir, name));
  draft.generation = birth_at(directory, name);
  return draft;
}

Result<Fd> DraftTree::open_directory(Ino ino) {
  return open(ino, O_PATH | O_DIRECTORY);
}

Result<Fd> DraftTree::open_to_list(Ino ino) {
  return open(ino, O_RDONLY | O_DIRECTORY);
}

Result<DraftFound> DraftTree::lookup(Ino dir, const std::string& name) {
  WEFT_TRY(const Fd directory, open_directory(dir));
  return found_at(directory.get(), dir, name);
}

Result<struct stat> DraftTree::stat(Ino ino) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  return file.st;
}

Result<std::string> DraftTree::read_link(Ino ino) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  return weft::read_link(file.fd.get());
}

Status DraftTree::list(Ino dir, off_t offset, const AddEntry& add) {
  WEFT_TRY(const OpenedFile directory, open_there(dir, O_RDONLY | O_DIRECTORY));
  const DraftFound self{dir, directory.st};
  return read_directory(directory.fd, offset, [&](const std::string& name, off_t next) {
    if (name == "." || name == "..") return add(name, self, next);
    const auto st = stat_at(directory.fd.get(), name);
    const auto draft = st.ok() ? places_.found(*st, dir, name) : Result<DraftFound>(st.error());
    return !draft.ok() || add(name, *draft, next);  // it may have been removed meanwhile
  });
}

Status DraftTree::access(Ino ino, int mask) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  return S_ISLNK(file.st.st_mode) ? Status{} : check_access(file.fd.get(), mask);
}

Result<Fd> DraftTree::open(Ino ino, int flags) {
  WEFT_TRY(OpenedFile file, open_there(ino, flags & ~(O_CREAT | O_EXCL)));
  return std::move(file.fd);
}

bool DraftTree::is_shared(Ino dir) {
  if (dir == kNewIno) return true;
  const auto st = stat(dir);
  return st.ok() && rules_.is_shared(*st);
}

mode_t DraftTree::allowed(Ino dir, mode_t mode) {
  return mode & (is_shared(dir) ? 0700U : kPermissions);
}

// True if the file may belong to a version or to another draft: it has another name. After gc has deleted the version,
// the file is still the store owner's.
bool DraftTree::is_others(const OpenedFile& file) const {
  if (!S_ISREG(file.st.st_mode)) return false;
  if (file.st.st_nlink > 1) return true;
  return file.st.st_uid == rules_.owner && !check_access(file.fd.get(), W_OK).ok();
}

std::uint64_t DraftTree::bytes_to_copy(Ino ino) {
  const auto file = open_there(ino, O_PATH);
  return file.ok() && is_others(*file) ? static_cast<std::uint64_t>(file->st.st_size) : 0;
}

Status DraftTree::own(Ino ino, bool empty) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  if (!is_others(file)) return {};
  WEFT_TRY(const Fd original, open_descriptor(file.fd.get()));
  WEFT_CHECK(replace_by_copy(ino, original.get(), empty));
  return Error{Errc::changed, "a draft: it was replaced by a copy"};
}

Status DraftTree::replace_by_copy(Ino ino, int original, bool empty) {
  WEFT_TRY(const DraftPlaces::Place place, places_.place(ino));
  WEFT_TRY(const Fd directory, open_directory(place.dir));
  WEFT_TRY(const struct stat st, stat_fd(original, place.name));
  WEFT_TRY(const Fd made, make_nameless_file(directory.get(), 0600));
  WEFT_CHECK(weft::set_mode(made.get(), st.st_mode & kPermissions, place.name));
  if (!empty) WEFT_CHECK(copy_content(original, made.get(), static_cast<std::uint64_t>(st.st_size), place.name));
  WEFT_CHECK(put_file(made.get(), directory.get(), place.name));
  places_.forget(ino);
  return {};
}

Result<DraftCreated> DraftTree::create(Ino dir, const std::string& name, int flags, mode_t mode) {
  WEFT_TRY(const Fd directory, open_to_add(*this, dir));
  const mode_t first_mode = allowed(dir, mode) | S_IRUSR | S_IWUSR;  // the open below needs both
  DraftCreated made;
  WEFT_TRY(made.fd, open_at(directory.get(), name, O_RDWR | O_CREAT | O_NOCTTY | (flags & O_EXCL), first_mode));
  WEFT_TRY(made.found, found_at(directory.get(), dir, name));
  if ((flags & O_EXCL) != 0) return made;
  const bool empties = (flags & O_TRUNC) != 0;
  WEFT_CHECK(own(made.found.ino, empties));  // another process made it meanwhile
  if (empties) WEFT_CHECK(resize_file(made.fd.get(), 0, name));
  return made;
}

Status DraftTree::finish_creating(Ino dir, mode_t mode, DraftFound& made) {
  const mode_t wanted = allowed(dir, mode), now = made.st.st_mode & kPermissions;
  if (now != (wanted | S_IRUSR | S_IWUSR) || now == wanted) return {};
  made.st.st_mode = S_IFREG | wanted;
  return set_mode(made.ino, wanted);
}

Result<DraftFound> DraftTree::make_directory(Ino dir, const std::string& name, mode_t mode) {
  WEFT_TRY(const Fd directory, open_to_add(*this, dir));
  WEFT_CHECK(make_directory_at(directory.get(), name, allowed(dir, mode)));
  return found_at(directory.get(), dir, name);
}

// The directory gets its name once it is complete. A nameless one that a dead process left is used next.
Result<DraftFound> DraftTree::share(Ino dir, const std::string& name) {
  WEFT_TRY(const Fd directory, open_directory(dir));
  WEFT_TRY(const Fd turn, open_at(folder_.get(), kSharing, O_RDWR | O_CREAT, 0600));
  give_as(turn.get(), folder_.get());
  WEFT_CHECK(lock_fd(turn.get(), LockKind::exclusive, LockWait::yes, kSharing));
  WEFT_CHECK(ensure_directory_at(folder_.get(), kNextShared, 0700));
  WEFT_TRY(const Fd shared, open_directory_below(folder_.get(), kNextShared));
  WEFT_CHECK(change_owner(shared.get(), root_st_.st_uid, root_st_.st_gid));
  WEFT_CHECK(weft::set_mode(shared.get(), kSharedMode, name));
  const Status named = rename_at(folder_.get(), kNextShared, directory.get(), name, RENAME_NOREPLACE);
  if (!named.ok() && named.error().code != Errc::exists) return named.error();
  return found_at(directory.get(), dir, name);
}

void DraftTree::share_directory(Ino dir) {
  const auto directory = open_to_list(dir);
  if (!directory.ok()) return;
  TreeWalk walk(limits::kDraftEntriesMax);
  walk.visit = [](const TreeEntry& entry) -> Result<WalkNext> {
    const auto draft = open_at(entry.directory, entry.name, O_PATH);
    const auto st = draft.ok() ? stat_fd(draft->get(), entry.name) : Result<struct stat>(draft.error());
    if (!st.ok() || S_ISLNK(st->st_mode)) return WalkNext::pass;
    const bool may_be_pack = S_ISREG(st->st_mode) && st->st_nlink > 1;
    if (!may_be_pack) static_cast<void>(change_mode(draft->get(), st->st_mode & 07700U));
    return WalkNext::pass;
  };
  walk.failed = pass_failed;
  static_cast<void>(walk_tree(*directory, "a namespace of new/", walk));
  if (change_owner(directory->get(), root_st_.st_uid, root_st_.st_gid).ok())
    static_cast<void>(weft::set_mode(directory->get(), kSharedMode, "a namespace of new/"));
}

Result<DraftFound> DraftTree::make_link(Ino dir, const std::string& name, const std::string& target) {
  WEFT_TRY(const Fd directory, open_to_add(*this, dir));
  WEFT_CHECK(make_link_at(directory.get(), name, target));
  return found_at(directory.get(), dir, name);
}

Result<DraftFound> link_draft(DraftTree& tree, const UserIds& user, Ino ino, Ino dir, const std::string& name) {
  const ActingAs acting(user);
  WEFT_TRY(const Fd directory, open_to_add(tree, dir));
  WEFT_TRY(const Fd file, tree.open(ino, O_PATH));
  WEFT_TRY(const struct stat st, stat_fd(file.get(), name));
  if (user.uid != 0 && user.uid != st.st_uid)
    return Error{Errc::permission, name + ": the file belongs to another user"};
  WEFT_CHECK(link_descriptor_at(file.get(), directory.get(), name));
  return tree.lookup(dir, name);
}

Status DraftTree::remove(Ino dir, const std::string& name, int flags) {
  WEFT_TRY(const Fd directory, open_directory(dir));
  const auto gone = found_at(directory.get(), dir, name);
  WEFT_CHECK(remove_at(directory.get(), name, flags));
  if (gone.ok()) places_.forget(gone->ino);
  return {};
}

Status DraftTree::rename(const UserIds& user, Ino dir, const std::string& name, Ino new_dir,
                         const std::string& new_name, unsigned flags) {
  std::optional<ActingAs> acting(std::in_place, user);
  WEFT_TRY(const Fd from, open_directory(dir));
  WEFT_TRY(const Fd to, open_to_add(*this, new_dir));
  WEFT_TRY(const std::string old_path, places_.path(dir));
  WEFT_TRY(const std::string new_path, places_.path(new_dir));
  acting.reset();  // the user may lack the right to list a directory that moves along
  const std::size_t before = components_of(old_path), now = components_of(new_path);
  if (now > before) WEFT_CHECK(check_depth(from, name, now + 1));
  if (before > now && (flags & RENAME_EXCHANGE) != 0) WEFT_CHECK(check_depth(to, new_name, before + 1));
  acting.emplace(user);
  WEFT_CHECK(rename_at(from.get(), name, to.get(), new_name, flags));
  static_cast<void>(found_at(to.get(), new_dir, new_name));
  if ((flags & RENAME_EXCHANGE) != 0) static_cast<void>(found_at(from.get(), dir, name));
  return {};
}

Status DraftTree::set_mode(Ino ino, mode_t mode) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  if (S_ISLNK(file.st.st_mode)) return Error{Errc::unsupported, "a link has no mode of its own"};
  return change_mode(file.fd.get(), mode & kPermissions);
}

Status DraftTree::set_owner(Ino ino, uid_t uid, gid_t gid) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  return change_owner(file.fd.get(), uid, gid);
}

Status DraftTree::set_times(Ino ino, const timespec times[2]) {
  WEFT_TRY(const OpenedFile file, open_there(ino, O_PATH));
  if (!S_ISLNK(file.st.st_mode)) return change_times(file.fd.get(), times);
  WEFT_TRY(const DraftPlaces::Place place, places_.place(ino));
  WEFT_TRY(const Fd directory, open_directory(place.dir));
  return change_link_times(directory.get(), place.name, times);
}

}  // namespace weft
