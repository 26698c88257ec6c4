#include "format/torch/torch_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "format/layout.h"
#include "format/npy_header.h"

namespace weft {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

// Parts of a pickled module that leave its names, as they leave those of state_dict().
bool is_part_of_module(std::string_view key) {
  return key == "_parameters" || key == "_buffers" || key == "_modules";
}

// A storage whose bytes are in the file.
struct TorchStorage {
  TorchStorageId id;
  std::optional<DType> type;
  Range bytes;
};

constexpr std::size_t kDescrMax = 64;  // bytes of the name of a type of numpy

Error hidden_because(std::string why) {
  return Error{Errc::unsupported, std::move(why)};
}

Error lacks_type(std::string_view name) {
  return hidden_because(fmt::format("a type that weft lacks, {}", printable(name)));
}

// The value of an expanded tensor is larger than its bytes in the file.
Status check_torch_size(std::uint64_t logical, std::uint64_t stored, const Shape& shape) {
  if (logical > limits::kVersionBytesMax)
    return hidden_because(fmt::format("its shape {} is too large", shape_text(shape)));
  if (logical > stored && logical > limits::kExpandedBytesMax)
    return hidden_because(fmt::format("its {} bytes repeat a storage of {}", logical, stored));
  return {};
}

}  // namespace

Result<FoundTensor> torch_placed(const Range& storage, std::uint64_t elements_before, DType type,
                                 TorchElements elements) {
  FoundTensor tensor;
  tensor.dtype = type;
  if (elements.shape.size() > limits::kDimensionsMax)
    return hidden_because(fmt::format("expected at most {} dimensions, got more", limits::kDimensionsMax));
  WEFT_TRY(const std::uint64_t logical, tensor_bytes(type, elements.shape));
  if (logical > 0) {
    WEFT_TRY(const std::uint64_t span, strided_bytes(type, elements.shape, elements.strides));
    std::uint64_t begin = 0;
    if (__builtin_add_overflow(elements_before, elements.offset, &begin) ||
        __builtin_mul_overflow(begin, std::uint64_t{dtype_info(type)->block_bytes}, &begin) || begin > storage.length ||
        span > storage.length - begin)
      return hidden_because(fmt::format("it ends after its storage of {} bytes", storage.length));
    WEFT_CHECK(check_torch_size(logical, storage.length, elements.shape));
    tensor.parts.push_back({0, storage.offset + begin, span});
    tensor.strides = needed_strides(elements.shape, std::move(elements.strides));
  }
  tensor.shape = std::move(elements.shape);
  return tensor;
}

// Walks one value once.
class TorchTensors::Search {
 public:
  Search(TorchTensors& to, const Pickle& pickle, std::uint64_t pickle_at, const StoragePlace& storages)
      : to_(to),
        pickle_(pickle),
        values_(pickle),
        pickle_at_(pickle_at),
        storages_(storages),
        steps_left_(std::min(kSpareSteps + limits::kPickleStepsPerOpcode * pickle.opcodes(), limits::kPickleStepsMax)),
        on_way_(pickle.values()) {}

  Status run(Value value, std::string_view prefix) {
    name_ = prefix;
    return walk(value, 0);
  }

 private:
  static constexpr std::uint64_t kSpareSteps = 1000;
  static constexpr std::uint64_t kStepsOfTensor = 32;
  static constexpr std::uint64_t kKeyBytesOfStep = 64;

  Status spend(std::uint64_t steps);
  Status enter(std::size_t depth);
  Status walk(Value value, std::size_t depth);
  Status walk_inside(Value value, std::size_t depth);
  Status walk_below(std::string_view key, Value value, std::size_t depth);
  bool is_module(Value dict) const;
  Status walk_pairs(Value dict, bool of_module, std::size_t depth);
  Status walk_items(Value list, std::size_t depth);
  Status walk_call(const Pickle::Call& call, std::size_t depth);
  Status walk_all(const Pickle::Call& call, std::size_t depth);
  Status walk_list_of_pairs(Value list, std::size_t depth);
  Status walk_sparse(const std::vector<Value>& arguments, std::size_t depth);
  Status walk_quantized(const std::vector<Value>& arguments, std::size_t depth);

