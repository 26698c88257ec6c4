// The operations. Each answers `request` itself when it returns success; a failure is turned into the error reply, and
// an exception too, in one place (ops.cc). errno's numbers appear where an operation's answer is a number of its own.
#pragma once

#include "fuse/state/attr.h"
#include "fuse/state/server.h"
#include "weft/result.h"

namespace weft {

void op_init(void* server, fuse_conn_info* connection);

Status op_lookup(Server& server, fuse_req_t request, fuse_ino_t parent, const char* name);
Status op_getattr(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file);
Status op_access(Server& server, fuse_req_t request, fuse_ino_t ino, int mask);
Status op_readlink(Server& server, fuse_req_t request, fuse_ino_t ino);
Status op_statfs(Server& server, fuse_req_t request, fuse_ino_t ino);

Status op_open(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file);
// Answers an open whose handle is in `file`. Returns what libfuse says of the sending.
int send_opened(fuse_req_t request, fuse_file_info* file, const OpenAnswer& answer);
Status op_release(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file);
Status op_read(Server& server, fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* file);
Status op_lseek(Server& server, fuse_req_t request, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* file);

// Since it is here the kernel asks of every file that somebody polls; all but .weft/events are ready.
Status op_poll(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file, fuse_pollhandle* handle);

Status op_opendir(Server& server, fuse_req_t request, fuse_ino_t dir, fuse_file_info* file);
Status op_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info* file);
Status op_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                      fuse_file_info* file);

Status op_getxattr(Server& server, fuse_req_t request, fuse_ino_t ino, const char* name, size_t size);
Status op_listxattr(Server& server, fuse_req_t request, fuse_ino_t ino, size_t size);

}  // namespace weft
