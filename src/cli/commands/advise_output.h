// The output of `weft advise` without --follow.
#pragma once

#include <string>

#include "advise/advice.h"
#include "base/json.h"

namespace weft {

struct AdviseShown {
  const advise::LossSeries& series;
  const advise::Question& question;
  const advise::Advice& advice;
  advise::ScheduleKind kind;  // the schedule whose saves are listed
};

std::string advise_text(const AdviseShown& shown);
JsonWriter advise_json(const AdviseShown& shown);

}  // namespace weft
