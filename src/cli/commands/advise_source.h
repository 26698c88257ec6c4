// Where `weft advise` reads losses from.
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

// each: every point is of a saved model. some: those with save_s are. none: the source cannot say.
enum class RecordedSaves : std::uint8_t { each, some, none };

// One thread.
class LossSource {
 public:
  virtual ~LossSource() = default;
  // Brings the series up to date. True: there may be more later, so wait() and read again.
  virtual Result<bool> read(advise::LossSeries& series) = 0;
  // Returns once there may be more, at the latest some tenths of a second later.
  virtual void wait() = 0;
  virtual RecordedSaves saves() const = 0;
};

// `follow`: read() says that there may be more, always for a model and a regular file, until its end for a pipe.

// The versions of a model, in the order of their numbers, removed ones too.
Result<std::unique_ptr<LossSource>> losses_of_model(const Context& context, std::string_view model,
                                                    advise::LossNames names, bool follow);
// A file; "-": standard input. A regular file that is followed and became shorter is read anew.
Result<std::unique_ptr<LossSource>> losses_of_csv(const Context& context, const std::string& path,
                                                  advise::LossNames names, bool follow);

}  // namespace weft
