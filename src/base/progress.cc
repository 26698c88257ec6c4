#include "weft/progress.h"

namespace weft {
namespace {

class NoProgress final : public Progress {
 public:
  void total(std::uint64_t /*bytes*/) override {}
  void advance(std::uint64_t /*bytes*/) override {}
  void phase(std::string_view /*what*/) override {}
  bool cancelled() const override { return false; }
};

}  // namespace

Progress& no_progress() {
  static NoProgress instance;
  return instance;
}

}  // namespace weft
