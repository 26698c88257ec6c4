// Matches the table of an architecture with the layers of a model.
#pragma once

#include <optional>
#include <vector>

#include "model/arch/config.h"
#include "model/arch/layers.h"
#include "model/arch/table.h"
#include "weft/model/arch.h"

namespace weft {

// Returns the table that the config names; nullptr if there is none.
const ArchTable* table_for(const ArchConfig& config);

// Returns the layers as the table connects them. Returns nothing if they do not match the table: a required layer is
// missing, or a block has an unknown one.
std::optional<std::vector<ArchLayer>> fit(const ArchTable& table, std::span<const NamedTensor> tensors,
                                          const ArchConfig& config);
// Returns a chain of layers: each follows the previous one.
std::vector<ArchLayer> in_sequence(std::span<const NamedTensor> tensors);

}  // namespace weft
