#include <algorithm>
#include <array>
#include <iterator>

#include "weft/model/safetensors_view.h"

namespace weft {
namespace {

// Subtrees that may be the model. Only a checkpoint has the first ones. A layer may have the other names too.
constexpr std::string_view kSubtrees[] = {"state_dict", "model_state_dict", "model_weights", "model", "module"};
constexpr std::size_t kStateDicts = 3;
// Subtrees of a checkpoint that are state of a training: of PyTorch, Lightning, DeepSpeed, Megatron, timm, Keras.
// Sorted.
constexpr std::string_view kTrainingState[] = {"amp",
                                               "args",
                                               "best_loss",
                                               "buffer_names",
                                               "callbacks",
                                               "client_state",
                                               "config",
                                               "cuda_rng_state",
                                               "dataloader",
                                               "ema",
                                               "ema_model",
                                               "ema_state_dict",
                                               "epoch",
                                               "global_step",
                                               "grad_scaler",
                                               "hparams",
                                               "hyper_parameters",
                                               "iteration",
                                               "loops",
                                               "loss",
                                               "lr_scheduler",
                                               "lr_scheduler_state_dict",
                                               "lr_schedulers",
                                               "metrics",
                                               "model_ema",
                                               "opt",
                                               "optim",
                                               "optim_state_dict",
                                               "optimizer",
                                               "optimizer_state",
                                               "optimizer_state_dict",
                                               "optimizer_states",
                                               "optimizer_weights",
                                               "optimizers",
                                               "param_shapes",
                                               "random_state",
                                               "rng",
                                               "rng_state",
                                               "rng_states",
                                               "scaler",
                                               "scheduler",
                                               "scheduler_state_dict",
                                               "schedulers",
                                               "state_dict_ema",
                                               "step",
                                               "torch_rng_state",
                                               "train_state",
                                               "trainer"};

// Those that no layer is called.
constexpr std::string_view kOptimizers[] = {"optim",
                                            "optim_state_dict",
                                            "optimizer",
                                            "optimizer_state",
                                            "optimizer_state_dict",
                                            "optimizer_states",
                                            "optimizer_weights",
                                            "optimizers"};

static_assert(std::ranges::is_sorted(kTrainingState));
static_assert(std::ranges::is_sorted(kOptimizers));

// Returns the name up to its first dot; "" if it has none.
std::string_view subtree_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

}  // namespace

ModelScope ModelScope::of(const Manifest& manifest, const std::vector<std::uint32_t>& files) {
  std::array<bool, std::size(kSubtrees)> has{};
  bool training = false, other = false;
  for (const std::uint32_t file : files)
    for (const Tensor& tensor : manifest.files[file].tensors) {
      const std::string_view name = tensor.name;
      const auto subtree = std::ranges::find(kSubtrees, subtree_of(name));
      if (subtree != std::end(kSubtrees))
        has[static_cast<std::size_t>(subtree - kSubtrees)] = true;
      else if (std::ranges::binary_search(kTrainingState, name.substr(0, name.find('.'))))
        training = true;
      else
        other = true;
    }
  ModelScope scope;
  const auto first = static_cast<std::size_t>(std::ranges::find(has, true) - has.begin());
  scope.all_ = first == has.size() && !other;
  if (first == has.size()) return scope;
  const bool alone = std::ranges::count(has, true) == 1 && !other;
  if (first < kStateDicts || (alone && training)) scope.prefix_ = std::string(kSubtrees[first]) + ".";
  return scope;
}

bool ModelScope::has(std::string_view name) const {
  if (!prefix_.empty() || all_) return name.starts_with(prefix_);
  return !std::ranges::binary_search(kOptimizers, subtree_of(name));
}

}  // namespace weft
