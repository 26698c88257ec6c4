// Renames in new/. A rename to a name with an @ publishes (drafts/publisher.h), in the steps of publish_renames.h.
#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/draft_ops.h"
#include "os/mounts.h"
#include "os/programs.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kDaemonPatience{10};
constexpr std::chrono::milliseconds kPoll{100};

// Checks whether the user may publish into `dir`. That makes it a namespace, which all users share: so it must be one
// already, or belong to the user.
Status may_name_in(Server& server, const UserIds& user, Ino dir) {
  if (user.uid == 0 || server.drafts->is_shared(dir)) return {};
  WEFT_TRY(const struct stat st, server.drafts->stat(dir));
  return st.st_uid == user.uid ? Status{} : Error{Errc::permission, "a directory of another user"};
}

// Waits for a daemon that restarts, if it lately said that the user may publish. Without it, the import would fail with
// EACCES.
void wait_for_daemon(Server& server, const UserIds& user, const GoesOn& goes_on) {
  const auto is_away = [&] {
    const Status may = may_publish(server, user);
    return !may.ok() && may.error().code == Errc::unreachable &&
           server.known_rights.may_publish(user.uid, std::chrono::steady_clock::now()) &&
           !may_write_store(server, user);
  };
  const auto until = std::chrono::steady_clock::now() + kDaemonPatience;
  while (is_away() && std::chrono::steady_clock::now() < until && goes_on().ok()) std::this_thread::sleep_for(kPoll);
}

// True if a signal tells the program of the request to end. Other signals, such as that of a child's end, do not stop a
// publish. A program outside of the mount's pid namespace has no pid here: any signal counts.
bool is_interrupted(fuse_req_t request) {
  const pid_t thread = fuse_req_ctx(request)->pid;
  return fuse_req_interrupted(request) != 0 && (thread == 0 || is_told_to_end(thread));
}

// Publishes a draft. At `until` the publish is cancelled.
Status publish(Server& server, fuse_req_t request, const PublishOrder& order, Deadline until) {
  const auto share = server.publishes.take(order.user.uid);
  if (!share) return too_many_at_once("publishes of this user");
  const GoesOn goes_on = [&]() -> Status {
    server.requests.alive();
    if (is_interrupted(request)) return Error{Errc::cancelled, "interrupted"};
    if (std::chrono::steady_clock::now() < until) return {};
    return Error{Errc::timed_out, fmt::format("other users wait for its directory, which lets it take {} seconds here; "
                                              "rename it by a path that begins with the mount's, as {}/new/{}",
                                              kHeldMax.count(), server.options.directory, order.name)};
  };
  wait_for_daemon(server, order.user, goes_on);
  return server.publisher->publish(order, goes_on);
}

// Publishes a draft in a RENAME. The kernel holds the directories until the reply.
Status publish_here(Server& server, fuse_req_t request, PublishOrder order) {
  if (order.request == 0) order.request = current_request();
  order.answered = current_request();
  const uid_t user = order.user.uid;
  const bool alone = order.dir == order.to && !server.drafts->is_shared(order.dir);
  if (alone || user == 0 || user == own_user()) return publish(server, request, order, Deadline::max());
  const auto hold = server.held_time.begin(user);
  if (!hold) return too_many_at_once("publishes in a directory that other users wait for");
  Status done = publish(server, request, order, hold->until);
  server.held_time.end(user, *hold);
  return done;
}

// The first RENAME of a thread lets the directories go, the second one answers.
Status answer_rename(Server& server, fuse_req_t request, PublishOrder order) {
  order.user = user_of(request);
  const auto thread = static_cast<std::uint32_t>(fuse_req_ctx(request)->pid);
  order.thread = thread;  // 0: the thread is not in the mount's pid namespace
  auto asked = server.publish_renames.asked(order, current_request());
  if (!asked && answered_failure(request, may_name_in(server, order.user, order.to))) return {};
  if (!asked && thread != 0) {
    server.publish_renames.ask(std::move(order));
    return Error{Errc::changed, "a draft: the kernel is asked to walk along its path again"};
  }
  if (asked) asked->order.user = order.user;
  Status outcome;
  if (asked && asked->outcome) {
    outcome = *std::move(asked->outcome);
    if (outcome.ok()) static_cast<void>(server.publisher->answer(asked->order, current_request()));
  } else {
    outcome = publish_here(server, request, asked ? std::move(asked->order) : std::move(order));
  }
  server.publish_renames.forget(thread);
  return reply_done(request, outcome);
}

// True if the rename publishes, and fills `order`. Else it is an ordinary rename: a file's own name may have an @.
bool is_publish(Server& server, Ino dir, const char* name, Ino new_dir, const PublishName& to, PublishOrder& order) {
  const auto draft = server.drafts->lookup(dir, name);  // a draft that is published is gone
  order.file = draft.ok() && S_ISREG(draft->st.st_mode);
  if (order.file && !server.drafts->is_shared(new_dir)) return false;
  order.dir = dir;
  order.to = new_dir;
  order.name = name;
  order.tag = to.tag;
  const auto path = server.drafts->places().path(new_dir);
  if (!path.ok()) return false;
  order.model = path->empty() ? to.name : *path + "/" + to.name;
  return true;
}

}  // namespace

void publish_asked(Server& server, fuse_req_t request) {
  const fuse_ctx* context = fuse_req_ctx(request);
  auto order =
      server.publish_renames.waiting(static_cast<std::uint32_t>(context->pid), context->uid, current_request());
  if (!order) return;
  const auto cached = open_cached(server.options.directory + "/new", shared_text(server.shared.head().mount_device));
  if (!cached.ok()) return;
  order->request = current_request();
  order->user = user_of(request);
  server.publish_renames.begin(*order);
  server.publish_renames.end(order->thread, publish(server, request, *order, Deadline::max()));
}

Status draft_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                    const char* new_name, unsigned flags) {
  if (!is_draft(ino_of(new_dir))) {
    fuse_reply_err(request, EROFS);
    return {};
  }
  PublishOrder order;
  const auto to = publish_name(new_name);
  if (to && is_publish(server, ino_of(dir), name, ino_of(new_dir), *to, order))
    return answer_rename(server, request, std::move(order));
  if (answered_failure(request,
                       server.drafts->rename(user_of(request), ino_of(dir), name, ino_of(new_dir), new_name, flags)))
    return {};
  const uid_t user = fuse_req_ctx(request)->uid;
  fuse_reply_err(request, 0);
  const auto moved = server.drafts->lookup(ino_of(new_dir), new_name);
  if (moved.ok()) server.checkpoints->changed(S_ISDIR(moved->st.st_mode) ? moved->ino : ino_of(new_dir), user);
  return {};
}

}  // namespace weft
