#include "format/torch_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "format/npy_header.h"

namespace weft {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

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

// The functions whose calls make tensors, or whose arguments have a meaning of their own.
enum class Maker { other, tensor, tensor_v3, parameter, from_type, sparse, reconstruct, from_buffer, ordered_dict };

constexpr auto kMakers = std::to_array<std::pair<std::string_view, Maker>>({
    {"torch._utils._rebuild_tensor", Maker::tensor},
    {"torch._utils._rebuild_tensor_v2", Maker::tensor},
    {"torch._utils._rebuild_qtensor", Maker::tensor},
    {"torch._utils._rebuild_tensor_v3", Maker::tensor_v3},
    {"torch._utils._rebuild_parameter", Maker::parameter},
    {"torch._utils._rebuild_parameter_with_state", Maker::parameter},
    {"torch._tensor._rebuild_from_type_v2", Maker::from_type},
    {"torch._utils._rebuild_sparse_tensor", Maker::sparse},
    {"numpy.core.multiarray._reconstruct", Maker::reconstruct},
    {"numpy._core.multiarray._reconstruct", Maker::reconstruct},
    {"numpy.core.numeric._frombuffer", Maker::from_buffer},
    {"numpy._core.numeric._frombuffer", Maker::from_buffer},
    {"collections.OrderedDict", Maker::ordered_dict},
    {"collections.defaultdict", Maker::ordered_dict},
});

template <class Item, std::size_t N>
std::optional<Item> find_named(const std::array<std::pair<std::string_view, Item>, N>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &std::pair<std::string_view, Item>::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

// Parts of a pickled module that leave its names, as they leave those of state_dict().
bool is_part_of_module(std::string_view key) {
  return key == "_parameters" || key == "_buffers" || key == "_modules";
}

// A storage whose bytes are in the file.
struct Storage {
  std::optional<DType> type;
  std::string_view type_name;
  Range bytes;
  std::uint64_t begin = 0;  // a view: elements of the whole storage before the view
};

// The place of a tensor's elements in its storage.
struct Elements {
  Shape shape;
  Strides strides;
  std::uint64_t offset = 0;  // in elements
};

// Strides of dimensions of one element make no difference.
bool in_c_order(const Elements& elements) {
  const Strides plain = c_strides(elements.shape);
  for (std::size_t i = 0; i < plain.size(); ++i)
    if (elements.shape[i] != 1 && elements.strides[i] != plain[i]) return false;
  return true;
}

Error hidden_because(std::string why) {
  return Error{Errc::unsupported, std::move(why)};
}

// Returns the tensor without its name. The error is the reason why it is hidden.
Result<FoundTensor> placed(const Storage& storage, DType type, Elements elements) {
  FoundTensor tensor;
  tensor.dtype = type;
  if (elements.shape.size() > limits::kDimensionsMax)
    return hidden_because(fmt::format("expected at most {} dimensions, got more", limits::kDimensionsMax));
  WEFT_TRY(const std::uint64_t logical, tensor_bytes(type, elements.shape));
  if (logical > limits::kVersionBytesMax)
    return hidden_because(fmt::format("its shape {} is too large", shape_text(elements.shape)));
  if (logical > 0) {
    WEFT_TRY(const std::uint64_t span, strided_bytes(type, elements.shape, elements.strides));
    std::uint64_t begin = 0;
    if (__builtin_add_overflow(storage.begin, elements.offset, &begin) ||
        __builtin_mul_overflow(begin, std::uint64_t{dtype_info(type)->block_bytes}, &begin) ||
        begin > storage.bytes.length || span > storage.bytes.length - begin)
      return hidden_because(fmt::format("it ends after its storage of {} bytes", storage.bytes.length));
    tensor.parts.push_back({0, storage.bytes.offset + begin, span});
    if (!in_c_order(elements)) tensor.strides = std::move(elements.strides);
  }
  tensor.shape = std::move(elements.shape);
  return tensor;
}

// Reads the values of a pickle. A value of a kind that the caller does not expect is empty.
class ValueReader {
 public:
  explicit ValueReader(const Pickle& pickle) : pickle_(pickle) {}

  std::vector<Value> items(Value value) const {
    const Kind kind = pickle_.kind(value);
    return kind == Kind::tuple || kind == Kind::list ? pickle_.items(value) : std::vector<Value>();
  }
  std::string_view text(Value value) const {
    return pickle_.kind(value) == Kind::text ? pickle_.text(value) : std::string_view();
  }
  std::string_view global(Value value) const {
    return pickle_.kind(value) == Kind::global ? pickle_.global(value) : std::string_view();
  }
  Maker maker(Value function) const { return find_named(kMakers, global(function)).value_or(Maker::other); }
  bool is_true(Value value) const { return pickle_.kind(value) == Kind::boolean && pickle_.boolean(value); }
  std::optional<std::uint64_t> whole_number(Value value) const;
  std::optional<std::vector<std::uint64_t>> whole_numbers(Value value) const;
  std::string key(Value value) const;  // as a part of a name
  bool is_module(const Pickle::Pairs& pairs) const;
  std::optional<Elements> elements(const std::vector<Value>& arguments) const;
  // True if the tensor has a bit that changes its values after they were read.
  bool has_bit(Value metadata) const;

 private:
  const Pickle& pickle_;
};

std::optional<std::uint64_t> ValueReader::whole_number(Value value) const {
  if (pickle_.kind(value) != Kind::integer || pickle_.integer(value) < 0) return std::nullopt;
  return static_cast<std::uint64_t>(pickle_.integer(value));
}

// Numbers in a tuple, or in a torch.Size of one.
std::optional<std::vector<std::uint64_t>> ValueReader::whole_numbers(Value value) const {
  if (pickle_.kind(value) == Kind::call)
    if (const std::vector<Value> inner = items(pickle_.call(value).arguments); inner.size() == 1) value = inner[0];
  if (pickle_.kind(value) != Kind::tuple && pickle_.kind(value) != Kind::list) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const Value item : pickle_.items(value)) {
    const auto number = whole_number(item);
    if (!number) return std::nullopt;
    out.push_back(*number);
  }
  return out;
}

std::string ValueReader::key(Value value) const {
  switch (pickle_.kind(value)) {
    case Kind::text:
      return std::string(pickle_.text(value).substr(0, limits::kTensorNameMax + 1));
    case Kind::integer:
      return std::to_string(pickle_.integer(value));
    case Kind::boolean:
      return pickle_.boolean(value) ? "True" : "False";
    case Kind::tuple: {
      std::string text;
      for (const Value part : pickle_.items(value)) {
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

bool ValueReader::is_module(const Pickle::Pairs& pairs) const {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(pairs, [&](const auto& pair) { return text(pair.first) == name; });
  };
  return has("_modules") && has("_parameters");
}

std::optional<Elements> ValueReader::elements(const std::vector<Value>& arguments) const {
  constexpr std::size_t kOffsetAt = 1, kShapeAt = 2, kStridesAt = 3;
  if (arguments.size() <= kStridesAt) return std::nullopt;
  const auto offset = whole_number(arguments[kOffsetAt]);
  auto shape = whole_numbers(arguments[kShapeAt]), strides = whole_numbers(arguments[kStridesAt]);
  if (!offset || !shape || !strides || shape->size() != strides->size()) return std::nullopt;
  return Elements{*std::move(shape), *std::move(strides), *offset};
}

bool ValueReader::has_bit(Value metadata) const {
  return pickle_.kind(metadata) == Kind::dict &&
         std::ranges::any_of(pickle_.pairs(metadata), [&](const auto& pair) { return is_true(pair.second); });
}

}  // namespace

// Walks one value once.
class TorchTensors::Search {
 public:
  Search(TorchTensors& to, const Pickle& pickle, std::uint64_t pickle_at, const StoragePlace& storages)
      : to_(to),
        pickle_(pickle),
        reader_(pickle),
        pickle_at_(pickle_at),
        storages_(storages),
        steps_left_(kSpareSteps + limits::kPickleStepsPerOpcode * pickle.opcodes()),
        on_way_(pickle.values()) {}

  Status run(Value value, std::string_view prefix) {
    name_ = prefix;
    return walk(value, 0);
  }

 private:
  static constexpr std::uint64_t kSpareSteps = 1000;

  Status walk(Value value, std::size_t depth);
  Status walk_inside(Value value, std::size_t depth);
  Status walk_below(std::string_view key, Value value, std::size_t depth);
  Status walk_pairs(const Pickle::Pairs& pairs, bool of_module, std::size_t depth);
  Status walk_items(const std::vector<Value>& items, std::size_t depth);
  Status walk_call(const Pickle::Call& call, std::size_t depth);
  Status walk_arguments(const Pickle::Call& call, std::size_t depth);
  Status walk_sparse(const std::vector<Value>& arguments, std::size_t depth);

  Status add(Result<FoundTensor> tensor);
  Result<FoundTensor> rebuilt(const std::vector<Value>& arguments, Maker maker);
  Result<FoundTensor> storage_alone(Value value);
  Result<FoundTensor> reconstructed(const Pickle::Call& call);
  Result<FoundTensor> numpy_array(Value bytes, Value dtype, Value shape, bool fortran_order);
  Result<Storage> storage_of(Value value);

  TorchTensors& to_;
  const Pickle& pickle_;
  const ValueReader reader_;
  const std::uint64_t pickle_at_;
  const StoragePlace& storages_;
  std::uint64_t steps_left_;
  std::vector<bool> on_way_;  // by value: the walk is within it
  std::string name_;          // of the value that is walked
  std::uint64_t bytes_ = 0;   // of the storage of the tensor that is added next; 0: unknown
};

Status TorchTensors::Search::walk(Value value, std::size_t depth) {
  if (steps_left_-- == 0) return Error{Errc::unsupported, "pickle: its values are shared too often"};
  if (depth > limits::kPickleDepthMax) return Error{Errc::unsupported, "pickle: its values are nested too deeply"};
  if (on_way_[value]) return {};
  on_way_[value] = true;
  Status done = walk_inside(value, depth + 1);
  on_way_[value] = false;
  return done;
}

Status TorchTensors::Search::walk_inside(Value value, std::size_t depth) {
  switch (pickle_.kind(value)) {
    case Kind::list:
    case Kind::tuple:
      return walk_items(pickle_.items(value), depth);
    case Kind::dict: {
      const Pickle::Pairs pairs = pickle_.pairs(value);
      return walk_pairs(pairs, reader_.is_module(pairs), depth);
    }
    case Kind::call:
      return walk_call(pickle_.call(value), depth);
    case Kind::persistent:
      return add(storage_alone(value));
    default:
      return {};
  }
}

// Appends the key to the name while the value is walked. No tensor has a name as long as the bound, so the end of a
// longer name makes no difference.
Status TorchTensors::Search::walk_below(std::string_view key, Value value, std::size_t depth) {
  const std::size_t before = name_.size();
  if (before <= limits::kTensorNameMax) {
    if (before > 0) name_ += '.';
    name_ += key;
  }
  Status done = walk(value, depth);
  name_.resize(before);
  return done;
}

Status TorchTensors::Search::walk_pairs(const Pickle::Pairs& pairs, bool of_module, std::size_t depth) {
  for (const auto& [key, value] : pairs) {
    const bool nameless = of_module && is_part_of_module(reader_.text(key));
    WEFT_CHECK(nameless ? walk(value, depth) : walk_below(reader_.key(key), value, depth));
  }
  return {};
}

Status TorchTensors::Search::walk_items(const std::vector<Value>& items, std::size_t depth) {
  for (std::size_t i = 0; i < items.size(); ++i) WEFT_CHECK(walk_below(std::to_string(i), items[i], depth));
  return {};
}

Status TorchTensors::Search::walk_call(const Pickle::Call& call, std::size_t depth) {
  const std::vector<Value> arguments = reader_.items(call.arguments);
  const Maker maker = reader_.maker(call.function);
  switch (maker) {
    case Maker::tensor:
    case Maker::tensor_v3:
      return add(rebuilt(arguments, maker));
    case Maker::reconstruct:
      return add(reconstructed(call));
    case Maker::from_buffer:  // (bytes, dtype, shape, order)
      if (arguments.size() != 4) return walk_arguments(call, depth);
      return add(numpy_array(arguments[0], arguments[1], arguments[2], reader_.text(arguments[3]) == "F"));
    case Maker::parameter:
      return arguments.empty() ? Status{} : walk(arguments[0], depth);
    case Maker::from_type: {  // (function, class, arguments, state)
      const Maker inner = arguments.size() == 4 ? reader_.maker(arguments[0]) : Maker::other;
      if (inner != Maker::tensor && inner != Maker::tensor_v3) return walk_arguments(call, depth);
      return add(rebuilt(reader_.items(arguments[2]), inner));
    }
    case Maker::sparse:
      return walk_sparse(arguments, depth);
    default:
      return walk_arguments(call, depth);
  }
}

// Walks all parts of a call that has no meaning here.
Status TorchTensors::Search::walk_arguments(const Pickle::Call& call, std::size_t depth) {
  if (call.pairs != Pickle::kNone) WEFT_CHECK(walk_pairs(pickle_.pairs(call.pairs), false, depth));
  if (call.items != Pickle::kNone) WEFT_CHECK(walk_items(pickle_.items(call.items), depth));
  const std::vector<Value> arguments = reader_.items(call.arguments);
  if (reader_.maker(call.function) == Maker::ordered_dict) {  // Python 2 has the pairs in the last argument
    if (arguments.empty()) return {};
    for (const Value pair : reader_.items(arguments.back()))
      if (const std::vector<Value> both = reader_.items(pair); both.size() == 2)
        WEFT_CHECK(walk_below(reader_.key(both[0]), both[1], depth));
    return {};
  }
  WEFT_CHECK(walk_items(arguments, depth));
  if (pickle_.kind(call.state) == Kind::dict) return walk_pairs(pickle_.pairs(call.state), true, depth);
  return walk(call.state, depth);
}

// (layout, (indices, values, ...)), or with two tensors of indices.
Status TorchTensors::Search::walk_sparse(const std::vector<Value>& arguments, std::size_t depth) {
  constexpr std::array<std::string_view, 2> kCoordinates = {"indices", "values"};
  constexpr std::array<std::string_view, 3> kCompressed = {"compressed_indices", "plain_indices", "values"};
  if (arguments.size() != 2) return {};
  const std::vector<Value> parts = reader_.items(arguments[1]);
  const bool compressed = parts.size() > 2 && pickle_.kind(parts[2]) == Kind::call &&
                          reader_.maker(pickle_.call(parts[2]).function) != Maker::other;
  const std::span<const std::string_view> names =
      compressed ? std::span<const std::string_view>(kCompressed) : std::span<const std::string_view>(kCoordinates);
  for (std::size_t i = 0; i < std::min(names.size(), parts.size()); ++i)
    WEFT_CHECK(walk_below(names[i], parts[i], depth));
  return {};
}

Status TorchTensors::Search::add(Result<FoundTensor> tensor) {
  to_.add_named(name_.empty() ? "tensor" : name_, std::move(tensor), std::exchange(bytes_, 0));
  return {};
}

// Arguments: storage, offset, shape, strides, and more that differ between versions.
Result<FoundTensor> TorchTensors::Search::rebuilt(const std::vector<Value>& arguments, Maker maker) {
  const std::size_t type_at = 6, metadata_at = maker == Maker::tensor_v3 ? 7 : 6;
  auto elements = reader_.elements(arguments);
  if (!elements) return hidden_because("a tensor with other arguments than PyTorch writes");
  WEFT_TRY(const Storage storage, storage_of(arguments[0]));
  std::optional<DType> type = storage.type;
  std::string_view type_name = storage.type_name;
  if (maker == Maker::tensor_v3) {
    type_name = arguments.size() > type_at ? reader_.global(arguments[type_at]) : std::string_view();
    type = find_named(kTensorTypes, type_name);
  }
  if (!type) return hidden_because(fmt::format("a type that weft lacks, {}", printable(type_name)));
  if (arguments.size() > metadata_at && reader_.has_bit(arguments[metadata_at]))
    return hidden_because("its values are conjugated or negated when they are read");
  return placed(storage, *type, *std::move(elements));
}

Result<FoundTensor> TorchTensors::Search::storage_alone(Value value) {
  WEFT_TRY(const Storage storage, storage_of(value));
  if (!storage.type) return hidden_because(fmt::format("a type that weft lacks, {}", printable(storage.type_name)));
  const std::uint64_t count = storage.bytes.length / dtype_info(*storage.type)->block_bytes;
  return placed(storage, *storage.type, {{count}, {1}, 0});
}

// The id of a storage: ("storage", class, key, device, elements), and for old views (key of the whole, offset,
// elements).
Result<Storage> TorchTensors::Search::storage_of(Value value) {
  if (pickle_.kind(value) != Kind::persistent) return hidden_because("its storage is not in the file");
  const std::vector<Value> id = reader_.items(pickle_.items(value).front());
  if (id.size() < 5 || reader_.text(id[0]) != "storage" || pickle_.kind(id[2]) != Kind::text)
    return hidden_because("its storage has another id than PyTorch writes");
  const std::string_view name = reader_.global(id[1]);
  Storage storage{find_named(kStorageTypes, name.substr(name.rfind('.') + 1)), name, {}, 0};
  WEFT_TRY(storage.bytes, storages_(reader_.text(id[2])));
  bytes_ = storage.bytes.length;
  if (id.size() > 5)
    if (const std::vector<Value> view = reader_.items(id[5]); view.size() == 3)
      storage.begin = reader_.whole_number(view[1]).value_or(0);
  return storage;
}

// The state is (version, shape, dtype, Fortran order, bytes).
Result<FoundTensor> TorchTensors::Search::reconstructed(const Pickle::Call& call) {
  const std::vector<Value> state = reader_.items(call.state);
  if (state.size() != 5) return hidden_because("an array of numpy without a state");
  return numpy_array(state[4], state[2], state[1], reader_.is_true(state[3]));
}

// The bytes of an array lie in the pickle from protocol 3 on.
Result<FoundTensor> TorchTensors::Search::numpy_array(Value bytes, Value dtype, Value shape, bool fortran_order) {
  const auto dimensions = reader_.whole_numbers(shape);
  if (pickle_.kind(bytes) != Kind::bytes || !dimensions || pickle_.kind(dtype) != Kind::call)
    return hidden_because("an array of numpy that is escaped as text, or has objects");
  const std::vector<Value> names = reader_.items(pickle_.call(dtype).arguments);
  const std::vector<Value> state = reader_.items(pickle_.call(dtype).state);
  const bool big_endian = state.size() > 1 && reader_.text(state[1]) == ">";
  const auto element = parse_npy_descr(names.empty() ? std::string_view() : reader_.text(names[0]));
  if (!element.ok() || element->dtype == DType::npy_other || big_endian)
    return hidden_because("an array of numpy of a type that weft does not show here");
  const Range place = pickle_.bytes(bytes);
  const auto length = tensor_bytes(element->dtype, *dimensions);
  if (!length.ok() || *length != place.length)
    return hidden_because("an array of numpy with other bytes than its shape needs");
  Elements elements{*dimensions, c_strides(*dimensions), 0};
  std::uint64_t step = 1;
  for (std::size_t i = 0; fortran_order && *length > 0 && i < dimensions->size(); ++i) {
    elements.strides[i] = step;
    step *= (*dimensions)[i];
  }
  return placed({element->dtype, {}, {pickle_at_ + place.offset, place.length}, 0}, element->dtype,
                std::move(elements));
}

Status TorchTensors::add(const Pickle& pickle, Pickle::Value value, std::string_view prefix, std::uint64_t pickle_at,
                         const StoragePlace& storages) {
  return Search(*this, pickle, pickle_at, storages).run(value, prefix);
}

void TorchTensors::finish() {
  sort_by_place(layout_.tensors);
}

void TorchTensors::add_named(std::string name, Result<FoundTensor> tensor, std::uint64_t bytes) {
  if (tensor.ok())
    if (Status named = check_tensor_name(name, layout_.tensors.size()); !named.ok()) tensor = named.error();
  if (!tensor.ok()) return hide(layout_, {std::move(name), bytes, tensor.error().message, {}, {}});
  tensor->name = names_.unused(std::move(name));
  layout_.tensors.push_back(*std::move(tensor));
}

}  // namespace weft
