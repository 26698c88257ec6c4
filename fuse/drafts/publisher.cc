#include "fuse/drafts/publisher.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/errc_names.h"
#include "base/log.h"
#include "fuse/drafts/caller.h"
#include "fuse/drafts/draft_check.h"
#include "fuse/drafts/import_process.h"
#include "fuse/drafts/publish_folder.h"
#include "fuse/kernel/errors.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kPauseMin{1}, kPauseMax{20};
constexpr time_t kForgottenAfterS = 120;  // the kernel resends to a new server at once

}  // namespace

std::optional<PublishName> publish_name(std::string_view entry) {
  const auto at = entry.find('@');
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  return PublishName{std::string(entry.substr(0, at)), std::string(entry.substr(at + 1))};
}

int DraftPublisher::publish(PublishOrder order, const std::function<bool()>& pause) {
  PublishFolder folder;
  folder.name = folder_name(order.request, options_.mount);
  int failed = take(order, folder);
  if (failed == 0 && folder.over) return 0;
  if (failed == 0) failed = run(order, folder, pause);
  if (failed == 0) return finish(order, folder);
  if (!folder.fd.valid()) return failed;
  const int lost = put_back(order, folder);
  if (lost != 0) log_error("{}: the draft stays in drafts/publishing/{}", order.name, folder.name);
  return failed;
}

