// The sources of losses for `weft advise`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "advise/loss_point.h"
#include "advise/loss_series.h"
#include "cli/shared/context.h"
#include "weft/result.h"

namespace weft {

// each: every point belongs to a saved model. some: points with save_s do. none: the source records no saves.
enum class RecordedSaves : std::uint8_t { each, some, none };

// One thread.
class LossSource {
 public:
  virtual ~LossSource() = default;
  // Updates the series. True if more losses may follow: call wait(), then read() again.
  virtual Result<bool> read(advise::LossSeries& series) = 0;
  // Waits for more losses, but at most some tenths of a second.
  virtual void wait() = 0;
  virtual RecordedSaves saves() const = 0;
};

// With `follow`, read() of a model or a regular file is always true, and read() of a pipe until the pipe's end.

// Reads the versions of a model, in the order of their numbers, removed versions included.
Result<std::unique_ptr<LossSource>> losses_of_model(const Context& context, std::string_view model,
                                                    advise::LossNames names, bool follow);
// Reads a CSV file, or standard input if `path` is "-". A followed regular file that became shorter is read again.
Result<std::unique_ptr<LossSource>> losses_of_csv(const Context& context, const std::string& path,
                                                  advise::LossNames names, bool follow);

}  // namespace weft
