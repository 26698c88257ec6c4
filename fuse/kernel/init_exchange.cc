#include "fuse/kernel/init_exchange.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kReadBytesMin = 8192;  // the kernel refuses a smaller buffer

thread_local std::uint64_t request_now = 0;
thread_local std::uint64_t poll_handle_now = 0;

kernel::InHeader header_of(const void* request) {
  kernel::InHeader header;
  std::memcpy(&header, request, sizeof header);
  return header;
}

// Returns the poll handle of a request of `length` bytes; 0 if it is no FUSE_POLL or asks for no notification.
std::uint64_t poll_handle_of(const void* request, std::size_t length) {
  if (header_of(request).opcode != kernel::kOpPoll) return 0;
  kernel::PollIn poll{};
  if (length < sizeof(kernel::InHeader) + sizeof poll) return 0;
  std::memcpy(&poll, static_cast<const std::byte*>(request) + sizeof(kernel::InHeader), sizeof poll);
  return (poll.flags & kernel::kPollSchedulesNotify) != 0 ? poll.poll_handle : 0;
}

kernel::InitIn init_of(const InitWords& words) {
  kernel::InitIn init{};
  const std::size_t length = std::min<std::size_t>(words.length, kInitBytesMax);
  if (length > sizeof(kernel::InHeader))
    std::memcpy(&init, words.request + sizeof(kernel::InHeader),
                std::min(sizeof init, length - sizeof(kernel::InHeader)));
  return init;
}

bool has_flag2(const InitWords& words, std::uint32_t flag2) {
  const kernel::InitIn init = init_of(words);
  return (init.flags & kernel::kInitExt) != 0 && (init.flags2 & flag2) != 0;
}

// Touches the first two pages of the read buffer. If a dying thread faults while the kernel copies a request, the
// kernel answers that request with EIO. Present pages cause no fault. Two pages hold every request but large writes to
// drafts.
void touch(void* buffer, std::size_t size) {
  auto* bytes = static_cast<volatile std::byte*>(buffer);
  for (std::size_t at = 0; at < std::min(size, 2 * kPageBytes); at += kPageBytes) bytes[at] = std::byte{};
}

bool wants_reply(std::uint32_t opcode) {
  return opcode != kernel::kOpForget && opcode != kernel::kOpBatchForget && opcode != kernel::kOpInterrupt;
}

// Fails a request that is not the first one: the program that made it would wait forever.
void refuse_later(int device, const kernel::InHeader& request) {
  if (request.opcode == kernel::kOpInit || !wants_reply(request.opcode)) return;
  const kernel::OutHeader reply{sizeof reply, -EIO, request.unique};
  if (::write(device, &reply, sizeof reply) != sizeof reply)
    log_warning("{}", sys_error(errno, "failing a request of another server").message);
}

void ask_to_resend(int device) {
  const kernel::OutHeader notice{sizeof notice, kernel::kNotifyResend, 0};
  if (::write(device, &notice, sizeof notice) != sizeof notice)
    log_warning("{}", sys_error(errno, "asking the kernel to send requests again").message);
}

}  // namespace

Status keep_init(int device, InitWords& words) {
  alignas(8) std::array<std::byte, kReadBytesMin> buffer{};
  ssize_t got = -1;
  do got = ::read(device, buffer.data(), buffer.size());
  while (got < 0 && errno == EINTR);
  if (got < 0) return sys_error(errno, "the kernel's first request");
  const auto length = static_cast<std::size_t>(got);
  if (length >= sizeof(kernel::InHeader)) refuse_later(device, header_of(buffer.data()));
  if (length < sizeof(kernel::InHeader) || length > kInitBytesMax || header_of(buffer.data()).opcode != kernel::kOpInit)
    return Error{Errc::unsupported, fmt::format("the kernel's first request: expected FUSE_INIT, got {} bytes", got)};
  std::copy_n(buffer.begin(), length, words.request);
  words.length = static_cast<std::uint32_t>(length);
  return {};
}

bool can_resend(const InitWords& words) {
  return has_flag2(words, kernel::kHasResendFlag2);
}

bool maps_direct_files(const InitWords& words) {
  return words.answered.load(std::memory_order_acquire) != 0 && (words.reply.flags2 & kernel::kDirectMapsFlag2) != 0;
}

bool opens_directories(const InitWords& words) {
  return (init_of(words).flags & kernel::kNoOpendirFlag) != 0;
}

InitExchange::InitExchange(InitWords& words, Passthrough& passthrough, RequestLog& log)
    : words_(words), passthrough_(passthrough), log_(log), init_unique_(header_of(words.request).unique) {}