int DraftPublisher::open_folder(const UserIds& user, PublishFolder& folder, bool& made) {
  const Fd publishing(::openat(tree_.folder(), "publishing", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!publishing.valid()) return -errno;
  made = ::mkdirat(publishing.get(), folder.name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return -errno;
  if (const int failed = folder.open(publishing.get()); failed != 0) return failed;
  if (::flock(folder.fd.get(), LOCK_SH) != 0) return -errno;  // held while the folder is in use
  return folder.make_held(user);
}

// An existing folder belongs to the same request: an earlier server began it.
int DraftPublisher::take(PublishOrder& order, PublishFolder& folder) {
  bool made = false;
  if (const int failed = open_folder(order.user, folder, made); failed != 0) return failed;
  const auto before = made ? Error{Errc::not_found, "no order"} : order_in(folder.fd.get());
  if (before.ok() && folder.holds(*before)) {
    order.file = before->file;
    return 0;
  }
  folder.over = !made && is_published(folder.fd.get());
  return folder.over ? 0 : move_in(order, folder);
}

// The user's rights decide whether the draft may move. The order is written before the draft moves.
int DraftPublisher::move_in(PublishOrder& order, const PublishFolder& folder) {
  Fd dir;
  if (const int failed = look_at(order, dir); failed != 0) return failed;
  if (const int failed = write_text(folder.fd.get(), kOrder, encode(order)); failed != 0) return failed;
  const ActingAs user(order.user);
  if (order.file && ::mkdirat(folder.held.get(), kContent, 0700) != 0 && errno != EEXIST) return -errno;
  const std::string to = order.file ? std::string(kContent) + "/" + order.name : kContent;
  if (::renameat2(dir.get(), order.name.c_str(), folder.held.get(), to.c_str(), RENAME_NOREPLACE) != 0) return -errno;
  if (order.file) ::unlinkat(dir.get(), (order.name + kDraftErrorFile).c_str(), 0);  // of an earlier attempt
  return 0;
}

int DraftPublisher::look_at(PublishOrder& order, Fd& dir) {
  const ActingAs user(order.user);
  DraftFound draft;
  int failed = tree_.lookup(order.dir, order.name.c_str(), draft);
  if (failed == 0) failed = tree_.open_directory(order.dir, dir);
  if (failed != 0) return failed;
  order.file = S_ISREG(draft.st.st_mode);
  return order.file || S_ISDIR(draft.st.st_mode) ? 0 : -EINVAL;
}

int DraftPublisher::run(const PublishOrder& order, PublishFolder& folder, const std::function<bool()>& pause) {
  Fd content;
  if (const int failed = folder.open_content(content); failed != 0) return failed;
  const bool begun = !folder.ended() || said_in(folder.fd.get()).has_value();
  if (!begun) {
    auto facts = check_draft(content.get(), pause);
    if (!facts.ok()) return refuse(content.get(), facts.error());
    DraftFacts said = facts->value_or(DraftFacts());
    if (said.durability.empty()) said.durability = options_.durability;
    if (said.metrics.empty()) said.metrics = trainer_metrics(content.get());
    if (::renameat(content.get(), kDraftFactsFile, folder.fd.get(), kDraftFactsFile) != 0 && errno != ENOENT)
      return -errno;
    ImportCommandLine line{options_.program,     options_.store,       order.model,    order.tag,
                           order.stays.ino != 0, options_.trust_store, std::move(said)};
    const Fd answer(::openat(folder.fd.get(), kAnswer, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!answer.valid()) return -errno;
    const auto child = start_import(line, order.user, {content.get(), answer.get(), folder.lock.get()});
    if (!child.ok()) return refuse(content.get(), child.error());
    folder.child = *child;
    log_debug(LogCategory::drafts, "draft {} of user {}: process {} publishes it as {}", folder.name, order.user.uid,
              *child, order.model);
    // The child holds the lock through its open file description. A second one tells when the child ends.
    folder.lock = Fd(::openat(folder.fd.get(), kLock, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  }
  auto time = kPauseMin;
  bool asked = false;
  while (!folder.ended()) {
    std::this_thread::sleep_for(time);
    time = std::min(2 * time, kPauseMax);
    if (pause() || asked || folder.child == 0) continue;
    ::kill(folder.child, SIGINT);
    asked = true;
  }
  const auto answer = said_in(folder.fd.get());
  if (!answer && asked) return -EINTR;  // it was cancelled before it wrote an answer
  if (!answer)
    return refuse(content.get(), Error{Errc::io, options_.program + ": it did not run, or ended without an answer"});
  if (answer->find("error") == nullptr) return 0;
  const auto code = answer->text("error");
  const auto message = answer->text("message");
  return refuse(content.get(), Error{errc_named(code.ok() ? *code : "").value_or(Errc::internal),
                                     message.ok() ? *message : "the import failed"});
}

// The folder and the answer stay for a while: the kernel may resend the request.
int DraftPublisher::finish(const PublishOrder& order, PublishFolder& folder) {
  log_info("{} published by user {}", order.model, order.user.uid);
  // the directory is a namespace from now on
  if (order.to != 0 && !tree_.is_shared(order.to)) tree_.share_directory(order.to);
  const Status gone = remove_tree_at(folder.held.get(), kContent, "drafts/publishing/" + folder.name);
  if (!gone.ok()) log_warning("{}", gone.error().message);
  return 0;
}

int DraftPublisher::forget(const PublishFolder& folder) {
  const Status gone = remove_tree_at(tree_.folder(), "publishing/" + folder.name, "drafts/publishing/" + folder.name);
  if (!gone.ok()) log_warning("{}", gone.error().message);
  return gone.ok() ? 0 : -EIO;
}

// If another draft has taken the name, the draft gets a unique one.
int DraftPublisher::put_back(const PublishOrder& order, PublishFolder& folder) {
  Fd content, dir;
  if (folder.holds(order) && folder.open_content(content) == 0) {
    static_cast<void>(::renameat(folder.fd.get(), kDraftFactsFile, content.get(), kDraftFactsFile));
    give_back(content.get(), order, tree_.owner_of_packs());
    const int from = order.file ? content.get() : folder.held.get();
    const std::string& name = order.name;
    const std::string inner = order.file ? name : kContent;
    const std::string other = name + "." + folder.name;
    const auto moves_to = [&](const std::string& as) {
      return ::renameat2(from, inner.c_str(), dir.get(), as.c_str(), RENAME_NOREPLACE) == 0;
    };
    bool is_back = false;
    if (tree_.open_directory(order.dir, dir) == 0) {
      const ActingAs user(order.user);  // this user may lack the right to write to `dir`
      is_back = moves_to(name) || moves_to(other);
    }
    if (!is_back && (tree_.open_directory(kNewIno, dir) != 0 || !(moves_to(name) || moves_to(other)))) return -EIO;
    const ActingAs user(order.user);  // another user's file may have this name
    if (order.file) ::renameat(from, kDraftErrorFile, dir.get(), (name + kDraftErrorFile).c_str());
  }
  return forget(folder);
}

void DraftPublisher::recover(time_t now) {
  const Fd publishing(::openat(tree_.folder(), "publishing", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!publishing.valid()) return;
  const auto names = list_directory(Fd(::fcntl(publishing.get(), F_DUPFD_CLOEXEC, 0)), "drafts/publishing");
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    PublishFolder folder;
    folder.name = name;
    struct stat st {};
    if (::fstatat(publishing.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (st.st_ctime + kForgottenAfterS > now || folder.open(publishing.get()) != 0) continue;
    if (::flock(folder.fd.get(), LOCK_EX | LOCK_NB) != 0 || !folder.ended()) continue;
    const auto order = order_in(folder.fd.get());
    if (!order.ok()) {
      Fd content;
      if (folder.open_content(content) != 0) forget(folder);
      continue;
    }
    if (order->stays.ino != 0) continue;
    if (is_published(folder.fd.get())) {
      forget(folder);
    } else if (put_back(*order, folder) == 0) {
      log_warning("{}: a publish that was cut short is a draft again", order->name);
    }
  }
}

}  // namespace weft
