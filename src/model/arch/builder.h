// Lays a table of architectures over the layers of a model.
#pragma once

#include <optional>
#include <vector>

#include "model/arch/config.h"
#include "model/arch/layers.h"
#include "model/arch/table.h"
#include "weft/arch.h"

namespace weft {

// The table that the config names; nullptr: none.
const ArchTable* table_for(const ArchConfig& config);

// Nothing when the layers are not such as the table says: one that it needs is missing, or a block has one more.
std::optional<std::vector<ArchLayer>> fit(const ArchTable& table, std::span<const NamedTensor> tensors,
                                          const ArchConfig& config);
// Each layer after the one before.
std::vector<ArchLayer> in_sequence(std::span<const NamedTensor> tensors);

}  // namespace weft