ssize_t InitExchange::read(int device, void* buffer, std::size_t size) {
  if (!given_.exchange(true)) {
    const std::size_t length = std::min<std::size_t>({words_.length, kInitBytesMax, size});
    std::memcpy(buffer, words_.request, length);
    return static_cast<ssize_t>(length);
  }
  over_.wait(false, std::memory_order_acquire);  // libfuse answers EIO to requests before FUSE_INIT
  touch(buffer, size);
  const ssize_t got = ::read(device, buffer, size);
  if (got < static_cast<ssize_t>(sizeof(kernel::InHeader))) return got;
  const kernel::InHeader header = header_of(buffer);
  request_now = header.unique & ~kernel::kUniqueResend;
  poll_handle_now = poll_handle_of(buffer, static_cast<std::size_t>(got));
  if (wants_reply(header.opcode)) log_.begin(request_now, header.opcode);
  return got;
}

ssize_t InitExchange::write(int device, std::span<const iovec> parts) {
  if (!over_.load(std::memory_order_acquire) && is_init_reply(parts)) return answer_init(device, parts);
  std::uint64_t unique = 0;
  if (!parts.empty() && parts[0].iov_len >= sizeof(kernel::OutHeader)) {
    kernel::OutHeader header{};
    std::memcpy(&header, parts[0].iov_base, sizeof header);
    unique = header.unique;
  }
  const ssize_t sent = ::writev(device, parts.data(), static_cast<int>(parts.size()));
  const int failed = errno;
  if (unique != 0) log_.end(unique & ~kernel::kUniqueResend);
  errno = failed;
  return sent;
}

bool InitExchange::is_init_reply(std::span<const iovec> parts) const {
  kernel::OutHeader header{};
  if (parts.size() != 2 || parts[0].iov_len != sizeof header || parts[1].iov_len != sizeof(kernel::InitOut))
    return false;
  std::memcpy(&header, parts[0].iov_base, sizeof header);
  return header.unique == init_unique_ && header.error == 0;
}

// ENOENT is success: an earlier server was killed after it had sent the reply and before it set `answered`, so the
// kernel does not know the request any more.
ssize_t InitExchange::answer_init(int device, std::span<const iovec> parts) {
  kernel::InitOut reply{};
  std::memcpy(&reply, parts[1].iov_base, sizeof reply);
  auto sent = static_cast<ssize_t>(parts[0].iov_len + parts[1].iov_len);
  if (words_.answered.load(std::memory_order_acquire) == 0) {
    if (words_.stack_depth != 0 && has_flag2(words_, kernel::kPassthroughFlag2)) {
      reply.flags |= kernel::kInitExt;
      reply.flags2 |= kernel::kPassthroughFlag2;
      reply.stack_depth_max = words_.stack_depth;
    }
    if (has_flag2(words_, kernel::kDirectMapsFlag2)) {
      reply.flags |= kernel::kInitExt;
      reply.flags2 |= kernel::kDirectMapsFlag2;
    }
    if (words_.id_maps != 0 && has_flag2(words_, kernel::kIdMapsFlag2)) {
      reply.flags |= kernel::kInitExt;
      reply.flags2 |= kernel::kIdMapsFlag2;
    }
    words_.reply = reply;
    const std::array patched{parts[0], iovec{&reply, sizeof reply}};
    if (::writev(device, patched.data(), static_cast<int>(patched.size())) < 0 && errno != ENOENT) sent = -1;
    if (sent >= 0) words_.answered.store(1, std::memory_order_release);
  } else {
    compare_with_first(reply);
    if (can_resend(words_)) ask_to_resend(device);
  }
  if ((words_.reply.flags2 & kernel::kPassthroughFlag2) != 0)
    passthrough_.agree();
  else if (words_.stack_depth != 0)
    passthrough_.refuse("the kernel does not offer it (Linux 6.9 or newer does)");
  const int failed = errno;
  over_.store(true, std::memory_order_release);
  over_.notify_all();
  if (sent >= 0) answered_.ring();
  errno = failed;
  return sent;
}

void InitExchange::compare_with_first(const kernel::InitOut& reply) const {
  const std::uint32_t lost = words_.reply.flags & ~(reply.flags | kernel::kInitExt);
  if (lost != 0) log_warning("this server would not have asked the kernel for the features {:#x}", lost);
}

std::uint64_t current_request() {
  return request_now;
}

std::uint64_t current_poll_handle() {
  return poll_handle_now;
}

Status notify_poll(int device, std::uint64_t poll_handle) {
  const kernel::NotifyPollOut notice{{sizeof notice, kernel::kNotifyPoll, 0}, poll_handle};
  if (::write(device, &notice, sizeof notice) != sizeof notice)
    return sys_error(errno, "telling the kernel that a file can be read");
  return {};
}

}  // namespace weft
