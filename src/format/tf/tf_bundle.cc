#include "format/tf/tf_bundle.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "format/boxes.h"
#include "format/builtin.h"
#include "format/other_files.h"
#include "format/parse_errors.h"
#include "format/protobuf.h"
#include "format/tensor_list.h"
#include "format/tf/bundle_entry.h"
#include "format/tf/table.h"

namespace weft {
namespace {

constexpr std::string_view kBundleIndex = ".index";
// Fields of BundleHeaderProto.
constexpr std::uint32_t kBundleShards = 1, kBundleEndianness = 2;

template <class... Args>
Error bundle_hides(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::unsupported, fmt::format(format, std::forward<Args>(args)...)};
}

// Reads one checkpoint once.
class Bundle {
 public:
  explicit Bundle(FormatInput& files)
      : files_(files),
        stem_(files.name().substr(0, files.name().size() - kBundleIndex.size())),
        index_(files.main()),
        tensors_(layout_),
        data_files_(files, layout_) {}

  Result<Layout> read(bool verify);

 private:
  struct Slice {
    std::string key;
    Range entry;
  };

  Status read_header(std::string_view key, Range header);
  Status add(std::string_view key, Range message);
  // Errors of these that is_malformed() are reasons to hide the tensor. The others come from the source.
  Result<FoundTensor> tensor_of(std::string_view key, const BundleEntry& entry, Range message,
                                const Result<TensorPart>& run);
  Result<FoundTensor> partitioned(std::string_view key, const BundleEntry& entry, Range message, DType dtype);
  Result<TensorBox> box_of(std::string_view key, const BundleSlice& slice, const BundleEntry& whole, DType dtype);
  Result<TensorPart> run_of(const BundleEntry& entry);

