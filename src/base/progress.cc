#include "weft/progress.h"

namespace weft {

Status check_cancelled(const Progress& progress) {
  return progress.cancelled() ? Status(Error{Errc::cancelled, "interrupted"}) : Status();
}

Progress& no_progress() {
  static SilentProgress instance;
  return instance;
}

}  // namespace weft
