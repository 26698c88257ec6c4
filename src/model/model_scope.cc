#include <algorithm>
#include <array>
#include <iterator>

#include "weft/model/safetensors_view.h"

namespace weft {
namespace {

// Subtrees that may be the model. Only a checkpoint has the first ones. A layer may have the other names too.
constexpr std::string_view kSubtrees[] = {"state_dict", "model_state_dict", "model", "module"};
constexpr std::size_t kStateDicts = 2;
// Subtrees of a checkpoint that are state of a training: of PyTorch, Lightning, DeepSpeed, Megatron, timm.
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

static_assert(std::ranges::is_sorted(kTrainingState));

}  // namespace

ModelScope ModelScope::of(const Manifest& manifest, const std::vector<std::uint32_t>& files) {
  std::array<bool, std::size(kSubtrees)> has{};
  bool training = false, other = false;
  for (const std::uint32_t file : files)
    for (const Tensor& tensor : manifest.files[file].tensors) {
      const std::string_view name = tensor.name;
      const std::size_t dot = name.find('.');
      const std::string_view first = name.substr(0, dot);
      const auto subtree = dot == name.npos ? std::end(kSubtrees) : std::ranges::find(kSubtrees, first);
      if (subtree != std::end(kSubtrees))
        has[static_cast<std::size_t>(subtree - kSubtrees)] = true;
      else if (std::ranges::binary_search(kTrainingState, first))
        training = true;
      else
        other = true;
    }
  ModelScope scope;
  const auto first = static_cast<std::size_t>(std::ranges::find(has, true) - has.begin());
  if (first == has.size()) return scope;
  const bool alone = std::ranges::count(has, true) == 1 && !other;
  if (first < kStateDicts || (alone && training)) scope.prefix_ = std::string(kSubtrees[first]) + ".";
  return scope;
}

}  // namespace weft
