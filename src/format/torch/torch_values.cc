#include "format/torch/torch_values.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"

namespace weft {
namespace {

using NamedType = std::pair<std::string_view, DType>;

// Storage classes of PyTorch, without "torch." and "torch.cuda.". An untyped storage counts bytes.
constexpr auto kStorageTypes = std::to_array<NamedType>({
    {"FloatStorage", DType::f32},
    {"DoubleStorage", DType::f64},
    {"HalfStorage", DType::f16},
    {"BFloat16Storage", DType::bf16},
    {"LongStorage", DType::i64},
    {"IntStorage", DType::i32},
    {"ShortStorage", DType::i16},
    {"CharStorage", DType::i8},
    {"ByteStorage", DType::u8},
    {"BoolStorage", DType::boolean},
    {"ComplexFloatStorage", DType::c64},
    {"ComplexDoubleStorage", DType::c128},
    {"QInt8Storage", DType::i8},
    {"QUInt8Storage", DType::u8},
    {"QInt32Storage", DType::i32},
    {"UntypedStorage", DType::u8},
});

constexpr auto kTensorTypes = std::to_array<NamedType>({
    {"torch.float32", DType::f32},
    {"torch.float64", DType::f64},
    {"torch.float16", DType::f16},
    {"torch.bfloat16", DType::bf16},
    {"torch.int64", DType::i64},
    {"torch.int32", DType::i32},
    {"torch.int16", DType::i16},
    {"torch.int8", DType::i8},
    {"torch.uint64", DType::u64},
    {"torch.uint32", DType::u32},
    {"torch.uint16", DType::u16},
    {"torch.uint8", DType::u8},
    {"torch.bool", DType::boolean},
    {"torch.complex64", DType::c64},
    {"torch.complex128", DType::c128},
    {"torch.float8_e4m3fn", DType::f8_e4m3},
    {"torch.float8_e5m2", DType::f8_e5m2},
    {"torch.float8_e8m0fnu", DType::f8_e8m0},
    {"torch.float8_e4m3fnuz", DType::f8_e4m3fnuz},
    {"torch.float8_e5m2fnuz", DType::f8_e5m2fnuz},
});

constexpr auto kTorchMakers = std::to_array<std::pair<std::string_view, TorchMaker>>({
    {"torch._utils._rebuild_tensor", TorchMaker::tensor},
    {"torch._utils._rebuild_tensor_v2", TorchMaker::tensor},
    {"torch._utils._rebuild_qtensor", TorchMaker::quantized},
    {"torch._utils._rebuild_tensor_v3", TorchMaker::tensor_v3},
    {"torch._utils._rebuild_parameter", TorchMaker::parameter},
    {"torch._utils._rebuild_parameter_with_state", TorchMaker::parameter},
    {"torch._tensor._rebuild_from_type_v2", TorchMaker::from_type},
    {"torch._utils._rebuild_sparse_tensor", TorchMaker::sparse},
    {"numpy.core.multiarray._reconstruct", TorchMaker::reconstruct},
    {"numpy._core.multiarray._reconstruct", TorchMaker::reconstruct},
    {"numpy.core.numeric._frombuffer", TorchMaker::from_buffer},
    {"numpy._core.numeric._frombuffer", TorchMaker::from_buffer},
    {"collections.OrderedDict", TorchMaker::ordered_dict},
    {"collections.defaultdict", TorchMaker::ordered_dict},
});

template <class Item, std::size_t N>
std::optional<Item> find_torch_name(const std::array<std::pair<std::string_view, Item>, N>& table,
                                    std::string_view name) {
  const auto found = std::ranges::find(table, name, &std::pair<std::string_view, Item>::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

constexpr std::size_t kArgumentsMax = 16;  // of the functions that are read here

}  // namespace

std::optional<DType> torch_storage_type(std::string_view class_name) {
  return find_torch_name(kStorageTypes, class_name.substr(class_name.rfind('.') + 1));
}

std::uint64_t torch_storage_width(std::string_view class_name) {
  if (const auto type = torch_storage_type(class_name)) return dtype_info(*type)->block_bytes;
  const bool packed = class_name.ends_with(".QUInt4x2Storage") || class_name.ends_with(".QUInt2x4Storage");
  return packed ? 1 : 0;
}

std::optional<DType> torch_tensor_type(std::string_view global) {
  return find_torch_name(kTensorTypes, global);
}

std::vector<Pickle::Value> TorchValues::some(Value value) const {
  const Kind kind = pickle_.kind(value);
  if (kind != Kind::tuple && kind != Kind::list) return {};
  return pickle_.items(value).first(kArgumentsMax);
}

TorchMaker TorchValues::maker(Value function) const {
  return find_torch_name(kTorchMakers, global(function)).value_or(TorchMaker::other);
}

std::optional<std::uint64_t> TorchValues::whole_number(Value value) const {
  if (pickle_.kind(value) != Kind::integer || pickle_.integer(value) < 0) return std::nullopt;
  return static_cast<std::uint64_t>(pickle_.integer(value));
}

// Numbers in a tuple, or in a torch.Size of one.
std::optional<std::vector<std::uint64_t>> TorchValues::whole_numbers(Value value) const {
  if (pickle_.kind(value) == Kind::call)
    if (const std::vector<Value> inner = some(pickle_.call(value).arguments); inner.size() == 1) value = inner[0];
  if (pickle_.kind(value) != Kind::tuple && pickle_.kind(value) != Kind::list) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const Value item : pickle_.items(value).first(limits::kDimensionsMax + 1)) {
    const auto number = whole_number(item);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::string TorchValues::key(Value value) const {
  switch (pickle_.kind(value)) {
    case Kind::text:
      return std::string(pickle_.text(value).substr(0, limits::kTensorNameMax + 1));
    case Kind::integer:
      return std::to_string(pickle_.integer(value));
    case Kind::boolean:
      return pickle_.boolean(value) ? "True" : "False";
    case Kind::tuple: {
      std::string text;
      for (const Value part : some(value)) {
        if (text.size() > limits::kTensorNameMax) break;
        if (!text.empty()) text += '_';
        text += pickle_.kind(part) == Kind::tuple ? "?" : key(part);
      }
      return text;
    }
    default:
      return "?";
  }
}

std::optional<TorchElements> TorchValues::elements(const std::vector<Value>& arguments) const {
  constexpr std::size_t kOffsetAt = 1, kShapeAt = 2, kStridesAt = 3;
  if (arguments.size() <= kStridesAt) return std::nullopt;
  const auto offset = whole_number(arguments[kOffsetAt]);
  auto shape = whole_numbers(arguments[kShapeAt]), strides = whole_numbers(arguments[kStridesAt]);
  if (!offset || !shape || !strides || shape->size() != strides->size()) return std::nullopt;
  return TorchElements{*std::move(shape), *std::move(strides), *offset};
}

// The id is ("storage", class, key, device, elements), and for old views (key of the view, offset, elements).
std::optional<TorchStorageId> TorchValues::storage_id(Value value) const {
  if (pickle_.kind(value) != Kind::persistent) return std::nullopt;
  const std::vector<Value> id = some(*pickle_.items(value).begin());
  if (id.size() < 5 || text(id[0]) != "storage" || pickle_.kind(id[2]) != Kind::text) return std::nullopt;
  const auto elements = whole_number(id[4]);
  if (!elements || text(id[2]).size() > limits::kTensorNameMax) return std::nullopt;
  TorchStorageId storage{global(id[1]), text(id[2]), *elements, 0};
  if (id.size() > 5)
    if (const std::vector<Value> view = some(id[5]); view.size() == 3)
      storage.begin = whole_number(view[1]).value_or(0);
  return storage;
}

bool TorchValues::is_module_id(Value value) const {
  if (pickle_.kind(value) != Kind::persistent) return false;
  const std::vector<Value> id = some(*pickle_.items(value).begin());
  return !id.empty() && text(id[0]) == "module";
}

bool TorchValues::has_bit(Value metadata) const {
  constexpr int kPairsMax = 64;
  if (pickle_.kind(metadata) != Kind::dict) return false;
  int pairs = 0;
  for (const auto& [key, value] : pickle_.pairs(metadata))
    if (is_true(value) || ++pairs > kPairsMax) return true;
  return false;
}

std::uint64_t TorchValues::array_bytes(Value value) const {
  if (pickle_.kind(value) == Kind::call)
    if (const std::vector<Value> encoded = some(pickle_.call(value).arguments); !encoded.empty()) value = encoded[0];
  const bool has_place = pickle_.kind(value) == Kind::bytes || pickle_.kind(value) == Kind::text;
  return has_place ? pickle_.bytes(value).length : 0;
}

}  // namespace weft
