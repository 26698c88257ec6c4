// A plain perceptron: a chain of layers, ordered by number.
#include "model/arch/table.h"

namespace weft {

const ArchTable kArchMlp = {
    .family = "mlp",
    .model_types = "mlp",
    .class_names = "MLP",
    .prefixes = "",
    .ignored = "",
    .ties_by_default = false,
    .sections = {},
    .params = "act=hidden_act|activation|activation_function",
};

}  // namespace weft
