#include "weft/progress.h"

namespace weft {
Progress& no_progress() {
  static SilentProgress instance;
  return instance;
}

}  // namespace weft