  Status add(Result<FoundTensor> tensor);
  Result<FoundTensor> rebuilt(const std::vector<Value>& arguments, TorchMaker maker);
  Result<FoundTensor> storage_alone(Value value);
  Result<FoundTensor> reconstructed(const Pickle::Call& call);
  Result<FoundTensor> numpy_array(Value bytes, Value dtype, Value shape, bool fortran_order);
  Result<TorchStorage> storage_of(Value value);

  TorchTensors& to_;
  const Pickle& pickle_;
  const TorchValues values_;
  const std::uint64_t pickle_at_;
  const StoragePlace& storages_;
  std::uint64_t steps_left_;
  std::vector<bool> on_way_;  // by value: the walk is within it
  std::string name_;          // of the value that is walked
  std::uint64_t bytes_ = 0;   // in the file, of the tensor that is added next; 0: unknown
};

// Values may be shared, so a walk of all uses of each value takes a time that no size of the pickle bounds.
Status TorchTensors::Search::spend(std::uint64_t steps) {
  if (steps > steps_left_) return Error{Errc::unsupported, "pickle: its values are shared too often"};
  steps_left_ -= steps;
  return {};
}

Status TorchTensors::Search::enter(std::size_t depth) {
  if (depth > limits::kPickleDepthMax) return Error{Errc::unsupported, "pickle: its values are nested too deeply"};
  return spend(1);
}

Status TorchTensors::Search::walk(Value value, std::size_t depth) {
  WEFT_CHECK(enter(depth));
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
      return walk_items(value, depth);
    case Kind::dict:
      return walk_pairs(value, is_module(value), depth);
    case Kind::call:
      return walk_call(pickle_.call(value), depth);
    case Kind::persistent:
      return values_.is_module_id(value) ? Status{} : add(storage_alone(value));
    default:
      return {};
  }
}

// Appends the key to the name while the value is walked. No tensor has a name as long as the bound, so the end of a
// longer name makes no difference.
Status TorchTensors::Search::walk_below(std::string_view key, Value value, std::size_t depth) {
  WEFT_CHECK(spend(key.size() / kKeyBytesOfStep));
  const std::size_t before = name_.size();
  if (before <= limits::kTensorNameMax) {
    if (before > 0) name_ += '.';
    name_ += key;
  }
  Status done = walk(value, depth);
  name_.resize(before);
  return done;
}

// A walk of the dict takes longer than this.
bool TorchTensors::Search::is_module(Value dict) const {
  bool modules = false, parameters = false;
  for (const auto& [key, value] : pickle_.pairs(dict)) {
    const std::string_view name = values_.text(key);
    modules |= name == "_modules";
    parameters |= name == "_parameters";
  }
  return modules && parameters;
}

Status TorchTensors::Search::walk_pairs(Value dict, bool of_module, std::size_t depth) {
  for (const auto& [key, value] : pickle_.pairs(dict)) {
    const bool nameless = of_module && is_part_of_module(values_.text(key));
    WEFT_CHECK(nameless ? walk(value, depth) : walk_below(values_.key(key), value, depth));
  }
  return {};
}

Status TorchTensors::Search::walk_items(Value list, std::size_t depth) {
  std::uint64_t number = 0;
  for (const Value item : pickle_.items(list)) WEFT_CHECK(walk_below(std::to_string(number++), item, depth));
  return {};
}

Status TorchTensors::Search::walk_call(const Pickle::Call& call, std::size_t depth) {
  WEFT_CHECK(enter(depth));
  const std::vector<Value> arguments = values_.some(call.arguments);
  const TorchMaker maker = values_.maker(call.function);
  switch (maker) {
    case TorchMaker::tensor:
    case TorchMaker::tensor_v3:
      return add(rebuilt(arguments, maker));
    case TorchMaker::quantized:
      return walk_quantized(arguments, depth);
    case TorchMaker::reconstruct:
      return add(reconstructed(call));
    case TorchMaker::from_buffer:  // (bytes, dtype, shape, order)
      if (arguments.size() != 4) return walk_all(call, depth);
      return add(numpy_array(arguments[0], arguments[1], arguments[2], values_.text(arguments[3]) == "F"));
    case TorchMaker::parameter:
      return arguments.empty() ? Status{} : walk(arguments[0], depth);
    case TorchMaker::from_type: {  // (function, class, arguments, state)
      if (arguments.size() != 4) return walk_all(call, depth);
      const Pickle::Call inner{arguments[0], arguments[2]};
      return walk_call(inner, depth + 1);
    }
    case TorchMaker::sparse:
      return walk_sparse(arguments, depth);
    default:
      return walk_all(call, depth);
  }
}

