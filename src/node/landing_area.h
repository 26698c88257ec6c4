// A file that is being filled, as memory that reads of peers land in: no copy, no write.
//
// A read that was given up may still write where it was to land, at any later time. Then the area is left: its
// addresses get pages of their own behind them, which show the same bytes and belong to no file any more. So the file
// is safe from what comes late. This holds for providers that write through addresses, as those do which move bytes by
// the CPU; one that writes to pages by itself takes no such memory (Exchange::register_mapped_file).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/sys.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class LandingArea {
 public:
  // `file` is open for reading and writing, and at least one byte long.
  static Result<std::shared_ptr<LandingArea>> map(Fd file, std::uint64_t size);
  ~LandingArea();
  LandingArea(const LandingArea&) = delete;
  LandingArea& operator=(const LandingArea&) = delete;

  std::span<std::byte> memory() const { return memory_; }
  // Takes the pages of a range, where the kernel can do that ahead: else whoever brings bytes takes them one by one.
  void take_pages(std::uint64_t offset, std::uint64_t length) const;
  // What lands from now on is seen in memory(), and is not in the file. When it fails, late bytes may still reach it.
  Status leave();
  bool left() const { return left_; }

 private:
  LandingArea(Fd file, std::span<std::byte> memory) : file_(std::move(file)), memory_(memory) {}
  const Fd file_;
  const std::span<std::byte> memory_;
  std::atomic<bool> left_ = false;
};

}  // namespace weft
