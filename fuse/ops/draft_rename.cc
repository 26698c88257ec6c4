// Renames in new/. A rename to a name with an @ publishes (fuse/drafts/publisher.h).
#include <cerrno>
#include <string>

#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/draft_ops.h"

namespace weft {
namespace {

// Checks whether the user may publish into `dir`. That makes it a namespace, which all users share: so it must be one
// already, or belong to the user.
int may_name_in(Server& server, const UserIds& user, Ino dir) {
  if (user.uid == 0 || server.drafts->is_shared(dir)) return 0;
  struct stat st {};
  if (const int failed = server.drafts->stat(dir, st); failed != 0) return failed;
  return st.st_uid == user.uid ? 0 : -EACCES;
}

Status publish(Server& server, fuse_req_t request, PublishOrder order) {
  order.request = current_request();
  order.user = user_of(request);
  if (answered_failure(request, may_name_in(server, order.user, order.to))) return {};
  const int failed = server.publisher->publish(std::move(order), [&server, request] {
    server.requests.alive();
    return fuse_req_interrupted(request) == 0;
  });
  fuse_reply_err(request, -failed);
  return {};
}

// True if the rename publishes, and fills `order`. Else it is an ordinary rename: a file's own name may have an @.
bool is_publish(Server& server, Ino dir, const char* name, Ino new_dir, const PublishName& to, PublishOrder& order) {
  DraftFound draft;
  const bool there = server.drafts->lookup(dir, name, draft) == 0;  // maybe an earlier server took the draft
  if (there && S_ISREG(draft.st.st_mode) && !server.drafts->is_shared(new_dir)) return false;
  order.dir = dir;
  order.to = new_dir;
  order.name = name;
  order.tag = to.tag;
  if (server.drafts->path(new_dir, order.model) != 0) return false;
  if (!order.model.empty()) order.model += "/";
  order.model += to.name;
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
  int failed = 0;
  {
    const ActingAs user = acting_for(request);
    failed = server.drafts->rename(ino_of(dir), name, ino_of(new_dir), new_name, flags);
  }
  fuse_reply_err(request, -failed);
  DraftFound moved;
  if (failed != 0 || server.drafts->lookup(ino_of(new_dir), new_name, moved) != 0) return {};
  server.checkpoints->changed(S_ISDIR(moved.st.st_mode) ? moved.ino : ino_of(new_dir));
  return {};
}

}  // namespace weft
