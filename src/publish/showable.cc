#include "publish/showable.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "weft/dtype.h"
#include "weft/model/tree.h"

namespace weft {
namespace {

// The trees can show a file of this path with these tensors, or the error says why not.
Status check_tree(const std::string& path, std::vector<Tensor>& tensors) {
  Manifest alone;
  alone.files.emplace_back().path = path;
  alone.files.front().tensors.swap(tensors);
  const auto nodes = VersionTree::count(alone);
  alone.files.front().tensors.swap(tensors);
  if (nodes.ok()) return {};
  std::string_view why = nodes.error().message;
  if (const std::string place = path + ": "; why.starts_with(place)) why.remove_prefix(place.size());
  return Error{Errc::unsupported, std::string(why)};
}

// True for names that no suffix makes too long.
bool is_short(const std::string& name) {
  constexpr std::size_t kSuffixMax = 64;
  return escape_component(name).size() + kSuffixMax <= limits::kNameMax;
}

void hide_tensor(File& file, const Tensor& tensor, const Error& why) {
  if (file.hidden.size() >= limits::kHiddenTensorsMax) {
    ++file.hidden_more;
    return;
  }
  constexpr std::size_t kReasonMax = limits::kHiddenReasonMax - 32;  // printable() may exceed its bound
  HiddenTensor hidden{tensor.name, 0, printable(why.message, kReasonMax), {}, {}};
  if (tensor.dtype != DType::npy_other) {
    hidden.dtype = tensor.dtype;
    hidden.shape = tensor.shape;
    if (const auto bytes = tensor_bytes(tensor.dtype, tensor.shape); bytes.ok()) hidden.bytes = *bytes;
  }
  file.hidden.push_back(std::move(hidden));
}

void hide_long_names(File& file) {
  std::erase_if(file.tensors, [&](Tensor& tensor) {
    if (is_short(tensor.name)) return false;
    std::vector<Tensor> alone{tensor};
    const Status shown = check_tree(file.path, alone);
    if (!shown.ok()) hide_tensor(file, tensor, shown.error());
    return !shown.ok();
  });
}

void keep_opaque(File& file, const Error& why) {
  std::vector<std::pair<std::string, std::string>> metadata = {
      {std::string(kNoTensors), printable(why.message, limits::kMetadataTextMax)}};
  for (const std::string_view key : {kGlobals, kOtherGlobals})
    if (const std::string_view names = globals_of(file, key); !names.empty()) metadata.emplace_back(key, names);
  file.format.clear();
  file.metadata = std::move(metadata);
  file.tensors.clear();
  file.hidden.clear();
  file.hidden_more = 0;
}

}  // namespace

void hide_unshowable(File& file) {
  if (file.tensors.empty()) return;
  Status shown = check_tree(file.path, file.tensors);
  if (shown.ok()) return;
  File without = file;
  hide_long_names(without);
  if (without.tensors.empty() || !check_tree(without.path, without.tensors).ok())
    return keep_opaque(file, shown.error());
  file = std::move(without);
}

}  // namespace weft
