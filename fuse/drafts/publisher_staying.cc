// Publishes checkpoints, which stay where they are.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "base/log.h"
#include "fuse/drafts/draft_check.h"
#include "fuse/drafts/publish_folder.h"

namespace weft {
namespace {

constexpr std::uint64_t kNoRequest = 1ULL << 63U;  // no request number of the kernel has this bit
constexpr int kAttempts = 3;

// Copies a directory into `to`: files as hard links, directories as new ones that belong to the user.
class Links {
 public:
  explicit Links(const PublishOrder& order) : order_(order) {}

  int make(int from, int to, unsigned depth = 0) const {
    if (depth == limits::kPathComponentsMax) return -ELOOP;
    const auto names = list_directory(Fd(::fcntl(from, F_DUPFD_CLOEXEC, 0)), "a checkpoint");
    if (!names.ok()) return -EIO;
    for (const std::string& name : *names) {
      const bool own = depth == 0 && (name == kDraftErrorFile || name == kDraftPublishedFile);
      if (const int failed = own ? 0 : make_one(from, to, name, depth); failed != 0) return failed;
    }
    return 0;
  }

  int make_directory(int in, const char* name, Fd& made) const {
    if (::mkdirat(in, name, 0700) != 0) return -errno;
    made = Fd(::openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made.valid()) return -errno;
    return ::geteuid() != 0 || ::fchown(made.get(), order_.user.uid, order_.user.gid) == 0 ? 0 : -errno;
  }

 private:
  int make_one(int from, int to, const std::string& name, unsigned depth) const {
    struct stat st {};
    if (::fstatat(from, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    if (!S_ISDIR(st.st_mode)) return ::linkat(from, name.c_str(), to, name.c_str(), 0) == 0 ? 0 : -errno;
    const Fd inner = open_inner(from, name);
    if (!inner.valid()) return -errno;
    Fd made;
    if (const int failed = make_directory(to, name.c_str(), made); failed != 0) return failed;
    return make(inner.get(), made.get(), depth + 1);
  }

  // Opens a directory with the user's rights: it may be another user's.
  Fd open_inner(int from, const std::string& name) const {
    const ActingAs user(order_.user);
    return Fd(::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }

  const PublishOrder& order_;
};

// Resets a folder to its state before the import.
void begin_again(PublishFolder& folder) {
  Fd content;
  if (folder.open_content(content) == 0) ::renameat(folder.fd.get(), kDraftFactsFile, content.get(), kDraftFactsFile);
  ::unlinkat(folder.fd.get(), kAnswer, 0);
  folder.child = 0;
}

int link_facts(int from, int content) {
  if (::faccessat(content, kDraftFactsFile, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return 0;
  return ::linkat(from, kDraftFactsFile, content, kDraftFactsFile, 0) == 0 ? 0 : -errno;
}

}  // namespace

int DraftPublisher::take_staying(PublishOrder& order, PublishFolder& folder, bool waits) {
  order.request = kNoRequest | order.stays.ino;
  Fd draft;
  if (const int failed = tree_.open(order.stays.ino, O_RDONLY | O_DIRECTORY, draft); failed != 0) return failed;
  if (!check_not_written(draft.get(), waits).ok()) return -EBUSY;
  folder.name = folder_name(order.request);
  bool made = false;
  if (const int failed = open_folder(order.user, folder, made); failed != 0) return failed;
  if (!made || ::flock(folder.lock.get(), LOCK_EX | LOCK_NB) != 0) return -EBUSY;
  const int failed = link_in(order, folder);
  if (failed != 0) forget(folder);
  return failed;
}

int DraftPublisher::link_in(const PublishOrder& order, const PublishFolder& folder) {
  Fd directory, from, to;
  if (const int failed = tree_.open(order.dir, O_RDONLY | O_DIRECTORY, directory); failed != 0) return failed;
  if (const int failed = tree_.open(order.stays.ino, O_RDONLY | O_DIRECTORY, from); failed != 0) return failed;
  const Links links(order);
  if (const int failed = links.make_directory(folder.held.get(), kContent, to); failed != 0) return failed;
  if (const int failed = links.make(from.get(), to.get()); failed != 0) return failed;
  if (const int failed = link_facts(directory.get(), to.get()); failed != 0) return failed;
  return write_text(folder.fd.get(), kOrder, encode(order));  // written last: it marks the folder as complete
}

// Retries on ESTALE: a training that removes the checkpoint meanwhile changes the times of its files, once.
int DraftPublisher::publish_staying(const PublishOrder& order, PublishFolder& folder,
                                    const std::function<bool()>& pause) {
  int failed = -ESTALE;
  for (int attempt = 0; attempt < kAttempts && failed == -ESTALE; ++attempt) {
    if (attempt > 0) begin_again(folder);
    failed = run(order, folder, pause);
  }
  if (failed == -EINTR)
    begin_again(folder);
  else
    settle_staying(order, folder);
  return failed;
}

std::vector<std::pair<PublishOrder, PublishFolder>> DraftPublisher::taken_before() {
  std::vector<std::pair<PublishOrder, PublishFolder>> all;
  const Fd publishing(::openat(tree_.folder(), "publishing", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!publishing.valid()) return all;
  const auto names = list_directory(Fd(::fcntl(publishing.get(), F_DUPFD_CLOEXEC, 0)), "drafts/publishing");
  if (!names.ok()) return all;
  for (const std::string& name : *names) {
    PublishFolder folder;
    folder.name = name;
    if (name < folder_name(kNoRequest) || folder.open(publishing.get()) != 0) continue;
    auto order = order_in(folder.fd.get());
    if (order.ok())
      all.emplace_back(std::move(*order), std::move(folder));
    else if (folder.ended())
      forget(folder);
  }
  return all;
}

void DraftPublisher::note_published(const StayingDraft& draft, const PublishFolder& folder) {
  const auto said = said_in(folder.fd.get());
  Fd directory;
  if (!said || tree_.open(draft.ino, O_RDONLY | O_DIRECTORY, directory) != 0) return;  // it was removed meanwhile
  const auto model = said->text("model");
  const auto version = said->number("version");
  ::unlinkat(directory.get(), kDraftErrorFile, 0);
  ::unlinkat(directory.get(), kDraftPublishedFile, 0);
  if (!model.ok() || !version.ok()) return;
  const std::string text = fmt::format("{}@{}\n", *model, *version);
  const Fd file = leave_note(directory.get(), kDraftPublishedFile, 0644, text);
  if (!file.valid()) return;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const timespec written{static_cast<time_t>(draft.written_ns / kSecond),
                         static_cast<long>(draft.written_ns % kSecond)};
  const timespec times[2] = {written, written};
  ::futimens(file.get(), times);
  log_info("{} published from a checkpoint", text.substr(0, text.size() - 1));
}

// Call after the import has ended. Notes the outcome in the draft, and removes the links.
void DraftPublisher::settle_staying(const PublishOrder& order, const PublishFolder& folder) {
  Fd content, draft;
  if (is_published(folder.fd.get())) {
    note_published(order.stays, folder);
  } else if (folder.open_content(content) == 0) {
    give_back(content.get(), order, tree_.owner_of_packs());
    if (tree_.open(order.stays.ino, O_RDONLY | O_DIRECTORY, draft) == 0)
      ::renameat(content.get(), kDraftErrorFile, draft.get(), kDraftErrorFile);
  }
  forget(folder);
}

}  // namespace weft
