// The operations. An operation that returns success has answered `request` itself. ops.cc turns failures and exceptions
// into error replies, in one place. Operations use errno values only for replies that no Errc stands for.
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
// Replies to an open whose handle is in `file`. Returns the result of libfuse's send.
int send_opened(fuse_req_t request, fuse_file_info* file, const OpenAnswer& answer);
Status op_release(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file);
Status op_read(Server& server, fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* file);
Status op_lseek(Server& server, fuse_req_t request, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* file);

// Because of this operation the kernel asks on poll(2) of any file. All files but .weft/events are always ready.
Status op_poll(Server& server, fuse_req_t request, fuse_ino_t ino, fuse_file_info* file, fuse_pollhandle* handle);

Status op_opendir(Server& server, fuse_req_t request, fuse_ino_t dir, fuse_file_info* file);
Status op_readdir(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset, fuse_file_info* file);
Status op_readdirplus(Server& server, fuse_req_t request, fuse_ino_t dir, size_t size, off_t offset,
                      fuse_file_info* file);

Status op_getxattr(Server& server, fuse_req_t request, fuse_ino_t ino, const char* name, size_t size);
Status op_listxattr(Server& server, fuse_req_t request, fuse_ino_t ino, size_t size);

}  // namespace weft
