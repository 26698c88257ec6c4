#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/log.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/ops.h"

namespace weft {
namespace {

std::string_view name_of(ReadWay way) {
  constexpr std::array<std::string_view, 4> kNames = {"cached", "uncached", "by passthrough", "uncached unless mapped"};
  return kNames[static_cast<std::size_t>(way)];
}

int reply_passthrough(fuse_req_t request, std::uint64_t handle, std::int32_t backing_id) {
  const kernel::OpenOut out{handle, kernel::kOpenPassthrough | kernel::kOpenNoFlush, backing_id};
  return fuse_reply_buf(request, reinterpret_cast<const char*>(&out), sizeof out);
}

int reply_open(fuse_req_t request, fuse_file_info* file, ReadWay way) {
  file->noflush = 1;
  file->keep_cache = way == ReadWay::direct ? 0 : 1;
  file->direct_io = way == ReadWay::direct || way == ReadWay::straight ? 1 : 0;
  return fuse_reply_open(request, file);
}

// Seeking is disabled: the offset says how much of the stream the reader has.
Status open_stream(Server& server, NodeId node, fuse_file_info* file) {
  file->nonseekable = 1;
  Status opened = server.events.opened(file->fh);
  if (!opened.ok()) server.open_files.close(node, file->fh);
  return opened;
}

}  // namespace

int send_opened(fuse_req_t request, fuse_file_info* file, const OpenAnswer& answer) {
  return answer.way == ReadWay::passthrough ? reply_passthrough(request, file->fh, answer.backing_id)
                                            : reply_open(request, file, answer.way);
}

Status op_open(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  if ((file->flags & O_ACCMODE) != O_RDONLY || (file->flags & O_TRUNC) != 0)
    return Error{Errc::read_only, "open for writing"};
  const std::uint64_t handle = current_request();
  WEFT_TRY(const OpenAnswer answer, server.open_files.open(node, handle));
  file->fh = handle;
  log_debug(LogCategory::mount, "request {}: opens inode {}, {}", handle, ino_of(node), name_of(answer.way));
  if (ino_of(node) == kEventsIno) WEFT_CHECK(open_stream(server, node, file));
  // The node was open before its file was assembled, so this open cannot use passthrough. Later opens get the other
  // node.
  const bool served = answer.way == ReadWay::cached || answer.way == ReadWay::straight;
  if (answer.joined && served && server.vfs.assembled(ino_of(node))) reconsider_node(server, ino_of(node));
  const int sent = send_opened(request, file, answer);
  if (sent == -ENOENT) server.open_files.close(node, handle);  // the opener was interrupted: no release follows
  if (answer.opened) answer.opened->opened();
  return {};
}

Status op_release(Server& server, fuse_req_t request, fuse_ino_t node, fuse_file_info* file) {
  server.open_files.close(node, file->fh);
  fuse_reply_err(request, 0);
  return {};
}

}  // namespace weft
