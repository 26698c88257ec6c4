#include "index/generation.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/core.h>

#include "os/file_lock.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kUseByte = 2;

}  // namespace

Result<std::shared_ptr<Generations>> Generations::open(const SafePath& index_dir, bool write, std::uint64_t wait_ms,
                                                       Patience patience) {
  const SafePath path = index_dir / "readers";
  WEFT_TRY(Fd readers, open_file(path, O_RDONLY));
  Fd writer;
  if (write) {
    WEFT_TRY(writer, open_file(path, O_RDWR));
  }
  std::shared_ptr<Generations> generations(
      new Generations(path, std::move(readers), std::move(writer), wait_ms, std::move(patience)));
  WEFT_CHECK(generations->wait_byte(generations->readers_.get(), LockKind::shared, kUseByte));
  WEFT_TRY(struct stat st, stat_fd(generations->readers_.get(), path));
  if (st.st_nlink == 0) return Error{Errc::not_found, fmt::format("{}: it was just removed", path)};
  return generations;
}

Result<bool> Generations::lock_alone() {
  WEFT_CHECK(unlock_bytes(readers_.get(), {kUseByte, 1}, path_));
  const Status alone = lock_bytes(writer_.get(), LockKind::exclusive, {kUseByte, 1}, path_);
  if (alone.ok()) return true;
  if (alone.error().code != Errc::busy) return alone.error();
  WEFT_CHECK(lock_bytes(readers_.get(), LockKind::shared, {kUseByte, 1}, path_));
  return false;
}

// Polls and does not block: a writer that waits in the kernel would keep out new readers of the byte.
Status Generations::wait_byte(int fd, LockKind kind, unsigned byte) const {
  auto end = Clock::now() + std::chrono::milliseconds(wait_ms_);
  auto pause = std::chrono::microseconds(50);
  for (;;) {
    Status status = lock_bytes(fd, kind, {byte, 1}, path_);
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
    WEFT_CHECK(wait_byte(readers_.get(), LockKind::shared, parity));
  }
  ++counts_[parity];
  return Hold(shared_from_this(), parity);
}

void Generations::release(unsigned parity) {
  std::lock_guard lock(mutex_);
  if (--counts_[parity] == 0) static_cast<void>(unlock_bytes(readers_.get(), {parity, 1}, path_));
}

Status Generations::drain(std::uint64_t transaction) {
  auto parity = static_cast<unsigned>(transaction % 2);
  Status status = wait_byte(writer_.get(), LockKind::exclusive, parity);
  if (!status.ok() && status.error().code == Errc::busy)
    return Error{Errc::busy, fmt::format("{}: a reader has held an old state of the index for {} ms", path_, wait_ms_)};
  WEFT_CHECK(status);
  return unlock_bytes(writer_.get(), {parity, 1}, path_);
}

}  // namespace weft
