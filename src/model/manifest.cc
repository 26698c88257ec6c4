#include "weft/manifest.h"

#include "base/limits.h"
#include "base/sha256.h"
#include "model/manifest_check.h"
#include "model/manifest_codec.h"

namespace weft {

Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest) {
  WEFT_CHECK(check_manifest(manifest));
  return encode_unchecked(manifest);
}

Result<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  WEFT_TRY(Manifest manifest, decode_unchecked(bytes));
  if (Status status = check_manifest(manifest); !status.ok())
    return Error{Errc::corrupt, "manifest: " + status.error().message};
  return manifest;
}

std::uint64_t logical_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const File& file : manifest.files) bytes += file.size;
  return bytes;
}

Digest outline_of(const Manifest& manifest) {
  Manifest bare = manifest;
  for (File& file : bare.files) {
    file.size = 0;
    file.extents.clear();
    file.metadata.clear();
    for (Tensor& tensor : file.tensors) tensor.extent = kNoExtent;
  }
  const auto bytes = encode_unchecked(bare);
  return bytes.ok() ? sha256(*bytes) : Digest{};  // it is smaller than the manifest, which could be encoded
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
  return tensor.extent == kNoExtent ? 0 : file.extents[tensor.extent].id.length;
}

}  // namespace weft