  FormatInput& files_;
  const std::string_view stem_;
  ProtobufReader index_;
  Layout layout_;
  TensorList tensors_;
  OtherFiles data_files_;
  std::optional<std::uint64_t> shards_;  // files with data; none: before the header
  std::vector<Slice> slices_;            // sorted by their keys, and all before the first tensor
};

Result<Layout> Bundle::read(bool verify) {
  layout_.format = "tf bundle";
  WEFT_CHECK(each_table_entry(files_.main(), verify, [&](std::string_view key, Range value) {
    return shards_ ? add(key, value) : read_header(key, value);
  }));
  if (!shards_) return Error{Errc::invalid, "tf bundle: expected a header, got no entry"};
  tensors_.finish();
  return std::move(layout_);
}

// Reads the first entry. Its key is empty.
Status Bundle::read_header(std::string_view key, Range header) {
  if (!key.empty()) return Error{Errc::invalid, "tf bundle: expected a header, got another entry"};
  std::uint64_t shards = 0, endianness = 0;
  WEFT_CHECK(index_.each_field(header, [&](const ProtobufField& field) -> Status {
    if (field.is_varint(kBundleShards)) shards = field.value;
    if (field.is_varint(kBundleEndianness)) endianness = field.value;
    return {};
  }));
  if (endianness != 0) return Error{Errc::unsupported, "tf bundle: expected little-endian data, got other data"};
  shards_ = shards;
  return {};
}

Status Bundle::add(std::string_view key, Range message) {
  WEFT_TRY(const BundleEntry entry, read_bundle_entry(index_, message));
  if (entry.shard >= *shards_)
    return Error{Errc::invalid, fmt::format("tf bundle: expected a shard below {}, got {}", *shards_, entry.shard)};
  if (is_slice_key(key)) {
    if (slices_.size() == limits::kTfSlicesMax)
      return Error{Errc::unsupported,
                   fmt::format("tf bundle: expected at most {} slices, got more", limits::kTfSlicesMax)};
    slices_.push_back({std::string(key), message});
    return {};
  }
  const Result<TensorPart> run = entry.slices == 0 ? run_of(entry) : TensorPart{};
  Result<FoundTensor> tensor = tensor_of(key, entry, message, run);
  if (!tensor.ok() && !is_malformed(tensor.error())) return tensor.error();
  if (!tensor.ok() && run.ok() && run->length > 0) layout_.cuts.push_back(*run);
  HiddenTensor described{std::string(key), entry.length, "", {}, {}};
  std::ranges::replace(described.name, '/', '.');
  if (const auto type = bundle_type(entry.type); type && entry.shape.size() <= limits::kDimensionsMax)
    described.dtype = type->dtype;
  if (described.dtype) described.shape = entry.shape;
  return tensors_.add(std::move(tensor), std::move(described));
}

Result<FoundTensor> Bundle::tensor_of(std::string_view key, const BundleEntry& entry, Range message,
                                      const Result<TensorPart>& run) {
  const auto type = bundle_type(entry.type);
  if (!type) return bundle_hides("a type that weft lacks, number {}", entry.type);
  if (!type->dtype) return bundle_hides("a type that weft lacks, {}", type->name);
  if (entry.shape.size() > limits::kDimensionsMax)
    return bundle_hides("expected at most {} dimensions, got more", limits::kDimensionsMax);
  WEFT_TRY(const std::uint64_t bytes, tensor_bytes(*type->dtype, entry.shape));
  if (entry.slices > 0) return partitioned(key, entry, message, *type->dtype);
  if (!run.ok()) return run.error();
  if (run->length != bytes)
    return bundle_hides("expected {} bytes for its shape {}, got {}", bytes, shape_text(entry.shape), run->length);
  FoundTensor tensor;
  tensor.dtype = *type->dtype;
  tensor.shape = entry.shape;
  if (bytes > 0) tensor.parts.push_back(*run);
  return tensor;
}

Result<FoundTensor> Bundle::partitioned(std::string_view key, const BundleEntry& entry, Range message, DType dtype) {
  if (entry.slices > slices_.size()) return bundle_hides("a slice of it is missing");
  std::vector<TensorBox> boxes;
  WEFT_CHECK(each_bundle_slice(index_, message, [&](const BundleSlice& slice) -> Status {
    WEFT_TRY(TensorBox box, box_of(key, slice, entry, dtype));
    boxes.push_back(std::move(box));
    return {};
  }));
  FoundTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = entry.shape;
  WEFT_CHECK(place_boxes(tensor, std::move(boxes)));
  return tensor;
}

Result<TensorBox> Bundle::box_of(std::string_view key, const BundleSlice& slice, const BundleEntry& whole,
                                 DType dtype) {
  if (slice.begin.size() != whole.shape.size()) return bundle_hides("a slice has other dimensions than the tensor");
  TensorBox box{0, 0, slice.begin, slice.length};
  for (std::size_t i = 0; i < whole.shape.size(); ++i) {
    if (box.size[i] == BundleSlice::kWhole) box.size[i] = whole.shape[i];
    if (box.begin[i] > whole.shape[i] || box.size[i] > whole.shape[i] - box.begin[i])
      return bundle_hides("a slice lies outside of the tensor");
  }
  const std::string name = slice_key(key, slice);
  const auto found = std::ranges::lower_bound(slices_, name, {}, &Slice::key);
  if (found == slices_.end() || found->key != name) return bundle_hides("a slice of it is missing");
  WEFT_TRY(const BundleEntry entry, read_bundle_entry(index_, found->entry));
  if (entry.type != whole.type || entry.shape != box.size) return bundle_hides("a slice has another type or shape");
  WEFT_TRY(const TensorPart run, run_of(entry));
  if (run.length != box_bytes(dtype, box)) return bundle_hides("a slice has other bytes than its shape needs");
  box.file = run.file;
  box.offset = run.offset;
  return box;
}

Result<TensorPart> Bundle::run_of(const BundleEntry& entry) {
  const std::string name = fmt::format("{}.data-{:05}-of-{:05}", stem_, entry.shard, *shards_);
  WEFT_TRY(const OtherFiles::File* const file, data_files_.find(name));
  if (file == nullptr) return bundle_hides("no file {} is beside the index", printable(name));
  const std::uint64_t size = file->source->size();
  if (entry.offset > size || entry.length > size - entry.offset)
    return bundle_hides("expected {} bytes at {} of {}, got a file of {} bytes", entry.length, entry.offset,
                        printable(name), size);
  return TensorPart{file->number, entry.offset, entry.length};
}

// True for NAME.data-00000-of-00001.
bool is_bundle_data(std::string_view file_name) {
  constexpr std::string_view kData = ".data-", kOf = "-of-";
  constexpr std::size_t kDigits = 5;
  const std::size_t data = file_name.rfind(kData), of = file_name.rfind(kOf);
  if (data == file_name.npos || of == file_name.npos || of < data + kData.size()) return false;
  const auto is_number = [](std::string_view text) {
    return text.size() >= kDigits && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return is_number(file_name.substr(data + kData.size(), of - data - kData.size())) &&
         is_number(file_name.substr(of + kOf.size()));
}

// Nothing is refused: an index may be another program's.
class TfBundle final : public Format {
 public:
  std::string_view name() const override { return "tf bundle"; }

  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name.ends_with(kBundleIndex) || is_bundle_data(file_name);
  }

  // The tensors of a file with data belong to the index.
  Result<Layout> parse(FormatInput& files) const override {
    if (!files.name().ends_with(kBundleIndex)) return Layout{};
    auto layout = read_tf_bundle(files);
    if (!layout.ok() && is_malformed(layout.error())) return Error{Errc::unsupported, layout.error().message};
    return layout;
  }
};

}  // namespace

Result<Layout> read_tf_bundle(FormatInput& files, bool verify) {
  return Bundle(files).read(verify);
}

const Format& tf_bundle_format() {
  static const TfBundle format;
  return format;
}

}  // namespace weft
