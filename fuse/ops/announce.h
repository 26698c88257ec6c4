// The announcer's operations (fuse/kernel/announcing.h). They change nothing, and report success if the change has
// already happened.
#pragma once

#include "fuse/state/server.h"
#include "weft/result.h"

namespace weft {

bool is_announcer(const Server& server, fuse_req_t request);

// Handles a LOOKUP by the announcer. True: replied, because the announcer is about to change `name`. False: answer it
// as any other lookup.
Result<bool> announced_lookup(Server& server, fuse_req_t request, fuse_ino_t dir, std::string_view name);

// For other processes these are writes to published files: Errc::read_only.
Status announced_mkdir(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, mode_t mode);
Status announced_removal(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name);  // rmdir or unlink
Status announced_rename(Server& server, fuse_req_t request, fuse_ino_t dir, const char* name, fuse_ino_t new_dir,
                        const char* new_name, unsigned flags);

}  // namespace weft
