#include "reading/prefetch_window.h"

#include <algorithm>

namespace weft {

PrefetchWindow::PrefetchWindow(std::uint64_t size, std::vector<std::uint64_t> borders, const PrefetchShape& shape)
    : size_(size), borders_(std::move(borders)), shape_(shape), seen_(borders_.size()) {
  begin_at(0);
}

void PrefetchWindow::begin_at(std::uint64_t offset) {
  tensor_end_ = end_of_tensor(offset);
  begin_ = reader_ = front_ = marked_ = offset / shape_.page * shape_.page;
  room_ = shape_.window_first;
  wire_next_ = begin_ + shape_.wire_first;
  wires_.clear();
}

std::uint64_t PrefetchWindow::end_of_tensor(std::uint64_t offset) const {
  const auto next = std::upper_bound(borders_.begin(), borders_.end(), offset);
  return next == borders_.end() ? size_ : *next;
}

void PrefetchWindow::reach(std::uint64_t offset) {
  if (offset <= reader_) return;
  reader_ = offset;
  room_ = std::min(2 * room_, shape_.window_max);
  while (!wires_.empty() && wires_.front() < reader_) wires_.pop_front();
}

// A reader that jumped to a tensor may want only this tensor. So the window ends at most window_first behind the
// tensor, until the reader is well past the tensor's end.
std::optional<Range> PrefetchWindow::advance(const IsUsed& is_used) {
  for (std::size_t i = wires_.size(); i-- > 0;) {
    if (!is_used(wires_[i])) continue;
    reach(wires_[i] + shape_.page);
    break;
  }
  const std::uint64_t ahead = reader_ + room_;
  std::uint64_t target = ahead;
  if (begin_ > 0 && reader_ <= tensor_end_ + shape_.wire_gap)
    target = std::min(target, tensor_end_ + shape_.window_first);
  if (target >= size_) return fill(size_);
  const std::uint64_t stride = room_ / 4;  // small requests would bring small pages
  if (target == ahead && target < front_ + stride) return {};
  return fill(target / shape_.stride_unit * shape_.stride_unit);
}

// Loaders may look at the first page of each tensor before they read any. So the next wire is the beginning of a
// tensor, if a tensor begins near the regular distance.
std::uint64_t PrefetchWindow::next_wire(std::uint64_t last) const {
  const std::uint64_t gap = shape_.wire_gap;
  const auto behind = std::upper_bound(borders_.begin(), borders_.end(), last + gap + gap / 8);
  if (behind == borders_.begin() || *std::prev(behind) < last + gap / 4) return last + gap;
  return *std::prev(behind) / shape_.page * shape_.page;
}

std::optional<Range> PrefetchWindow::fill(std::uint64_t target) {
  if (front_ >= target) return {};
  const Range wanted{front_, target - front_};
  front_ = target;
  for (; wire_next_ < front_; wire_next_ = next_wire(wire_next_)) wires_.push_back(wire_next_);
  const auto first = std::lower_bound(borders_.begin(), borders_.end(), marked_);
  const auto end = std::lower_bound(first, borders_.end(), front_);
  for (auto border = first; border != end; ++border) seen_[static_cast<std::size_t>(border - borders_.begin())] = true;
  marked_ = std::max(marked_, front_);
  return wanted;
}

// Returns the first of borders [first, end) that is in the page cache and was not seen there before, and marks all such
// borders as seen. One query skips a whole half that no reader touched.
std::optional<std::size_t> PrefetchWindow::touched(const AnyCached& any_cached, std::size_t first, std::size_t end) {
  while (first < end && seen_[first]) ++first;
  while (first < end && seen_[end - 1]) --end;
  if (first == end || !any_cached({borders_[first], borders_[end - 1] - borders_[first] + 1})) return {};
  if (end - first == 1) {
    seen_[first] = true;
    return first;
  }
  const std::size_t middle = first + (end - first) / 2;
  const auto left = touched(any_cached, first, middle);
  const auto right = touched(any_cached, middle, end);
  return left ? left : right;
}

bool PrefetchWindow::jumped(const AnyCached& any_cached) {
  const auto found = touched(any_cached, 0, borders_.size());
  const bool first_scan = !scanned_;
  scanned_ = true;
  if (!found || first_scan) return false;
  begin_at(borders_[*found]);
  return true;
}

void PrefetchWindow::scan_again(const AnyCached& any_cached, std::size_t tensors) {
  for (std::size_t left = std::min(tensors, borders_.size()); left > 0; --left) {
    if (anew_next_ >= borders_.size()) anew_next_ = 0;
    if (seen_[anew_next_]) seen_[anew_next_] = any_cached({borders_[anew_next_], 1});
    ++anew_next_;
  }
}

void PrefetchWindow::restart(const AnyCached& any_cached) {
  begin_at(0);
  scan_again(any_cached);
}

void PrefetchWindow::told(std::uint64_t offset, std::uint64_t length) {
  if (offset < begin_ || offset > front_ + shape_.window_first) begin_at(offset);
  front_ = std::max(front_, (offset + length) / shape_.page * shape_.page);
  reach(offset + length);
  wire_next_ = std::max(wire_next_, front_ + shape_.wire_first);
}

}  // namespace weft
