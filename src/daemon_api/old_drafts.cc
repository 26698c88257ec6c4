#include "daemon_api/old_drafts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "base/limits.h"
#include "base/log.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr mode_t kShared = 01777;  // mode of new/ and of its namespaces

struct Entry {
  std::int64_t written = 0;  // newest change of a file in the draft, seconds since 1970
  std::uint64_t bytes = 0;
  bool in_use = false;
};

void add(const struct stat& st, Entry& entry) {
  entry.written = std::max<std::int64_t>({entry.written, st.st_mtim.tv_sec, st.st_ctim.tv_sec});
  if (S_ISREG(st.st_mode) && st.st_nlink == 1) entry.bytes += static_cast<std::uint64_t>(st.st_size);
}

Fd open_below(int directory, const std::string& name, int flags) {
  return Fd(::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

void look_at(int directory, const std::string& name, unsigned depth, Entry& entry) {
  struct stat st {};
  if (depth > limits::kPathComponentsMax || ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return;
  add(st, entry);
  if (S_ISREG(st.st_mode)) {
    const Fd file = open_below(directory, name, O_RDONLY);
    entry.in_use = entry.in_use || !file.valid() || !not_written(file.get());
  }
  if (!S_ISDIR(st.st_mode)) return;
  const Fd inner = open_below(directory, name, O_RDONLY | O_DIRECTORY);
  const auto names = list_directory(Fd(::fcntl(inner.get(), F_DUPFD_CLOEXEC, 0)), name);
  if (!names.ok()) return;
  for (const std::string& below : *names) look_at(inner.get(), below, depth + 1, entry);
}

using Visit = std::function<void(int directory, const std::string& name, const std::string& path)>;

// Visits the drafts of a directory and of the namespaces in it.
void each_draft(const Fd& directory, uid_t owner, const std::string& above, unsigned depth, const Visit& visit) {
  const auto names = list_directory(Fd(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0)), above);
  if (!names.ok() || depth > limits::kPathComponentsMax) return;
  for (const std::string& name : *names) {
    struct stat st {};
    if (::fstatat(directory.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string path = above.empty() ? name : above + "/" + name;
    const bool shared = S_ISDIR(st.st_mode) && st.st_uid == owner && (st.st_mode & kShared) == kShared;
    if (!shared) {
      visit(directory.get(), name, path);
      continue;
    }
    const Fd inner = open_below(directory.get(), name, O_RDONLY | O_DIRECTORY);
    if (inner.valid()) each_draft(inner, owner, path, depth + 1, visit);
  }
}

Result<std::vector<OldDraft>> find(const std::string& store_path, std::chrono::seconds kept, const Visit& found) {
  std::vector<OldDraft> old;
  const std::string where = store_path + "/drafts/tree";
  const auto root = open_file(where, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!root.ok() && (root.error().code == Errc::not_found || root.error().code == Errc::permission)) return old;
  if (!root.ok()) return root.error();
  WEFT_TRY(const struct stat st, stat_fd(root->get(), where));
  const std::int64_t now = ::time(nullptr);
  each_draft(*root, st.st_uid, "", 0, [&](int directory, const std::string& name, const std::string& path) {
    Entry entry;
    look_at(directory, name, 0, entry);
    const std::int64_t age = now - entry.written;
    if (entry.in_use || age < kept.count()) return;
    old.push_back({path, entry.bytes, static_cast<std::uint64_t>(age)});
    found(directory, name, path);
  });
  return old;
}

}  // namespace

Result<std::vector<OldDraft>> old_drafts(const std::string& store_path, std::chrono::seconds kept) {
  return find(store_path, kept, [](int, const std::string&, const std::string&) {});
}

// Moves each draft out of new/ before it deletes the files.
Result<std::vector<OldDraft>> remove_old_drafts(const std::string& store_path, std::chrono::seconds kept) {
  const Fd folder(::open((store_path + "/drafts").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  return find(store_path, kept, [&](int directory, const std::string& name, const std::string& path) {
    const std::string gone = "old-" + random_hex(8);
    if (::renameat(directory, name.c_str(), folder.get(), gone.c_str()) != 0) return;
    if (const Status removed = remove_tree_at(folder.get(), gone, "drafts/" + gone); !removed.ok())
      log_warning("gc: {}", removed.error().message);
    log_info("gc: the draft {} is removed: nobody has written to it for long", path);
  });
}

}  // namespace weft
