#include <array>

#include "model/arch/table.h"

namespace weft {

std::span<const ArchTable* const> arch_tables() {
  static constexpr std::array kTables = {&kArchBert, &kArchGpt2, &kArchLlama, &kArchT5, &kArchMlp};
  return kTables;
}

}  // namespace weft
