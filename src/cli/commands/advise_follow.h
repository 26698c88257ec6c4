// Implements `weft advise --follow`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "advise/advice.h"
#include "cli/commands/advise_source.h"
#include "cli/shared/context.h"
#include "weft/result.h"

namespace weft {

// The question of the command line, without the facts that the losses add.
struct AdviseAsked {
  advise::Question question;  // without `last_save` and `timing`; `requests` counts from the first known save
  advise::GivenTimes times;
  advise::ScheduleKind followed = advise::ScheduleKind::best;
};

// Prints the next iteration to save after whenever it changes, 0 if no further save pays, until the source ends. If the
// losses do not suffice for advice yet, prints a note with the reason and waits for more. Errc::cancelled: interrupted.
class AdviseFollower {
 public:
  AdviseFollower(const Context& context, LossSource& source, const AdviseAsked& asked)
      : context_(context), source_(source), asked_(asked) {}
  Status run();

 private:
  Result<std::uint64_t> next_save();
  void find_saves();
  std::uint64_t requests_left(const advise::Timing& timing) const;
  Status show(std::uint64_t next);
  void remark(const std::string& reason);

  const Context& context_;
  LossSource& source_;
  const AdviseAsked asked_;
  advise::LossSeries series_;
  std::optional<std::uint64_t> first_;      // first value of last_save_
  std::optional<std::uint64_t> last_save_;  // iteration of the last save, recorded or assumed
  std::uint64_t saves_ = 0;                 // number of saves after first_
  std::uint64_t shown_ = 0;
  std::string reason_;
};

}  // namespace weft
