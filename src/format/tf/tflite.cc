// TFLite: a FlatBuffer of a model, its subgraphs and their tensors. A tensor with a buffer is a constant of the model,
// and the buffer's bytes are its elements. Source: tensorflow/compiler/mlir/lite/schema/schema.fbs. No file is refused:
// newer versions of TensorFlow may read what weft does not.
#include <fmt/core.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "format/builtin.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "format/tensor_list.h"
#include "format/tf/flat_tables.h"

namespace weft {
namespace {

constexpr std::string_view kTfliteIdentifier = "TFL3";
constexpr std::size_t kTfliteIdentifierAt = 4;
constexpr std::uint64_t kTflitePointer = 4;  // bytes of an item in a list of tables, and of a dimension

// Numbers of fields, by table.
namespace tflite_model {
constexpr unsigned kSubgraphs = 2, kBuffers = 4;
}
namespace tflite_subgraph {
constexpr unsigned kTensors = 0;
}
namespace tflite_tensor {
constexpr unsigned kShape = 0, kType = 1, kBuffer = 2, kName = 3, kSparsity = 6;
}
namespace tflite_buffer {
constexpr unsigned kData = 0, kOffset = 1, kSize = 2;
}

struct TfliteType {
  std::string_view name;
  std::optional<DType> dtype;
};

// By the numbers of TensorType. Numbers of fewer than 8 bits are packed, in no type of weft.
constexpr std::array<TfliteType, 19> kTfliteTypes = {{{"FLOAT32", DType::f32},
                                                      {"FLOAT16", DType::f16},
                                                      {"INT32", DType::i32},
                                                      {"UINT8", DType::u8},
                                                      {"INT64", DType::i64},
                                                      {"STRING", {}},
                                                      {"BOOL", DType::boolean},
                                                      {"INT16", DType::i16},
                                                      {"COMPLEX64", DType::c64},
                                                      {"INT8", DType::i8},
                                                      {"FLOAT64", DType::f64},
                                                      {"COMPLEX128", DType::c128},
                                                      {"UINT64", DType::u64},
                                                      {"RESOURCE", {}},
                                                      {"VARIANT", {}},
                                                      {"UINT32", DType::u32},
                                                      {"UINT16", DType::u16},
                                                      {"INT4", {}},
                                                      {"BFLOAT16", DType::bf16}}};

Error tflite_hides(std::string why) {
  return Error{Errc::unsupported, std::move(why)};
}

// Reads one model once.
class Tflite {
 public:
  explicit Tflite(ByteSource& file) : size_(file.size()), tables_(file), tensors_(layout_) {}

  Result<Layout> read();

 private:
  Status read_buffers(const FlatTable& model);
  Result<Range> buffer_of(const FlatTable& buffer);
  Status read_subgraph(const FlatTable& subgraph, std::uint64_t number);
  Status read_tensor(const FlatTable& tensor, const std::string& fallback, std::string_view prefix);
  // Returns the tensor without its name. An error that is no error of the source is the reason why it is hidden.
  Result<FoundTensor> tensor_of(const FlatTable& tensor, Range bytes);
  Result<Shape> shape_of(const FlatTable& tensor);

