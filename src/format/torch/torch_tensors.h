// The tensors in a value that torch.save has pickled: a state dict, a checkpoint with an optimizer, a module.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "format/tensor_list.h"
#include "format/torch/pickle.h"
#include "format/torch/torch_values.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Returns the place of a storage's bytes in the file. An error hides the tensors of the storage, and its message is the
// reason, one phrase.
using StoragePlace = std::function<Result<Range>(std::string_view key)>;

// Returns the tensor of these elements in a storage, without its name. `elements_before`: of a larger storage, before
// this one. The error is the reason why the tensor is hidden.
Result<FoundTensor> torch_placed(const Range& storage, std::uint64_t elements_before, DType type,
                                 TorchElements elements);

// Adds the tensors of one file to a layout. A tensor is named by the keys that lead to it, joined by dots. One thread.
class TorchTensors {
 public:
  explicit TorchTensors(Layout& layout) : list_(layout) {}

  // Adds the tensors of a value, named below `prefix`. `pickle_at` is the offset of the pickle in the file.
  // Errc::unsupported: the value is nested too deeply, or its parts are shared too often.
  Status add(const Pickle& pickle, Pickle::Value value, std::string_view prefix, std::uint64_t pickle_at,
             const StoragePlace& storages);
  // Sorts the tensors as a layout has them. Call it at the end.
  void finish() { list_.finish(); }

 private:
  class Search;

  TensorList list_;
};

}  // namespace weft
