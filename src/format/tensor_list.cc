#include "format/tensor_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "format/layout.h"

namespace weft {

Status TensorList::add(Result<FoundTensor> tensor, HiddenTensor described) {
  if (tensor.ok())
    if (Status named = check_tensor_name(described.name, layout_.tensors.size()); !named.ok()) tensor = named.error();
  if (!tensor.ok()) {
    described.why = tensor.error().message;
    hide(layout_, std::move(described));
    return {};
  }
  name_bytes_ += described.name.size();
  if (name_bytes_ > limits::kTensorNamesMax)
    return Error{Errc::unsupported, fmt::format("expected names of tensors of at most {} bytes together, got more",
                                                limits::kTensorNamesMax)};
  tensor->name = unused_name(std::move(described.name));
  layout_.tensors.push_back(*std::move(tensor));
  return {};
}

void TensorList::finish() {
  sort_by_place(layout_.tensors);
}

std::string TensorList::unused_name(std::string name) {
  std::uint32_t& used = names_[name];  // the reference stays valid while other names are added
  for (++used; used > 1; ++used)
    if (std::string other = fmt::format("{}~{}", name, used); names_.try_emplace(other, 1).second) return other;
  return name;
}

}  // namespace weft