// Walks all parts of a call that has no meaning here.
Status TorchTensors::Search::walk_all(const Pickle::Call& call, std::size_t depth) {
  if (call.pairs != Pickle::kNone) WEFT_CHECK(walk_pairs(call.pairs, false, depth));
  if (call.items != Pickle::kNone) WEFT_CHECK(walk_items(call.items, depth));
  if (values_.maker(call.function) == TorchMaker::ordered_dict) {  // Python 2 has the pairs in the last argument
    const std::vector<Value> arguments = values_.some(call.arguments);
    return arguments.empty() ? Status{} : walk_list_of_pairs(arguments.back(), depth);
  }
  const Kind kind = pickle_.kind(call.arguments);
  if (kind == Kind::tuple || kind == Kind::list) WEFT_CHECK(walk_items(call.arguments, depth));
  if (pickle_.kind(call.state) == Kind::dict) return walk_pairs(call.state, true, depth);
  return walk(call.state, depth);
}

Status TorchTensors::Search::walk_list_of_pairs(Value list, std::size_t depth) {
  if (pickle_.kind(list) != Kind::list && pickle_.kind(list) != Kind::tuple) return {};
  for (const Value pair : pickle_.items(list)) {
    WEFT_CHECK(spend(1));
    if (const std::vector<Value> both = values_.some(pair); both.size() == 2)
      WEFT_CHECK(walk_below(values_.key(both[0]), both[1], depth));
  }
  return {};
}

// (layout, (indices, values, ...)), or with two tensors of indices.
Status TorchTensors::Search::walk_sparse(const std::vector<Value>& arguments, std::size_t depth) {
  constexpr std::array<std::string_view, 2> kCoordinates = {"indices", "values"};
  constexpr std::array<std::string_view, 3> kCompressed = {"compressed_indices", "plain_indices", "values"};
  if (arguments.size() != 2) return {};
  const std::vector<Value> parts = values_.some(arguments[1]);
  const bool compressed = parts.size() > 2 && pickle_.kind(parts[2]) == Kind::call &&
                          values_.maker(pickle_.call(parts[2]).function) != TorchMaker::other;
  const std::span<const std::string_view> names =
      compressed ? std::span<const std::string_view>(kCompressed) : std::span<const std::string_view>(kCoordinates);
  for (std::size_t i = 0; i < std::min(names.size(), parts.size()); ++i)
    WEFT_CHECK(walk_below(names[i], parts[i], depth));
  return {};
}

// The fifth argument is (scheme, scale, zero point), which are numbers, or of a tensor with a scale for each channel
// (scheme, scales, zero points, axis), where two tensors are.
Status TorchTensors::Search::walk_quantized(const std::vector<Value>& arguments, std::size_t depth) {
  constexpr std::size_t kQuantizerAt = 4, kScalesAt = 1, kZeroPointsAt = 2, kParameters = 4;
  WEFT_CHECK(add(rebuilt(arguments, TorchMaker::quantized)));
  if (arguments.size() <= kQuantizerAt) return {};
  const std::vector<Value> quantizer = values_.some(arguments[kQuantizerAt]);
  if (quantizer.size() != kParameters) return {};
  WEFT_CHECK(walk_below("scales", quantizer[kScalesAt], depth));
  return walk_below("zero_points", quantizer[kZeroPointsAt], depth);
}

Status TorchTensors::Search::add(Result<FoundTensor> tensor) {
  WEFT_CHECK(spend(kStepsOfTensor));
  return to_.list_.add(std::move(tensor), {name_.empty() ? "tensor" : name_, std::exchange(bytes_, 0), "", {}, {}});
}

