// Renames in new/. A rename to a name with an @ publishes (drafts/publisher.h).
#include <cerrno>
#include <chrono>
#include <thread>

#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/draft_ops.h"

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
// EACCES. The kernel locks the directories of the rename meanwhile, so no other user waits here.
void wait_for_daemon(Server& server, fuse_req_t request, const UserIds& user) {
  const auto is_away = [&] {
    const Status may = may_publish(server, user);
    return !may.ok() && may.error().code == Errc::unreachable &&
           server.known_rights.may_publish(user.uid, std::chrono::steady_clock::now()) &&
           !may_write_store(server, user);
  };
  const auto until = std::chrono::steady_clock::now() + kDaemonPatience;
  while (is_away() && std::chrono::steady_clock::now() < until && fuse_req_interrupted(request) == 0) {
    server.requests.alive();
    std::this_thread::sleep_for(kPoll);
  }
}

Status publish(Server& server, fuse_req_t request, PublishOrder order) {
  order.request = current_request();
  order.user = user_of(request);
  if (answered_failure(request, may_name_in(server, order.user, order.to))) return {};
  wait_for_daemon(server, request, order.user);
  return reply_done(request, server.publisher->publish(std::move(order), [&server, request] {
    server.requests.alive();
    return fuse_req_interrupted(request) == 0;
  }));
}

// True if the rename publishes, and fills `order`. Else it is an ordinary rename: a file's own name may have an @.
bool is_publish(Server& server, Ino dir, const char* name, Ino new_dir, const PublishName& to, PublishOrder& order) {
  const auto draft = server.drafts->lookup(dir, name);  // maybe an earlier server took the draft
  if (draft.ok() && S_ISREG(draft->st.st_mode) && !server.drafts->is_shared(new_dir)) return false;
  order.dir = dir;
  order.to = new_dir;
  order.name = name;
  order.tag = to.tag;
  const auto path = server.drafts->path(new_dir);
  if (!path.ok()) return false;
  order.model = path->empty() ? to.name : *path + "/" + to.name;
  return true;
}

}  // namespace

Status draft_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                    const char* new_name, unsigned flags) {
  if (!is_draft(ino_of(new_dir))) {
    fuse_reply_err(request, EROFS);
    return {};
  }
  PublishOrder order;
  const auto to = publish_name(new_name);
  if (to && is_publish(server, ino_of(dir), name, ino_of(new_dir), *to, order))
    return publish(server, request, std::move(order));
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
