// safetensors: the header's length (8 bytes), a JSON object {name: {dtype, shape, data_offsets}, "__metadata__": {text:
// text}}, then tensor data without gaps. Where the reference implementation is more lenient than the format's page, so
// is this reader: white space may precede the '{', and of tensors or texts with one name the last counts.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"
#include "format/builtin.h"
#include "format/cursor.h"
#include "format/layout.h"
#include "format/strict_json.h"

namespace weft {
namespace {

constexpr std::uint64_t kLengthBytes = 8;  // bytes of the header's length

// Of a shard of a distributed checkpoint: {name: {"saved_offsets": [begin, …]}}, as a text.
constexpr std::string_view kShardingInfo = "DCP_SHARDING_INFO";

constexpr std::array kElementTypes = {
    DType::boolean, DType::u8,          DType::i8,          DType::f8_e5m2, DType::f8_e4m3, DType::f8_e8m0,
    DType::f4,      DType::f6_e2m3,     DType::f6_e3m2,     DType::i16,     DType::u16,     DType::f16,
    DType::bf16,    DType::f8_e4m3fnuz, DType::f8_e5m2fnuz, DType::i32,     DType::u32,     DType::f32,
    DType::c64,     DType::f64,         DType::i64,         DType::u64,
};

class HeaderReader final : public StrictHandler {
 public:
  explicit HeaderReader(Layout& layout) : layout_(layout) {}
  std::vector<RegionTensor> take_tensors() { return std::move(tensors_); }
  std::string take_sharding_info() { return std::move(sharding_info_); }
  // The first value that only the reference implementation may read; nullopt: none.
  const std::optional<Error>& other_spelling() const { return other_spelling_; }

 private:
  enum class At {
    document,
    top,
    metadata_value,
    metadata,
    metadata_text,
    tensor_value,
    tensor,
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
  };
  struct Entry {
    FoundTensor tensor;
    bool has_dtype = false, has_shape = false, has_offsets = false;
    std::vector<std::uint64_t> offsets;
  };

  std::string expected() const override;
  Status on_begin_object() override;
  Status on_begin_array() override;
  Status on_end() override;
  Status on_key(std::string_view name) override;
  Status on_text(std::string_view value) override;
  Status on_number(std::uint64_t value) override;
  Status on_null() override;

  Status begin_tensor(std::string_view name);
  Status begin_field(std::string_view name);
  Status begin_metadata();
  Status finish_tensor();
  Status invalid(std::string_view what) const;  // "tensor "a": what"
  // Skips a value that the reference implementation may read: a tensor as [dtype, shape, data_offsets], or a dtype as
  // {"F32": null}. The other bytes of the header must be JSON as well.
  Status spelled_otherwise(std::string_view got, At next);