// Arguments: storage, offset, shape, strides, and more that differ between versions.
Result<FoundTensor> TorchTensors::Search::rebuilt(const std::vector<Value>& arguments, TorchMaker maker) {
  const std::size_t type_at = 6, metadata_at = maker == TorchMaker::tensor_v3 ? 7 : 6;
  auto elements = values_.elements(arguments);
  if (!elements) return hidden_because("a tensor with other arguments than PyTorch writes");
  WEFT_TRY(const TorchStorage storage, storage_of(arguments[0]));
  std::optional<DType> type = storage.type;
  std::string_view type_name = storage.id.type_name;
  if (maker == TorchMaker::tensor_v3) {
    type_name = arguments.size() > type_at ? values_.global(arguments[type_at]) : std::string_view();
    type = torch_tensor_type(type_name);
  }
  if (!type) return lacks_type(type_name);
  if (const auto logical = tensor_bytes(*type, elements->shape); logical.ok()) bytes_ = std::min(bytes_, *logical);
  if (arguments.size() > metadata_at && values_.has_bit(arguments[metadata_at]))
    return hidden_because("its values are conjugated or negated when they are read");
  return torch_placed(storage.bytes, storage.id.begin, *type, *std::move(elements));
}

Result<FoundTensor> TorchTensors::Search::storage_alone(Value value) {
  WEFT_TRY(const TorchStorage storage, storage_of(value));
  if (!storage.type) return lacks_type(storage.id.type_name);
  const std::uint64_t count = storage.bytes.length / dtype_info(*storage.type)->block_bytes;
  return torch_placed(storage.bytes, 0, *storage.type, {{count}, {1}, 0});
}

Result<TorchStorage> TorchTensors::Search::storage_of(Value value) {
  if (pickle_.kind(value) != Kind::persistent) return hidden_because("its storage is not in the file");
  const auto id = values_.storage_id(value);
  if (!id) return hidden_because("its storage has another id than PyTorch writes");
  WEFT_TRY(const Range bytes, storages_(id->key));
  bytes_ = bytes.length;
  return TorchStorage{*id, torch_storage_type(id->type_name), bytes};
}

// The state is (version, shape, dtype, Fortran order, bytes).
Result<FoundTensor> TorchTensors::Search::reconstructed(const Pickle::Call& call) {
  const std::vector<Value> state = values_.some(call.state);
  if (state.size() != 5) return hidden_because("an array of numpy without a state");
  return numpy_array(state[4], state[2], state[1], values_.is_true(state[3]));
}

// The bytes of an array lie in the pickle from protocol 3 on.
Result<FoundTensor> TorchTensors::Search::numpy_array(Value bytes, Value dtype, Value shape, bool fortran_order) {
  bytes_ = values_.array_bytes(bytes);
  const auto dimensions = values_.whole_numbers(shape);
  if (pickle_.kind(bytes) != Kind::bytes || !dimensions || pickle_.kind(dtype) != Kind::call)
    return hidden_because("an array of numpy that is escaped as text, or has objects");
  const std::vector<Value> names = values_.some(pickle_.call(dtype).arguments);
  const std::vector<Value> state = values_.some(pickle_.call(dtype).state);
  const bool big_endian = state.size() > 1 && values_.text(state[1]) == ">";
  const auto element =
      parse_npy_descr(names.empty() ? std::string_view() : values_.text(names[0]).substr(0, kDescrMax));
  if (!element.ok() || element->dtype == DType::npy_other || big_endian)
    return hidden_because("an array of numpy of a type that weft does not show here");
  const Range place = pickle_.bytes(bytes);
  const auto length = tensor_bytes(element->dtype, *dimensions);
  if (!length.ok() || *length != place.length)
    return hidden_because("an array of numpy with other bytes than its shape needs");
  TorchElements elements{*dimensions, c_strides(*dimensions), 0};
  if (fortran_order && *length > 0) elements.strides = fortran_strides(*dimensions);
  return torch_placed({pickle_at_ + place.offset, place.length}, 0, element->dtype, std::move(elements));
}

Status TorchTensors::add(const Pickle& pickle, Pickle::Value value, std::string_view prefix, std::uint64_t pickle_at,
                         const StoragePlace& storages) {
  return Search(*this, pickle, pickle_at, storages).run(value, prefix);
}

}  // namespace weft
