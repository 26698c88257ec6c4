// The operations of new/ (src/drafts), called as those in ops.h. answered_failure() passes an errno of the kernel on
// unchanged.
#pragma once

#include <memory>
#include <string>

#include "drafts/draft_file.h"
#include "fuse/state/server.h"
#include "os/acting_as.h"
#include "weft/result.h"

namespace weft {

Status draft_lookup_top(Server& server, fuse_req_t request);  // new/ itself
Status draft_lookup(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);
Status draft_getattr(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file);
Status draft_setattr(Server& server, fuse_req_t request, fuse_ino_t node, struct stat* wanted, int to_set,
                     fuse_file_info* file);
Status draft_access(Server& server, fuse_req_t request, fuse_ino_t node, int mask);
Status draft_readlink(Server& server, fuse_req_t request, fuse_ino_t node);
Status draft_statfs(Server& server, fuse_req_t request, fuse_ino_t node);

Status draft_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                     fuse_file_info* file);
Status draft_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                         fuse_file_info* file);
Status draft_mkdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode);
Status draft_unlink(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);
Status draft_rmdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);
Status draft_symlink(Server& server, fuse_req_t request, const char* target, fuse_ino_t dir, const char* name);
Status draft_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                    const char* new_name, unsigned flags);

Status draft_open(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file);
Status draft_release(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file);
Status draft_create(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode,
                    fuse_file_info* file);
Status draft_write(Server& server, fuse_req_t request, fuse_ino_t node, const char* bytes, size_t size, off_t offset,
                   fuse_file_info* file);
Status draft_lseek(Server& server, fuse_req_t request, fuse_ino_t node, off_t offset, int whence, fuse_file_info* file);
Status draft_fsync(Server& server, fuse_req_t request, fuse_ino_t node, int data_only, fuse_file_info* file);
Status draft_fsyncdir(Server& server, fuse_req_t request, fuse_ino_t dir, int data_only, fuse_file_info* file);
Status draft_fallocate(Server& server, fuse_req_t request, fuse_ino_t node, int mode, off_t offset, off_t length,
                       fuse_file_info* file);

// A hard link between drafts of one user (drafts/draft_tree.h).
Status draft_link(Server& server, fuse_req_t request, fuse_ino_t node, fuse_ino_t dir, const char* name);

// The user who sent the request, and the calling thread with that user's rights.
UserIds user_of(fuse_req_t request);
ActingAs acting_for(fuse_req_t request);
// Returns the result of `act`, called with that user's rights.
template <class Act>
auto acting_as(const UserIds& user, const Act& act) {
  const ActingAs acting(user);
  return act();
}

// Publishes the draft that the thread of this LOOKUP of new/ has asked to rename, if there is one (publish_renames.h).
void publish_asked(Server& server, fuse_req_t request);

// Returns an open file, even if it has no name any more.
Result<std::shared_ptr<DraftFile>> open_draft(Server& server, fuse_ino_t node);
// As DraftTree::own(), with the user's rights. Copied bytes count against drafts_max.
Status own_draft(Server& server, const UserIds& user, Ino ino, bool empty);

// As PublishRights::may_publish(). Errc::unreachable also if there is no daemon and one answered less than a minute
// ago.
Status may_publish(Server& server, const UserIds& user);
// Checks whether the user may begin a draft in `dir`. Errc::permission: the user may not.
Status may_begin(Server& server, fuse_req_t request, Ino dir);
// True if the user needs no daemon: without one, the users who may write to the store may publish.
bool may_write_store(Server& server, const UserIds& user);

// Creates the directory of namespace NAME of models/ in the shared directory `dir`, with the rights of this process.
// Errc::not_found: models/ has no such namespace.
Result<DraftFound> share_namespace(Server& server, Ino dir, const std::string& name);
// Creates all missing namespace directories, so that a listing of `dir` shows them. Runs once after each commit. The
// directories are never removed. Best effort.
void share_namespaces(Server& server, Ino dir);

// Attributes and entries of drafts in FUSE's form.
struct stat stat_of_draft(const DraftFound& found);
fuse_entry_param entry_of_draft(const DraftFound& found);
// Replies with the errno of a failure. True if it replied.
bool answered_failure(fuse_req_t request, const Status& done);
template <class T>
bool answered_failure(fuse_req_t request, const Result<T>& result) {
  return !result.ok() && answered_failure(request, Status(result.error()));
}
// Replies with 0, or with the errno of a failure.
Status reply_done(fuse_req_t request, const Status& done);

}  // namespace weft
