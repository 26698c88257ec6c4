// The values of a pickle as PyTorch writes them: types, numbers, shapes, and the functions whose calls make tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/torch/pickle.h"
#include "weft/dtype.h"

namespace weft {

// The functions whose calls make tensors, or whose arguments have a meaning of their own.
enum class TorchMaker {
  other,
  tensor,
  tensor_v3,
  quantized,
  parameter,
  from_type,
  sparse,
  reconstruct,
  from_buffer,
  ordered_dict
};

// The type of a storage's elements, by the class of the storage. An untyped storage counts bytes.
std::optional<DType> torch_storage_type(std::string_view class_name);
// Returns the bytes of an element, also of some types that weft lacks; 0: the class is unknown.
std::uint64_t torch_storage_width(std::string_view class_name);
std::optional<DType> torch_tensor_type(std::string_view global);

// The place of a tensor's elements in its storage.
struct TorchElements {
  Shape shape;
  Strides strides;           // one for each dimension
  std::uint64_t offset = 0;  // in elements
};

// The id of a storage outside of the pickle.
struct TorchStorageId {
  std::string_view type_name;
  std::string_view key;
  std::uint64_t elements = 0;
  std::uint64_t begin = 0;  // a view: elements of the whole storage before the view
};

// Reads values. A value of a kind that the caller does not expect is empty. Each call takes a bounded time, however
// large the value is.
class TorchValues {
 public:
  using Kind = Pickle::Kind;
  using Value = Pickle::Value;

  explicit TorchValues(const Pickle& pickle) : pickle_(pickle) {}

  // Returns the first items of a tuple or list: more than any function of PyTorch has arguments.
  std::vector<Value> some(Value value) const;
  std::string_view text(Value value) const {
    return pickle_.kind(value) == Kind::text ? pickle_.text(value) : std::string_view();
  }
  std::string_view global(Value value) const {
    return pickle_.kind(value) == Kind::global ? pickle_.global(value) : std::string_view();
  }
  TorchMaker maker(Value function) const;
  bool is_true(Value value) const { return pickle_.kind(value) == Kind::boolean && pickle_.boolean(value); }
  std::optional<std::uint64_t> whole_number(Value value) const;
  // Returns at most one number more than a tensor has dimensions.
  std::optional<std::vector<std::uint64_t>> whole_numbers(Value value) const;
  std::string key(Value value) const;  // as a part of a name
  // Returns nothing for other arguments than PyTorch writes.
  std::optional<TorchElements> elements(const std::vector<Value>& arguments) const;
  // Returns nothing for a value that is no storage, or has another id than PyTorch writes.
  std::optional<TorchStorageId> storage_id(Value value) const;
  // True for the id of the class of a module, which files before PyTorch 1.6 have beside its source text.
  bool is_module_id(Value value) const;
  // True if the tensor has a bit that changes its values after they were read.
  bool has_bit(Value metadata) const;
  // Returns the bytes of an array of numpy in the pickle, which may be escaped as text.
  std::uint64_t array_bytes(Value value) const;

 private:
  const Pickle& pickle_;
};

}  // namespace weft
