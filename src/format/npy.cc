// npy 1.0, 2.0 and 3.0: magic, version, header length, header (a Python dict), then the elements of one array. numpy
// also reads arrays of structured types and of Python objects, bytes after the array, and archives and pickles of this
// name. These are Errc::unsupported.
#include "format/builtin.h"
#include "format/npy_array.h"

namespace weft {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::string_view tensor_name(std::string_view file_name) {
  if (file_name.ends_with(kSuffix)) file_name.remove_suffix(kSuffix.size());
  return file_name;
}

class Npy final : public Format {
 public:
  std::string_view name() const override { return "npy"; }

  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    return file_name.ends_with(kSuffix) || has_npy_magic(head);
  }

  Result<Layout> parse(FormatInput& files) const override {
    WEFT_TRY(NpyArray array, read_npy_array(files.main(), false));
    FoundTensor tensor;
    tensor.name = tensor_name(files.name());
    tensor.shape = std::move(array.shape);
    tensor.dtype = array.fortran_order ? DType::npy_other : array.dtype;
    if (tensor.dtype == DType::npy_other) tensor.descr = std::move(array.dict);
    if (array.data.length > 0) tensor.parts.push_back({0, array.data.offset, array.data.length});
    Layout layout;
    layout.format = name();
    layout.tensors.push_back(std::move(tensor));
    return layout;
  }
};

}  // namespace

const Format& npy_format() {
  static const Npy format;
  return format;
}

}  // namespace weft
