#include "format/onnx/onnx_tensor.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "format/parse_errors.h"

namespace weft {
namespace {

// Fields of TensorProto.
constexpr std::uint32_t kOnnxDims = 1, kOnnxType = 2, kOnnxSegment = 3, kOnnxFloats = 4, kOnnxInt32s = 5,
                        kOnnxStrings = 6, kOnnxInt64s = 7, kOnnxName = 8, kOnnxRaw = 9, kOnnxDoubles = 10,
                        kOnnxUint64s = 11, kOnnxExternal = 13, kOnnxLocation = 14;
constexpr std::uint64_t kOnnxExternalLocation = 1;

struct OnnxType {
  std::string_view name;
  std::optional<DType> dtype;
};

// By the numbers of TensorProto.DataType. Types of 4 and 6 bits are packed as those of safetensors.
constexpr std::array<OnnxType, 29> kOnnxTypes = {{
    {"UNDEFINED", {}},
    {"FLOAT", DType::f32},
    {"UINT8", DType::u8},
    {"INT8", DType::i8},
    {"UINT16", DType::u16},
    {"INT16", DType::i16},
    {"INT32", DType::i32},
    {"INT64", DType::i64},
    {"STRING", {}},
    {"BOOL", DType::boolean},
    {"FLOAT16", DType::f16},
    {"DOUBLE", DType::f64},
    {"UINT32", DType::u32},
    {"UINT64", DType::u64},
    {"COMPLEX64", DType::c64},
    {"COMPLEX128", DType::c128},
    {"BFLOAT16", DType::bf16},
    {"FLOAT8E4M3FN", DType::f8_e4m3},
    {"FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz},
    {"FLOAT8E5M2", DType::f8_e5m2},
    {"FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz},
    {"UINT4", {}},
    {"INT4", {}},
    {"FLOAT4E2M1", DType::f4},
    {"FLOAT8E8M0", DType::f8_e8m0},
    {"UINT2", {}},
    {"INT2", {}},
    {"FLOAT6E2M3", DType::f6_e2m3},
    {"FLOAT6E3M2", DType::f6_e3m2},
}};

template <class... Args>
Error onnx_hides(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::unsupported, fmt::format(format, std::forward<Args>(args)...)};
}

std::optional<DType> dtype_of(const OnnxTensor& tensor) {
  return tensor.type < kOnnxTypes.size() ? kOnnxTypes[tensor.type].dtype : std::nullopt;
}

// Returns the bytes that the elements must have.
Result<std::uint64_t> expected_bytes(const OnnxTensor& tensor) {
  if (tensor.is_segment) return onnx_hides("a segment of a tensor");
  const auto dtype = dtype_of(tensor);
  if (!dtype && tensor.type < kOnnxTypes.size())
    return onnx_hides("a type that weft lacks, {}", kOnnxTypes[tensor.type].name);
  if (!dtype) return onnx_hides("a type that weft lacks, number {}", tensor.type);
  if (tensor.shape.size() > limits::kDimensionsMax)
    return onnx_hides("expected at most {} dimensions, got more", limits::kDimensionsMax);
  WEFT_TRY(const std::uint64_t bytes, tensor_bytes(*dtype, tensor.shape));
  if (bytes > limits::kVersionBytesMax) return onnx_hides("its shape {} is too large", shape_text(tensor.shape));
  return bytes;
}

// The field whose packed form is the memory of a tensor of this type; nothing if its numbers have variable lengths.
std::optional<std::uint32_t> packed_field(std::optional<DType> dtype) {
  if (dtype == DType::f32 || dtype == DType::c64) return kOnnxFloats;
  if (dtype == DType::f64 || dtype == DType::c128) return kOnnxDoubles;
  return std::nullopt;
}

std::uint64_t number_bytes(const OnnxTensor& tensor) {
  std::uint64_t sum = 0;  // no more than the bytes of the message
  for (const OnnxTensor::Numbers& numbers : tensor.numbers) sum += numbers.bytes;
  return sum;
}

Result<TensorPart> run_of_numbers(const OnnxTensor& tensor) {
  if (number_bytes(tensor) == 0) return TensorPart{};
  const auto field = packed_field(dtype_of(tensor));
  if (!field) return onnx_hides("its elements are numbers of variable length");
  const OnnxTensor::Numbers& numbers = tensor.numbers[*field];
  if (numbers.fields != 1) return onnx_hides("expected its elements in one field, got {} fields", numbers.fields);
  return TensorPart{0, numbers.last.offset, numbers.last.length};
}

// Returns the bytes of elements that are no memory of a tensor, if they lie in one field: else an empty run.
TensorPart cut_of_numbers(const OnnxTensor& tensor) {
  if (tensor.is_external || tensor.raw) return {};
  for (const OnnxTensor::Numbers& numbers : tensor.numbers)
    if (numbers.fields == 1 && numbers.bytes == number_bytes(tensor))
      return {0, numbers.last.offset, numbers.last.length};
  return {};
}

// Returns the path of a location in the form of File::path. The path does not leave the directory of the model.
Result<std::string> path_of_location(std::string_view location) {
  std::string path;
  if (location.starts_with('/') || location.find('\\') != location.npos || location.find('\0') != location.npos)
    return onnx_hides("expected a file below the model's directory, got \"{}\"", printable(location));
  for (const std::string_view component : split(location, '/')) {
    if (component == "..")
      return onnx_hides("expected a file below the model's directory, got \"{}\"", printable(location));
    if (component.empty() || component == ".") continue;
    if (!path.empty()) path += '/';
    path += component;
  }
  if (path.empty()) return onnx_hides("external data without a location");
  return path;
}

Result<std::uint64_t> external_number(const OnnxTensor& tensor, std::string_view key, std::uint64_t without) {
  const auto found = tensor.external.find(key);
  if (found == tensor.external.end() || found->second.empty()) return without;
  const auto number = parse_u64(found->second);
  if (!number) return onnx_hides("expected a number as the {} of its external data, got other text", key);
  return *number;
}

// Reads a StringStringEntryProto.
Status read_external(ProtobufReader& file, Range message, OnnxTensor& tensor) {
  std::string key, value;
  WEFT_CHECK(file.each_field(message, [&](const ProtobufField& field) -> Status {
    if (!field.is_bytes(1) && !field.is_bytes(2)) return {};
    std::string& text = field.number == 1 ? key : value;
    WEFT_TRY(text, file.text(field, limits::kPathMax + 1));
    return {};
  }));
  if (key == "location" || key == "offset" || key == "length")
    tensor.external.insert_or_assign(std::move(key), std::move(value));
  return {};
}

Status read_onnx_field(ProtobufReader& file, const ProtobufField& field, OnnxTensor& tensor) {
  const bool is_bytes = field.kind == ProtobufField::Kind::bytes, is_varint = field.kind == ProtobufField::Kind::varint;
  switch (field.number) {
    case kOnnxDims:
      return file.add_numbers(field, limits::kDimensionsMax + 1, tensor.shape);
    case kOnnxType:
      if (is_varint) tensor.type = field.value;
      return {};
    case kOnnxSegment:
      tensor.is_segment = true;
      return {};
    case kOnnxFloats:
    case kOnnxInt32s:
    case kOnnxStrings:
    case kOnnxInt64s:
    case kOnnxDoubles:
    case kOnnxUint64s:
      if (field.bytes.length == 0) return {};
      ++tensor.numbers[field.number].fields;
      tensor.numbers[field.number].bytes += field.bytes.length;
      tensor.numbers[field.number].last = field.bytes;
      return {};
    case kOnnxName: {
      if (!is_bytes) return {};
      WEFT_TRY(tensor.name, file.text(field, limits::kTensorNameMax + 1));
      return {};
    }
    case kOnnxRaw:
      if (is_bytes) tensor.raw = field.bytes;
      return {};
    case kOnnxExternal:
      return is_bytes ? read_external(file, field.bytes, tensor) : Status{};
    case kOnnxLocation:
      if (is_varint) tensor.is_external = field.value == kOnnxExternalLocation;
      return {};
    default:
      return {};
  }
}

}  // namespace

Result<OnnxTensor> read_onnx_tensor(ProtobufReader& file, Range message) {
  OnnxTensor tensor;
  WEFT_CHECK(
      file.each_field(message, [&](const ProtobufField& field) { return read_onnx_field(file, field, tensor); }));
  return tensor;
}

Status OnnxTensors::add(std::string name, const OnnxTensor& tensor) {
  const auto bytes = expected_bytes(tensor);
  const auto run = run_of(tensor, bytes.ok() ? *bytes : 0);
  if (!run.ok() && !is_malformed(run.error())) return run.error();
  HiddenTensor described{std::move(name), run.ok() ? run->length : number_bytes(tensor), "", dtype_of(tensor), {}};
  if (described.dtype && tensor.shape.size() <= limits::kDimensionsMax) described.shape = tensor.shape;
  Result<FoundTensor> found = FoundTensor{};
  if (!bytes.ok())
    found = bytes.error();
  else if (!run.ok())
    found = run.error();
  else if (run->length != *bytes)
    found = onnx_hides("expected {} bytes for its shape {}, got {}", *bytes, shape_text(tensor.shape), run->length);
  if (found.ok()) {
    found->dtype = *dtype_of(tensor);
    found->shape = tensor.shape;
    if (run->length > 0) found->parts.push_back(*run);
  } else if (const auto cut = run.ok() ? *run : cut_of_numbers(tensor); cut.length >= limits::kCutMin) {
    layout_.cuts.push_back(cut);
  }
  return list_.add(std::move(found), std::move(described));
}

Result<TensorPart> OnnxTensors::run_of(const OnnxTensor& tensor, std::uint64_t bytes) {
  if (tensor.is_external) return external_run(tensor, bytes);
  if (tensor.raw) return TensorPart{0, tensor.raw->offset, tensor.raw->length};
  return run_of_numbers(tensor);
}

// Without a length, the data has the bytes that the shape needs.
Result<TensorPart> OnnxTensors::external_run(const OnnxTensor& tensor, std::uint64_t bytes) {
  const auto location = tensor.external.find("location");
  WEFT_TRY(const std::string path, path_of_location(location == tensor.external.end() ? "" : location->second));
  WEFT_TRY(const std::uint64_t offset, external_number(tensor, "offset", 0));
  WEFT_TRY(const std::uint64_t length, external_number(tensor, "length", bytes));
  WEFT_TRY(const OtherFiles::File* const file, others_.find(path));
  if (file == nullptr) return onnx_hides("its external data is in no file {} of the version", printable(path));
  const std::uint64_t size = file->source->size();
  if (offset > size || length > size - offset)
    return onnx_hides("expected {} bytes at {} of {}, got a file of {} bytes", length, offset, printable(path), size);
  return TensorPart{file->number, offset, length};
}

}  // namespace weft
