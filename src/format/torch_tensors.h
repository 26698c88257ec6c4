// The tensors in a value that torch.save has pickled: a state dict, a checkpoint with an optimizer, a module.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "format/pickle.h"
#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Returns the place of a storage's bytes in the file. An error hides the tensors of the storage, and its message is the
// reason, one phrase.
using StoragePlace = std::function<Result<Range>(std::string_view key)>;

// Adds the tensors of one file to a layout. A tensor is named by the keys that lead to it, joined by dots. A second
// tensor of the same name gets "~2". One thread.
class TorchTensors {
 public:
  explicit TorchTensors(Layout& layout) : layout_(layout) {}

  // Adds the tensors of a value, named below `prefix`. `pickle_at` is the offset of the pickle in the file.
  // Errc::unsupported: the value is nested too deeply, or its parts are shared too often.
  Status add(const Pickle& pickle, Pickle::Value value, std::string_view prefix, std::uint64_t pickle_at,
             const StoragePlace& storages);
  // Sorts the tensors as a layout has them. Call it at the end.
  void finish();

 private:
  class Search;

  // Adds a tensor, or hides one with the reason and its bytes. Errc::unsupported: the names are together too long.
  Status add_named(std::string name, Result<FoundTensor> tensor, std::uint64_t bytes);
  std::string unused_name(std::string name);

  Layout& layout_;
  std::size_t name_bytes_ = 0;
  std::unordered_map<std::string, std::uint32_t> names_;  // of tensors, and how often each was used
};

}  // namespace weft
