#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "base/limits.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/ops/ops.h"
#include "fuse/ops/read_buffer.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Below this size, copying is cheaper than mapping.
constexpr std::size_t kCopiedMax = 16U << 10U;

// Replies from mapped memory: the kernel makes the only copy. If a page cannot be read, the reader gets EIO from the
// kernel.
void reply_from_memory(fuse_req_t request, std::span<const std::span<const std::byte>> parts) {
  std::array<iovec, limits::kReadPartsMax> vectors{};
  std::ranges::transform(parts, vectors.begin(), [](std::span<const std::byte> part) {
    return iovec{const_cast<std::byte*>(part.data()), part.size()};
  });
  fuse_reply_iov(request, vectors.data(), static_cast<int>(parts.size()));
}

// Returns the file of a node. A READ may still arrive a moment after the close; then the file is opened again.
Result<std::shared_ptr<OpenFile>> open_file_of(Server& server, NodeId node) {
  WEFT_TRY(auto file, server.open_files.find(node));
  if (file) return file;
  return server.vfs.open(ino_of(node));
}

// Collects the reply to a READ inside a record, and stores the record's other bytes in the page cache.
class RecordAnswer {
 public:
  RecordAnswer(Server& server, NodeId node, Range asked) : server_(server), node_(node), asked_(asked) {}

  // Adds the next bytes of the record.
  void add(std::uint64_t offset, std::span<const std::byte> bytes) {
    const Range mine = overlap(asked_, {offset, bytes.size()});
    if (mine.length == 0) return store(offset, bytes);
    const std::span<const std::byte> part = bytes.subspan(mine.offset - offset, mine.length);
    std::ranges::copy(part, answer_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += part.size();
    store(offset, bytes.first(mine.offset - offset));
    store(end_of(mine), bytes.subspan(end_of(mine) - offset));
  }
  std::span<const std::byte> answer() const { return std::span(answer_).first(filled_); }

 private:
  void store(std::uint64_t offset, std::span<const std::byte> bytes) {
    if (server_.record_reads.store(*server_.kernel_cache, node_, offset, bytes)) return;
    server_.vfs.read_by_record(false);
    reconsider_node(server_, ino_of(node_));
  }

  Server& server_;
  const NodeId node_;
  const Range asked_;
  std::array<std::byte, RecordReads::kAskedMax> answer_;
  std::size_t filled_ = 0;
};

// Answers a page fault inside a record, after storing the record's other pages (record_reads.h). False: the caller
// answers this READ plainly.
bool reply_record(Server& server, fuse_req_t request, NodeId node, OpenFile& file, Range asked) {
  if (asked.length > RecordReads::kAskedMax || !server.kernel_cache) return false;
  const std::optional<Range> record = file.record_at(asked.offset);
  if (!record || end_of(asked) > end_of(*record)) return false;
  const auto turn = server.record_reads.begin(node, *record);
  const ReadBuffer own;
  if (!turn || own.bytes().empty()) return false;
  RecordAnswer answer(server, node, asked);
  for (std::uint64_t at = record->offset; at < end_of(*record);) {
    const auto part = own.bytes().first(std::min<std::uint64_t>(end_of(*record) - at, own.bytes().size()));
    const auto got = file.read_record(at, part);
    if (!got.ok()) return false;
    answer.add(at, part.first(*got));
    if (*got < part.size()) break;
    at += *got;
  }
  fuse_reply_buf(request, reinterpret_cast<const char*>(answer.answer().data()), answer.answer().size());
  return true;
}

}  // namespace

Status op_read(Server& server, fuse_req_t request, fuse_ino_t node, size_t size, off_t offset, fuse_file_info* info) {
  if (offset < 0) return Error{Errc::invalid, "read at a negative offset"};
  if (ino_of(node) == kEventsIno) {
    server.events.read(request, current_request(), info->fh, static_cast<std::uint64_t>(offset), size,
                       (info->flags & O_NONBLOCK) == 0);
    return {};
  }
  WEFT_TRY(const auto file, open_file_of(server, node));
  if (file->mode() == ReadMode::streamed && info->lock_owner == 0)
    server.open_files.mapped(node);  // only read(2) has an owner
  const auto at = static_cast<std::uint64_t>(offset);
  if (reply_record(server, request, node, *file, {at, size})) return {};
  const auto in_memory = [&] { return file->in_memory(at, std::min(size, kReadBytesMax)); };
  const bool copied = size <= kCopiedMax && !file->better_in_memory();
  WEFT_TRY(const MemoryParts parts, copied ? MemoryParts() : in_memory());
  if (!parts.empty()) {
    reply_from_memory(request, parts);
    return {};
  }
  const ReadBuffer own;
  if (own.bytes().empty()) return Error{Errc::io, "no memory to read into"};
  const std::span<std::byte> buffer = own.bytes().first(std::min(size, own.bytes().size()));
  WEFT_TRY(const std::size_t filled, file->read(at, buffer));
  fuse_reply_buf(request, reinterpret_cast<const char*>(buffer.data()), filled);
  return {};
}

// Published files have no holes except the implicit hole at end of file.
Status op_lseek(Server& server, fuse_req_t request, fuse_ino_t node, off_t offset, int whence, fuse_file_info*) {
  WEFT_TRY(const auto file, open_file_of(server, node));
  const auto size = static_cast<off_t>(file->size());
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return Error{Errc::invalid, "seek of an unknown kind"};
  if (offset < 0 || offset >= size)
    fuse_reply_err(request, ENXIO);
  else
    fuse_reply_lseek(request, whence == SEEK_DATA ? offset : size);
  return {};
}

}  // namespace weft
