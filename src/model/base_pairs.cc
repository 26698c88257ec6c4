#include "weft/model/base_pairs.h"

#include <algorithm>
#include <string_view>

#include "weft/dtype.h"

namespace weft {
namespace {

// Returns the element width in bytes for the coder. A complex number is two real ones; blocks of quantized elements are
// coded as bytes.
std::uint8_t width_of(DType type) {
  if (type == DType::c64) return 4;
  if (type == DType::c128) return 8;
  const DTypeInfo* info = dtype_info(type);
  if (info == nullptr || info->block_elements != 1) return 1;
  return info->block_bytes == 2 || info->block_bytes == 4 || info->block_bytes == 8
             ? static_cast<std::uint8_t>(info->block_bytes)
             : std::uint8_t{1};
}

struct Place {
  const File* file = nullptr;
  const Tensor* tensor = nullptr;
};

class Pairing {
 public:
  explicit Pairing(const Manifest& parent) {
    for (const File& file : parent.files) {
      files_.emplace(file.path, &file);
      for (const Tensor& tensor : file.tensors) tensors_.emplace(tensor.name, Place{&file, &tensor});
    }
  }

  void pair(const File& file) {
    const auto found = files_.find(file.path);
    const File* same_path = found == files_.end() ? nullptr : found->second;
    const auto own = same_path == nullptr ? Tensors() : tensors_of(*same_path);
    for (const Tensor& tensor : file.tensors)
      if (!pair_tensor(file, tensor, own)) pair_tensor(file, tensor, tensors_);
    if (same_path != nullptr && same_path->size == file.size) pair_places(file, *same_path);
  }

  BasePairs take() { return std::move(pairs_); }

 private:
  using Tensors = std::unordered_map<std::string_view, Place>;

  static Tensors tensors_of(const File& file) {
    Tensors out;
    for (const Tensor& tensor : file.tensors) out.emplace(tensor.name, Place{&file, &tensor});
    return out;
  }

  bool pair_tensor(const File& file, const Tensor& tensor, const Tensors& others) {
    const auto found = others.find(tensor.name);
    if (found == others.end() || tensor.extent == kNoExtent) return false;
    const auto& [other_file, other] = found->second;
    if (other->extent == kNoExtent || other->dtype != tensor.dtype || other->shape != tensor.shape) return false;
    return add(file.extents[tensor.extent].id, other_file->extents[other->extent].id, width_of(tensor.dtype));
  }

  // Pairs extents at equal offsets. Both lists are in order of their offsets.
  void pair_places(const File& file, const File& other) {
    auto at = other.extents.begin();
    for (const Extent& extent : file.extents) {
      at = std::find_if(at, other.extents.end(), [&](const Extent& one) { return one.offset >= extent.offset; });
      if (at == other.extents.end()) return;
      if (at->offset == extent.offset) add(extent.id, at->id, 1);
    }
  }

  // Pairs a blob with a base of the same length. Returns false if the two cannot be paired.
  bool add(const ContentId& blob, const ContentId& base, std::uint8_t width) {
    if (blob.length != base.length || blob.length < kPairedBytesMin) return false;
    if (blob.root != base.root) pairs_.try_emplace(blob, BasePair{base, width});
    return true;
  }

  std::unordered_map<std::string_view, const File*> files_;
  Tensors tensors_;
  BasePairs pairs_;
};

}  // namespace

BasePairs pair_bases(const Manifest& child, const Manifest& parent) {
  Pairing pairing(parent);
  for (const File& file : child.files) pairing.pair(file);
  BasePairs pairs = pairing.take();
  // The parent's own blobs need no base.
  for (const File& file : parent.files)
    for (const Extent& extent : file.extents) pairs.erase(extent.id);
  return pairs;
}

}  // namespace weft
