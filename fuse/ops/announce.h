// What the announcer asks (fuse/kernel/announcing.h): nothing is changed, and it is told that it changed what is so.
#pragma once

#include "fuse/state/server.h"
#include "weft/result.h"

namespace weft {

bool is_announcer(const Server& server, fuse_req_t request);

// A LOOKUP of the announcer's, of a name that it is about to change. False: it is a lookup as any other.
Result<bool> announced_lookup(Server& server, fuse_req_t request, fuse_ino_t dir, std::string_view name);

// Of others they are writes to published files: Errc::read_only.
Status announced_mkdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode);
Status announced_rmdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);
Status announced_unlink(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);
Status announced_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                        const char* new_name, unsigned flags);

}  // namespace weft
