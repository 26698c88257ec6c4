// The tensors of a file whose format allows equal names, and tensors that weft cannot show.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Adds the tensors of one file to a layout. One thread.
class TensorList {
 public:
  explicit TensorList(Layout& layout) : layout_(layout) {}

  // Adds a tensor under the name in `described`. A second tensor of the same name gets "~2". An error hides the tensor
  // as it is described, and its message is the reason, one phrase. Errc::unsupported: the names have
  // more than limits::kTensorNamesMax bytes together. A small file can repeat one text in the names of many tensors.
  Status add(Result<FoundTensor> tensor, HiddenTensor described);
  // Sorts the tensors as a layout has them. Call it at the end.
  void finish();

 private:
  std::string unused_name(std::string name);

  Layout& layout_;
  std::uint64_t name_bytes_ = 0;
  std::unordered_map<std::string, std::uint32_t> names_;  // of tensors, and how often each was used
};

}  // namespace weft
