#include "weft/model/manifest.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/sha256.h"
#include "model/manifest_codec.h"

namespace weft {

Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest) {
  WEFT_CHECK(check_manifest(manifest));
  return encode_unchecked(manifest);
}

Status encode_manifest(const Manifest& manifest, const std::function<Status(std::span<const std::byte>)>& use) {
  WEFT_CHECK(check_manifest(manifest));
  return encode_unchecked(manifest, use);
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  WEFT_TRY(Manifest manifest, decode_unchecked(bytes));
  if (Status status = check_manifest(manifest); !status.ok())
    return Error{Errc::corrupt, "manifest: " + status.error().message};
  return manifest;
}

std::span<const File> files_of(const Manifest& manifest, FileRole role) {
  const auto first = std::ranges::lower_bound(manifest.files, role, {}, &File::role);
  return {first, std::ranges::upper_bound(first, manifest.files.end(), role, {}, &File::role)};
}

const File* find_file(const Manifest& manifest, FileRole role, std::string_view path) {
  const std::span<const File> files = files_of(manifest, role);
  const auto found = std::ranges::lower_bound(files, path, {}, &File::path);
  return found == files.end() || found->path != path ? nullptr : &*found;
}

namespace {

std::string_view value_of(const File& file, std::string_view key) {
  const auto entry = std::ranges::find(file.metadata, key, &std::pair<std::string, std::string>::first);
  return entry == file.metadata.end() ? std::string_view() : entry->second;
}

std::string_view said_by_weft(const File& file, std::string_view key) {
  return file.format.empty() ? value_of(file, key) : std::string_view();  // a safetensors file may say anything
}

}  // namespace

std::string_view why_no_tensors(const File& file) {
  return said_by_weft(file, kNoTensors);
}

std::string_view globals_of(const File& file, std::string_view key) {
  constexpr std::array<std::string_view, 5> kOfPickles = {"", "torch zip", "torch legacy", "pickle", "dcp"};
  return std::ranges::find(kOfPickles, file.format) == kOfPickles.end() ? std::string_view() : value_of(file, key);
}

std::string_view remark_on(const File& file) {
  return said_by_weft(file, kRemark);
}

std::uint64_t logical_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const FileRole role : {FileRole::published, FileRole::bundle})
    for (const File& file : files_of(manifest, role)) bytes += file.size;
  return bytes;
}

namespace {

// Feeds a digest with values. A length precedes each text, so that the ends of values are unambiguous.
class Outline {
 public:
  void add(std::uint64_t number) { digest_.update(std::as_bytes(std::span(&number, 1))); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    digest_.update(std::as_bytes(std::span(text)));
  }
  void add(const Tensor& tensor) {
    add(tensor.name);
    add(static_cast<std::uint64_t>(tensor.dtype));
    add(std::uint64_t{tensor.shape.size()});
    for (const std::uint64_t dimension : tensor.shape) add(dimension);
    add(tensor.descr);
    add(std::uint64_t{tensor.strides.size()});
    for (const std::uint64_t stride : tensor.strides) add(stride);
    add(std::uint64_t{tensor.grid.size()});
    for (const std::uint64_t border : tensor.grid) add(border);
  }
  void add(const File& file) {
    add(file.path);
    add(static_cast<std::uint64_t>(file.role));
    add(file.format);
    add(std::uint64_t{file.tensors.size()});
    for (const Tensor& tensor : file.tensors) add(tensor);
  }
  void add(std::span<const std::byte> bytes) { digest_.update(bytes); }
  Digest finish() { return digest_.finish(); }

 private:
  Sha256 digest_;
};

}  // namespace

Digest outline_of(const Manifest& manifest) {
  Outline outline;
  outline.add(static_cast<std::uint64_t>(manifest.kind));
  outline.add(std::uint64_t{manifest.files.size()});
  for (const File& file : manifest.files) outline.add(file);
  const auto architecture = encode_unchecked(Manifest{{}, manifest.architecture});
  if (!architecture.ok()) return {};  // cannot fail: the whole manifest was encoded before
  outline.add(std::span(*architecture));
  return outline.finish();
}

std::size_t tensor_count(const Manifest& manifest) {
  std::size_t count = 0;
  for (const File& file : manifest.files) count += file.tensors.size();
  return count;
}

std::uint64_t parameter_count(const Manifest& manifest) {
  std::uint64_t sum = 0;
  for (const File& file : manifest.files)
    for (const Tensor& tensor : file.tensors)
      if (__builtin_add_overflow(sum, element_count(tensor.shape).value_or(UINT64_MAX), &sum)) return UINT64_MAX;
  return sum;
}

std::uint64_t stored_bytes(const File& file, const Tensor& tensor) {
  if (!tensor.scattered()) return tensor.extent == kNoExtent ? 0 : file.extents[tensor.extent].id.length;
  if (tensor.dtype != DType::npy_other) return tensor_bytes(tensor.dtype, tensor.shape).value();  // checked
  std::uint64_t bytes = 0;
  for (const TensorRun& run : tensor.runs) bytes += run.length;
  return bytes;
}

ContentId tensor_content(const Manifest& manifest, const File& file, const Tensor& tensor) {
  if (!tensor.scattered()) return tensor.extent == kNoExtent ? ContentId{} : file.extents[tensor.extent].id;
  constexpr std::string_view kWhat = "weft-scattered-4";
  Sha256 digest;
  digest.update(std::as_bytes(std::span(kWhat)));
  const auto add = [&digest](std::uint64_t number) { digest.update(std::as_bytes(std::span(&number, 1))); };
  // Without strides and grid the bytes are the same in any shape.
  const Shape no_shape;
  const bool plain = tensor.strides.empty() && tensor.grid.empty();
  for (const std::vector<std::uint64_t>* numbers : {plain ? &no_shape : &tensor.shape, &tensor.strides, &tensor.grid}) {
    add(numbers->size());
    for (const std::uint64_t number : *numbers) add(number);
  }
  for (const TensorRun& run : tensor.runs) {
    const ContentId& id = manifest.files[run.file].extents[run.extent].id;
    for (const std::uint64_t number : {id.length, run.offset, run.length}) add(number);
    digest.update(std::as_bytes(std::span(id.root.bytes)));
  }
  return {stored_bytes(file, tensor), digest.finish()};
}

}  // namespace weft
