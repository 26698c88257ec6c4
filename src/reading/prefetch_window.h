// Where to read ahead of somebody who reads a file in ways that nobody reports: a mapping, or a handle that the kernel
// serves. Some pages, many MiB apart, are wires: that one was reached tells how far the reader is. Where the use of a
// page is seen (os/page_use.h) that is all. Elsewhere wires are left out of what is brought in: whoever reads on
// comes upon such a page and makes the kernel bring it in, so it is reached when it is in the page cache. Pure: it asks
// what is reached and cached through functions, and says what to bring in. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "weft/content.h"

namespace weft {

struct PrefetchShape {
  std::uint64_t window_max = 64U << 20U;    // ahead of the reader
  std::uint64_t window_first = 16U << 20U;  // when a file is opened, and after a jump
  std::uint64_t wire_gap = 8U << 20U;  // between wires, about; half the window when that is wider and they are left out
  std::uint64_t wire_first = 1U << 20U;   // from where reading begins to the first wire
  std::uint64_t stride_unit = 2U << 20U;  // it goes on in strides of many of them, each for a large page
  std::uint64_t page = 4096;
  bool leave_out = true;  // wires, of what is brought in
};

class PrefetchWindow {
 public:
  // Was the wire at this offset reached?
  using IsReached = std::function<bool(std::uint64_t offset)>;
  // Is any page of this range in the page cache?
  using AnyCached = std::function<bool(const Range& range)>;

  // `borders`: where tensors begin, ascending, below `size`.
  PrefetchWindow(std::uint64_t size, std::vector<std::uint64_t> borders, const PrefetchShape& shape);

  // Looks how far the reader is; returns what to bring in now, in order. Empty while nobody reads on.
  std::vector<Range> advance(const IsReached& is_reached);
  // Has a tensor outside of the window been touched since the last call? Then the window begins anew there.
  bool jumped(const AnyCached& any_cached);
  // Forgets what was touched and has left the page cache, as it may be touched again: of that many tensors, the next
  // ones with each call.
  void look_anew(const AnyCached& any_cached, std::size_t tensors = SIZE_MAX);
  // Somebody begins to read the file.
  void restart(const AnyCached& any_cached);
  // Somebody told that [offset, offset + length) is read.
  void told(std::uint64_t offset, std::uint64_t length);

  bool begun() const { return front_ > 0; }
  std::uint64_t reader() const { return reader_; }  // is here or further
  // Nothing is left to bring in ahead of the reader.
  bool at_end() const { return front_ >= size_; }

 private:
  std::uint64_t end_of_tensor(std::uint64_t offset) const;
  void begin_at(std::uint64_t offset);
  void reach(std::uint64_t offset);
  std::vector<Range> fill(std::uint64_t target);
  void lay_wire();
  std::uint64_t next_wire(std::uint64_t last, std::uint64_t gap) const;
  std::optional<std::size_t> touched(const AnyCached& any_cached, std::size_t first, std::size_t end);

  const std::uint64_t size_;
  const std::vector<std::uint64_t> borders_;
  const PrefetchShape shape_;
  std::vector<bool> seen_;        // by border: its page was cached, or ours to bring in
  std::size_t anew_next_ = 0;     // of seen_, for look_anew()
  bool looked_ = false;           // seen_ is filled in
  std::uint64_t begin_ = 0;       // where the window was set up
  std::uint64_t tensor_end_ = 0;  // of the tensor there
  std::uint64_t reader_ = 0;      // the reader is here or further
  std::uint64_t front_ = 0;       // [begin_, front_) was brought in, but for wires left out
  std::uint64_t marked_ = 0;      // of what lies before, seen_ tells
  std::uint64_t room_ = 0;        // how far ahead of the reader it may go
  std::uint64_t wire_next_ = 0;
  std::deque<std::uint64_t> wires_;  // ascending, not yet reached
};

}  // namespace weft
