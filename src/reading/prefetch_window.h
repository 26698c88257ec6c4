// Decides where to read ahead of a reader whose reads are not reported: the reader of a mapping, or of a handle that
// the kernel serves. Some pages of the ranges that the window asks for, some MiB apart, are wires. A wire that the
// reader used (os/page_use.h) tells how far the reader is. A page that is merely cached tells nothing, since the kernel
// reads ahead of the reader by itself, up to twice the device's read_ahead_kb.
//
// The class is pure: functions tell it which pages were used and which are cached, and it returns the range to bring
// in. It is for one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "weft/content.h"

namespace weft {

struct PrefetchShape {
  std::uint64_t window_max = 64U << 20U;    // bytes ahead of the reader
  std::uint64_t window_first = 16U << 20U;  // the size of the window after an open or a jump; it doubles with each wire
  std::uint64_t wire_gap = 8U << 20U;       // distance of two wires, about
  std::uint64_t wire_first = 1U << 20U;     // from the window's beginning to the first wire
  std::uint64_t stride_unit = 2U << 20U;    // the window grows by multiples of a large page
  std::uint64_t page = 4096;
};

class PrefetchWindow {
 public:
  // True if the page at `offset` was used.
  using IsUsed = std::function<bool(std::uint64_t offset)>;
  // True if any page of this range is in the page cache.
  using AnyCached = std::function<bool(const Range& range)>;

  // `borders`: where tensors begin, ascending, below `size`.
  PrefetchWindow(std::uint64_t size, std::vector<std::uint64_t> borders, const PrefetchShape& shape);

  // Checks which wires the reader has reached. Returns the range to bring in, or nothing if the window is large enough.
  std::optional<Range> advance(const IsUsed& is_used);
  // True if a tensor outside of the window was touched since the last call. The window then restarts at this tensor.
  bool jumped(const AnyCached& any_cached);
  // Marks tensors that have left the page cache as untouched, so that jumped() reports them again. Each call checks the
  // next `tensors` tensors.
  void scan_again(const AnyCached& any_cached, std::size_t tensors = SIZE_MAX);
  // Restarts the window at the beginning of the file.
  void restart(const AnyCached& any_cached);
  // Reports a read of [offset, offset + length).
  void told(std::uint64_t offset, std::uint64_t length);

  bool begun() const { return front_ > 0; }
  std::uint64_t reader() const { return reader_; }  // the reader is here or further
  // True if nothing is left to bring in ahead of the reader.
  bool at_end() const { return front_ >= size_; }
  const std::vector<std::uint64_t>& borders() const { return borders_; }

 private:
  std::uint64_t end_of_tensor(std::uint64_t offset) const;
  void begin_at(std::uint64_t offset);
  void reach(std::uint64_t offset);
  std::optional<Range> fill(std::uint64_t target);
  std::uint64_t next_wire(std::uint64_t last) const;
  std::optional<std::size_t> touched(const AnyCached& any_cached, std::size_t first, std::size_t end);

  const std::uint64_t size_;
  const std::vector<std::uint64_t> borders_;
  const PrefetchShape shape_;
  std::vector<bool> seen_;        // per border: its page was cached, or the window covered it
  std::size_t anew_next_ = 0;     // next index into seen_ for scan_again()
  bool scanned_ = false;          // jumped() was called, so seen_ is filled in
  std::uint64_t begin_ = 0;       // where the window started
  std::uint64_t tensor_end_ = 0;  // end of the tensor at begin_
  std::uint64_t reader_ = 0;      // the reader is here or further
  std::uint64_t front_ = 0;       // [begin_, front_) was brought in
  std::uint64_t marked_ = 0;      // seen_ covers everything before this
  std::uint64_t room_ = 0;        // how far the window may reach ahead of the reader
  std::uint64_t wire_next_ = 0;
  std::deque<std::uint64_t> wires_;  // ascending, not yet reached
};

}  // namespace weft
