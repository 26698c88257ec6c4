// A plain perceptron: one layer after the other, as their numbers say.
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
