#include "store/generation.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/core.h>

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// One attempt to set a byte's lock. Errc::busy when somebody's excludes it.
Status set_byte(int fd, short type, unsigned byte, std::string_view where) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return {};
  return sys_error(errno, fmt::format("{}: lock of byte {}", where, byte));
}

}  // namespace

Result<std::shared_ptr<Generations>> Generations::open(const std::string& index_dir, bool write, std::uint64_t wait_ms,
                                                       Patience patience) {
  std::string path = index_dir + "/readers";
  WEFT_TRY(Fd readers, open_file(path, O_RDONLY));
  Fd writer;
  if (write) {
    WEFT_TRY(writer, open_file(path, O_RDWR));
  }
  return std::shared_ptr<Generations>(
      new Generations(path, std::move(readers), std::move(writer), wait_ms, std::move(patience)));
}

// Polls rather than blocks: a writer that waited in the kernel would keep new readers of the byte out.
Status Generations::wait_byte(int fd, short type, unsigned byte) const {
  auto end = Clock::now() + std::chrono::milliseconds(wait_ms_);
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Status status = set_byte(fd, type, byte, path_);
    if (status.ok() || status.error().code != Errc::busy || Clock::now() >= end) return status;
    if (patience_.cancelled && patience_.cancelled())
      return Error{Errc::cancelled, fmt::format("{}: given up waiting for readers of the index", path_)};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
}

Generations::Hold::~Hold() {
  if (owner_) owner_->release(parity_);
}

Generations::Hold& Generations::Hold::operator=(Hold&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(parity_, other.parity_);
  return *this;
}

Result<Generations::Hold> Generations::hold(std::uint64_t transaction) {
  auto parity = static_cast<unsigned>(transaction % 2);
  std::lock_guard lock(mutex_);
  if (counts_[parity] == 0) {
    WEFT_CHECK(wait_byte(readers_.get(), F_RDLCK, parity));
  }
  ++counts_[parity];
  return Hold(shared_from_this(), parity);
}

void Generations::release(unsigned parity) {
  std::lock_guard lock(mutex_);
  if (--counts_[parity] == 0) static_cast<void>(set_byte(readers_.get(), F_UNLCK, parity, path_));
}

Status Generations::drain(std::uint64_t transaction) {
  auto parity = static_cast<unsigned>(transaction % 2);
  Status status = wait_byte(writer_.get(), F_WRLCK, parity);
  if (!status.ok() && status.error().code == Errc::busy)
    return Error{Errc::busy, fmt::format("{}: a reader has held an old state of the index for {} ms", path_, wait_ms_)};
  WEFT_CHECK(status);
  return set_byte(writer_.get(), F_UNLCK, parity, path_);
}

}  // namespace weft
