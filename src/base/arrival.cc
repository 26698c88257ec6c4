#include "weft/arrival.h"

#include <algorithm>

namespace weft {

Status ArrivedRun::wait(Range range) {
  const std::uint64_t wanted = range.offset + range.length;
  if (!await_ || (range.offset >= begin_ && wanted <= end_)) return {};
  if (range.offset < begin_ || range.offset > end_) begin_ = end_ = range.offset;
  while (end_ < wanted) {
    WEFT_TRY(const std::uint64_t end, await_({end_, wanted - end_}));
    end_ = std::clamp(end, end_, size_);
  }
  return {};
}

}  // namespace weft