  const std::uint64_t size_;
  FlatTables tables_;
  Layout layout_;
  TensorList tensors_;
  std::vector<Range> buffers_;
};

Result<Layout> Tflite::read() {
  layout_.format = "tflite";
  WEFT_TRY(const auto identifier, tables_.number_at<std::uint32_t>(kTfliteIdentifierAt));
  if (identifier != load_le<std::uint32_t>(std::as_bytes(std::span(kTfliteIdentifier)).data()))
    return Error{Errc::unsupported, fmt::format("expected the identifier {}, got another", kTfliteIdentifier)};
  WEFT_TRY(const FlatTable model, tables_.root());
  WEFT_CHECK(read_buffers(model));
  WEFT_TRY(const Range subgraphs, tables_.list(model, tflite_model::kSubgraphs, kTflitePointer));
  for (std::uint64_t at = 0; at < subgraphs.length; at += kTflitePointer) {
    WEFT_TRY(const FlatTable subgraph, tables_.table_at(subgraphs.offset + at));
    WEFT_CHECK(read_subgraph(subgraph, at / kTflitePointer));
  }
  tensors_.finish();
  return std::move(layout_);
}

Status Tflite::read_buffers(const FlatTable& model) {
  WEFT_TRY(const Range pointers, tables_.list(model, tflite_model::kBuffers, kTflitePointer));
  for (std::uint64_t at = 0; at < pointers.length; at += kTflitePointer) {
    WEFT_TRY(const FlatTable buffer, tables_.table_at(pointers.offset + at));
    WEFT_TRY(const Range bytes, buffer_of(buffer));
    buffers_.push_back(bytes);
    if (bytes.length > 0) layout_.cuts.push_back({0, bytes.offset, bytes.length});
  }
  return {};
}

// In a file of more than 2 GiB the bytes lie after the FlatBuffer.
Result<Range> Tflite::buffer_of(const FlatTable& buffer) {
  WEFT_TRY(const Range data, tables_.list(buffer, tflite_buffer::kData, 1));
  if (data.length > 0) return data;
  WEFT_TRY(const auto offset, tables_.number<std::uint64_t>(buffer, tflite_buffer::kOffset));
  WEFT_TRY(const auto length, tables_.number<std::uint64_t>(buffer, tflite_buffer::kSize));
  if (offset > size_ || length > size_ - offset)
    return Error{Errc::invalid, fmt::format("expected {} bytes of a buffer at {}, got the end of the file at {}",
                                            length, offset, size_)};
  return Range{offset, length};
}

Status Tflite::read_subgraph(const FlatTable& subgraph, std::uint64_t number) {
  const std::string prefix = number == 0 ? "" : fmt::format("{}.", number);
  WEFT_TRY(const Range pointers, tables_.list(subgraph, tflite_subgraph::kTensors, kTflitePointer));
  for (std::uint64_t at = 0; at < pointers.length; at += kTflitePointer) {
    WEFT_TRY(const FlatTable tensor, tables_.table_at(pointers.offset + at));
    WEFT_CHECK(read_tensor(tensor, fmt::format("tensor_{}", at / kTflitePointer), prefix));
  }
  return {};
}

// A tensor without bytes is no constant: the interpreter computes it.
Status Tflite::read_tensor(const FlatTable& tensor, const std::string& fallback, std::string_view prefix) {
  WEFT_TRY(const auto number, tables_.number<std::uint32_t>(tensor, tflite_tensor::kBuffer));
  const Range bytes = number < buffers_.size() ? buffers_[number] : Range{};
  if (bytes.length == 0) return {};
  WEFT_TRY(const std::string name, tables_.text(tensor, tflite_tensor::kName, limits::kTensorNameMax + 1));
  auto found = tensor_of(tensor, bytes);
  if (!found.ok() && !is_malformed(found.error())) return std::move(found).error();
  return tensors_.add(std::move(found),
                      {fmt::format("{}{}", prefix, name.empty() ? fallback : name), bytes.length, "", {}, {}});
}

Result<FoundTensor> Tflite::tensor_of(const FlatTable& tensor, Range bytes) {
  WEFT_TRY(const auto sparsity, tables_.field(tensor, tflite_tensor::kSparsity, kTflitePointer));
  if (sparsity) return tflite_hides("its elements are sparse");
  WEFT_TRY(const auto type, tables_.number<std::uint8_t>(tensor, tflite_tensor::kType));
  if (type >= kTfliteTypes.size()) return tflite_hides(fmt::format("a type that weft lacks, of number {}", type));
  if (!kTfliteTypes[type].dtype)
    return tflite_hides(fmt::format("a type that weft lacks, {}", kTfliteTypes[type].name));
  FoundTensor found;
  found.dtype = *kTfliteTypes[type].dtype;
  WEFT_TRY(found.shape, shape_of(tensor));
  const auto needed = tensor_bytes(found.dtype, found.shape);
  if (!needed.ok() || *needed != bytes.length)
    return tflite_hides(
        fmt::format("expected other bytes for its shape {}, got {}", shape_text(found.shape), bytes.length));
  found.parts.push_back({0, bytes.offset, bytes.length});
  return found;
}

Result<Shape> Tflite::shape_of(const FlatTable& tensor) {
  WEFT_TRY(const Range dimensions, tables_.list(tensor, tflite_tensor::kShape, kTflitePointer));
  if (dimensions.length / kTflitePointer > limits::kDimensionsMax)
    return tflite_hides(fmt::format("expected at most {} dimensions, got more", limits::kDimensionsMax));
  Shape shape;
  for (std::uint64_t at = 0; at < dimensions.length; at += kTflitePointer) {
    WEFT_TRY(const auto dimension, tables_.number_at<std::uint32_t>(dimensions.offset + at));
    if (static_cast<std::int32_t>(dimension) < 0) return tflite_hides("a dimension without a size");
    shape.push_back(dimension);
  }
  return shape;
}

class TfliteFormat final : public Format {
 public:
  std::string_view name() const override { return "tflite"; }

  // The offset of the model is a small number, so a byte before the identifier is 0, as in no text.
  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    if (file_name.ends_with(".tflite")) return true;
    if (head.size() < kTfliteIdentifierAt + kTfliteIdentifier.size() || head[kTfliteIdentifierAt - 1] != std::byte{0})
      return false;
    const auto identifier = head.subspan(kTfliteIdentifierAt, kTfliteIdentifier.size());
    return std::string_view(reinterpret_cast<const char*>(identifier.data()), identifier.size()) == kTfliteIdentifier;
  }

  Result<Layout> parse(FormatInput& files) const override {
    auto layout = Tflite(files.main()).read();
    if (!layout.ok() && is_malformed(layout.error())) return Error{Errc::unsupported, layout.error().message};
    return layout;
  }
};

}  // namespace

const Format& tflite_format() {
  static const TfliteFormat format;
  return format;
}

}  // namespace weft