  Layout& layout_;
  std::vector<RegionTensor> tensors_;
  At at_ = At::document;
  bool has_metadata_ = false;
  std::string metadata_key_;
  std::string sharding_info_;
  Entry entry_;
  std::optional<Error> other_spelling_;
};

std::string HeaderReader::expected() const {
  switch (at_) {
    case At::document:
      return "an object as the header";
    case At::top:
      return "a tensor's name";
    case At::metadata_value:
      return "an object for \"__metadata__\"";
    case At::metadata:
      return "a key of \"__metadata__\"";
    case At::metadata_text:
      return fmt::format("a string for \"{}\" of \"__metadata__\"", printable(metadata_key_));
    case At::tensor_value:
      return "an object for " + tensor_label(entry_.tensor.name);
    case At::tensor:
      return "a key of " + tensor_label(entry_.tensor.name);
    case At::dtype:
      return "a string for the dtype of " + tensor_label(entry_.tensor.name);
    case At::shape_value:
      return "an array for the shape of " + tensor_label(entry_.tensor.name);
    case At::shape:
      return "dimensions in the shape of " + tensor_label(entry_.tensor.name);
    case At::offsets_value:
      return "an array for the data_offsets of " + tensor_label(entry_.tensor.name);
    case At::offsets:
      return "two offsets in the data_offsets of " + tensor_label(entry_.tensor.name);
  }
  return {};
}

Status HeaderReader::on_begin_object() {
  switch (at_) {
    case At::document:
      at_ = At::top;
      return {};
    case At::metadata_value:
      at_ = At::metadata;
      return {};
    case At::tensor_value:
      at_ = At::tensor;
      return {};
    case At::dtype:
      return spelled_otherwise("an object", At::tensor);
    default:
      return unexpected("an object");
  }
}

Status HeaderReader::on_begin_array() {
  switch (at_) {
    case At::shape_value:
      at_ = At::shape;
      return {};
    case At::offsets_value:
      at_ = At::offsets;
      return {};
    case At::tensor_value:
      return spelled_otherwise("an array", At::top);
    default:
      return unexpected("an array");
  }
}

Status HeaderReader::on_end() {
  switch (at_) {
    case At::shape:
    case At::offsets:
      at_ = At::tensor;
      return {};
    case At::tensor:
      at_ = At::top;
      return finish_tensor();
    case At::metadata:
      at_ = At::top;
      return {};
    default:
      at_ = At::document;
      return {};
  }
}

Status HeaderReader::on_key(std::string_view name) {
  switch (at_) {
    case At::top:
      return name == "__metadata__" ? begin_metadata() : begin_tensor(name);
    case At::tensor:
      return begin_field(name);
    default:
      metadata_key_ = name;
      at_ = At::metadata_text;
      return {};
  }
}

Status HeaderReader::on_text(std::string_view value) {
  if (at_ == At::metadata_text) {
    if (metadata_key_ == kShardingInfo) sharding_info_ = value;
    keep_metadata(layout_, metadata_key_, value);
    at_ = At::metadata;
    return {};
  }
  if (at_ != At::dtype) return StrictHandler::on_text(value);
  const DTypeInfo* info = dtype_by_name(value);
  if (info == nullptr || std::find(kElementTypes.begin(), kElementTypes.end(), info->type) == kElementTypes.end())
    return invalid(fmt::format("expected a dtype of safetensors, got \"{}\"", printable(value, 40)));
  entry_.tensor.dtype = info->type;
  at_ = At::tensor;
  return {};
}

Status HeaderReader::on_number(std::uint64_t value) {
  if (at_ == At::shape) {
    if (entry_.tensor.shape.size() == limits::kDimensionsMax)
      return Error{Errc::unsupported, fmt::format("{}: expected at most {} dimensions, got more",
                                                  tensor_label(entry_.tensor.name), limits::kDimensionsMax)};
    entry_.tensor.shape.push_back(value);
    return {};
  }
  if (at_ != At::offsets) return StrictHandler::on_number(value);
  if (entry_.offsets.size() == 2) return invalid("expected two data_offsets, got more");
  entry_.offsets.push_back(value);
  return {};
}

Status HeaderReader::on_null() {
  if (at_ != At::metadata_value) return unexpected("null");
  at_ = At::top;
  return {};
}

Status HeaderReader::begin_metadata() {
  if (has_metadata_) return Error{Errc::invalid, "expected one \"__metadata__\", got two"};
  has_metadata_ = true;
  at_ = At::metadata_value;
  return {};
}

Status HeaderReader::begin_tensor(std::string_view name) {
  WEFT_CHECK(check_tensor_name(name, tensors_.size()));
  entry_ = {};
  entry_.tensor.name = std::string(name);  // has exactly its size; an assigned string may have spare capacity
  at_ = At::tensor_value;
  return {};
}

Status HeaderReader::begin_field(std::string_view name) {
  bool* seen = nullptr;
  if (name == "dtype") {
    seen = &entry_.has_dtype;
    at_ = At::dtype;
  } else if (name == "shape") {
    seen = &entry_.has_shape;
    at_ = At::shape_value;
  } else if (name == "data_offsets") {
    seen = &entry_.has_offsets;
    at_ = At::offsets_value;
  } else {
    skip_value();  // like the reference implementation, which ignores unknown keys
    return {};
  }
  if (*seen) return invalid(fmt::format("expected one \"{}\", got two", name));
  *seen = true;
  return {};
}

Status HeaderReader::finish_tensor() {
  if (other_spelling_) return {};  // no tensor of this header is used
  if (!entry_.has_dtype) return invalid("expected a dtype, got none");
  if (!entry_.has_shape) return invalid("expected a shape, got none");
  if (entry_.offsets.size() != 2)
    return invalid(fmt::format("expected two data_offsets, got {}", entry_.offsets.size()));
  FoundTensor& tensor = entry_.tensor;
  auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  if (!bytes.ok()) return invalid(bytes.error().message);
  std::uint64_t begin = entry_.offsets[0], end = entry_.offsets[1];
  if (begin > end || end - begin != *bytes)
    return invalid(fmt::format("expected {} bytes for {} {}, got data_offsets [{}, {}]", *bytes,
                               dtype_info(tensor.dtype)->name, shape_text(tensor.shape), begin, end));
  tensors_.push_back({std::move(tensor), begin, *bytes});
  return {};
}

Status HeaderReader::invalid(std::string_view what) const {
  return Error{Errc::invalid, fmt::format("{}: {}", tensor_label(entry_.tensor.name), what)};
}

Status HeaderReader::spelled_otherwise(std::string_view got, At next) {
  if (!other_spelling_) other_spelling_ = Error{Errc::unsupported, unexpected(got).error().message};
  skip_container();
  at_ = next;
  return {};
}

Result<std::string> read_header(ByteSource& source) {
  if (source.size() < kLengthBytes)
    return Error{Errc::invalid, fmt::format("expected {} bytes of header length, got {}", kLengthBytes, source.size())};
  HeaderCursor cursor(source, source.size());
  WEFT_TRY(auto length, cursor.number<std::uint64_t>());
  if (length > limits::kSafetensorsHeaderMax)
    return Error{Errc::invalid, fmt::format("expected a header of at most {} bytes, got one of {}",
                                            limits::kSafetensorsHeaderMax, length)};
  if (length > cursor.remaining())
    return Error{Errc::invalid, fmt::format("expected a header of {} bytes, got a file with {} bytes after its length",
                                            length, cursor.remaining())};
  WEFT_TRY(std::string header, cursor.text(length));
  if (!std::string_view(header).substr(std::min(header.find_first_not_of(" \t\r\n"), header.size())).starts_with('{'))
    return Error{Errc::invalid,
                 fmt::format("expected a header that begins with {{, got \"{}\"", printable(header, 20))};
  if (!valid_utf8(header)) return Error{Errc::invalid, "expected a header in UTF-8, got other bytes"};
  return header;
}

// Keeps the last text of each key. There are at most limits::kMetadataEntriesMax.
void keep_last_texts(Layout& layout) {
  std::map<std::string_view, std::size_t> last;
  for (std::size_t i = 0; i < layout.metadata.size(); ++i) last[layout.metadata[i].first] = i;
  if (last.size() == layout.metadata.size()) return;
  std::vector<std::pair<std::string, std::string>> kept;
  for (std::size_t i = 0; i < layout.metadata.size(); ++i)
    if (last[layout.metadata[i].first] == i) kept.push_back(layout.metadata[i]);
  layout.metadata = std::move(kept);
}

std::optional<Shape> saved_offsets(const JsonValue& info, const FoundTensor& tensor) {
  const JsonValue* const entry = info.find(tensor.name);
  const JsonValue* const offsets = entry == nullptr ? nullptr : entry->find("saved_offsets");
  if (offsets == nullptr || offsets->array() == nullptr || offsets->array()->size() != tensor.shape.size())
    return std::nullopt;
  Shape begin;
  for (const JsonValue& offset : *offsets->array()) {
    if (offset.number() == nullptr) return std::nullopt;
    begin.push_back(*offset.number());
  }
  return begin;
}

// Sets FoundTensor::begin of all tensors. Returns false and sets none if the text does not have it for each tensor.
bool set_begins(std::string_view sharding_info, std::vector<FoundTensor>& tensors) {
  if (sharding_info.empty()) return false;
  const JsonBounds bounds{.depth_max = 4, .values_max = (tensors.size() + 1) * (limits::kDimensionsMax + 2)};
  const auto info = JsonValue::parse(sharding_info, bounds);
  if (!info.ok()) return false;
  for (FoundTensor& tensor : tensors) {
    auto begin = saved_offsets(*info, tensor);
    if (!begin) {
      for (FoundTensor& one : tensors) one.begin.clear();
      return false;
    }
    tensor.begin = *std::move(begin);
  }
  return true;
}

class Safetensors final : public Format {
 public:
  std::string_view name() const override { return "safetensors"; }

  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name.ends_with(".safetensors");
  }

  Result<Layout> parse(FormatInput& files) const override {
    ByteSource& source = files.main();
    WEFT_TRY(std::string header, read_header(source));
    Layout layout;
    layout.format = name();
    HeaderReader reader(layout);
    Status read = parse_json(header, limits::kJsonDepthMax, reader);
    if (read.ok() && reader.other_spelling()) read = *reader.other_spelling();
    if (!read.ok()) return Error{read.error().code, "header: " + read.error().message};
    keep_last_texts(layout);
    const DataRegion data{
        .begin = kLengthBytes + header.size(), .file_size = source.size(), .alignment = 1, .last_counts = true};
    std::string().swap(header);  // frees up to 100 MB before the tensors are copied
    WEFT_TRY(layout.tensors, place_tensors(data, reader.take_tensors()));
    layout.sharded = set_begins(reader.take_sharding_info(), layout.tensors);
    return layout;
  }
};

}  // namespace

const Format& safetensors_format() {
  static const Safetensors format;
  return format;
}

}  // namespace weft
