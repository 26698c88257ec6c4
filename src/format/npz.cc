#include "format/npz.h"

#include <algorithm>
#include <utility>

#include "format/layout.h"
#include "format/npy_array.h"
#include "format/parse_errors.h"
#include "format/slice.h"

namespace weft {
namespace {

constexpr std::string_view kArraySuffix = ".npy";

bool is_array(const ZipMember& member) {
  return member.name.ends_with(kArraySuffix);
}

// Returns the tensor of an array that begins `begin` bytes after the start of the archive.
FoundTensor tensor_of(std::string_view name, NpyArray array, std::uint64_t begin) {
  FoundTensor tensor;
  tensor.name = name;
  tensor.dtype = array.dtype;
  if (array.data.length > 0) tensor.parts.push_back({0, begin + array.data.offset, array.data.length});
  if (array.dtype == DType::npy_other)
    tensor.descr = std::move(array.dict);
  else if (array.fortran_order && array.data.length > 0)
    tensor.strides = needed_strides(array.shape, fortran_strides(array.shape));
  tensor.shape = std::move(array.shape);
  return tensor;
}

// Errc::unsupported, Errc::invalid: the member cannot be shown. Other errors come from the source.
Result<FoundTensor> read_tensor(ByteSource& archive, const ZipMember& member, std::string_view name,
                                std::size_t tensors_before) {
  if (!member.stored) return Error{Errc::unsupported, "compressed"};
  WEFT_CHECK(check_tensor_name(name, tensors_before));
  SliceSource file(archive, member.data);
  WEFT_TRY(NpyArray array, read_npy_array(file, true));
  return tensor_of(name, std::move(array), member.data.offset);
}

}  // namespace

bool is_npz(const ZipDirectory& members) {
  return !members.members().empty() && std::ranges::all_of(members.members(), is_array);
}

Result<Layout> read_npz(ByteSource& archive, const ZipDirectory& members) {
  Layout layout;
  layout.format = "npz";
  for (const ZipMember& member : members.members()) {
    if (!is_array(member)) continue;
    const std::string_view name = std::string_view(member.name).substr(0, member.name.size() - kArraySuffix.size());
    auto tensor = read_tensor(archive, member, name, layout.tensors.size());
    if (tensor.ok())
      layout.tensors.push_back(*std::move(tensor));
    else if (is_malformed(tensor.error()))
      hide(layout, {std::string(name), member.data.length, tensor.error().message, {}, {}});
    else
      return std::move(tensor).error();
  }
  return layout;
}

}  // namespace weft
