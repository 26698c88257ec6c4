// What a mount shows of the store's daemon. Any thread; a daemon that hangs costs kDaemonPatience a question.
#pragma once

#include <chrono>
#include <string>

#include "control/client.h"

namespace weft {

inline constexpr auto kDaemonPatience = std::chrono::milliseconds(500);

class DaemonTexts {
 public:
  explicit DaemonTexts(const std::string& store_path);
  std::string status();   // JSON; "null" where none answers
  std::string peers();    // the same, as text of its own
  std::string metrics();  // Prometheus text; a comment where none answers

 private:
  Result<control::Answer> ask(std::string_view what);
  std::string json(std::string_view what);
  control::Link link_;
};

}  // namespace weft
