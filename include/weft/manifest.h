// A manifest says what a version's content is and nothing else: files, their extents, their tensors, the architecture
// that these make. It is named by the
// SHA-256 of its encoded bytes, so the encoding is canonical: equal manifests encode to equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/arch.h"
#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/names.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint32_t kNoExtent = 0xffffffffU;

// Bytes of an extent.
struct TensorRun {
  std::uint32_t file = 0;    // index into Manifest::files
  std::uint32_t extent = 0;  // index into its extents
  std::uint64_t offset = 0;  // bytes from the start of the extent
  std::uint64_t length = 0;  // bytes, not 0
  bool operator==(const TensorRun&) const = default;
};

// Most tensors are one extent of their file, in C order. A tensor that is not is *scattered*: it has runs, which are
// its memory as FoundTensor::parts are. Tensors that overlap lie in one extent, which is all of them together.
struct Tensor {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  std::uint32_t extent = kNoExtent;  // index into File::extents; kNoExtent for a tensor of no bytes, or a scattered one
  std::string descr;                 // as FoundTensor::descr
  std::vector<TensorRun> runs = {};  // of a scattered tensor
  Strides strides = {};              // as FoundTensor::strides; only of a scattered tensor, and not those of C order

  bool scattered() const { return !runs.empty(); }
  bool operator==(const Tensor&) const = default;
};

// The role of a file of a manifest. All but the published ones are of data sets, and no listing has them.
enum class FileRole : std::uint8_t {
  published,
  bundle,        // the bytes of small published files
  file_table,    // which these are (dataset/file_table.h)
  record_table,  // the records of a container (dataset/record_table.h)
};

struct File {
  // Relative, '/'-separated, no empty, "." or ".." component. Of a record table the container's; of a bundle and of the
  // file table "".
  std::string path;
  std::uint64_t size = 0;
  std::string format;  // as Layout::format
  std::vector<Extent> extents;
  std::vector<Tensor> tensors;  // names are unique; extents ascend, and those of tied tensors are equal
  std::vector<std::pair<std::string, std::string>> metadata;
  FileRole role = FileRole::published;
  bool operator==(const File&) const = default;
};

struct Manifest {
  // By role. Published files, sorted by path, bytewise; no path is another's or its directory. Bundles, whose bytes one
  // after the other are the small files in the table's order. The file table: one where there are bundles, else none.
  // Record tables by path.
  std::vector<File> files;
  Architecture architecture = {};
  VersionKind kind = VersionKind::model;  // a data set has no tensors
  bool operator==(const Manifest&) const = default;
};

std::span<const File> files_of(const Manifest& manifest, FileRole role);
inline std::span<const File> published_files(const Manifest& manifest) {
  return files_of(manifest, FileRole::published);
}
// A file of a data set that is no larger, and no container, is small: it lies in one segment, an extent of a bundle.
inline constexpr std::uint64_t kSmallFileMax = (4U << 20U) - 1;
inline constexpr std::uint64_t kSegmentMax = 4U << 20U;
// A file of a data set that has records was read as no container for this reason, which stands in its metadata.
inline constexpr std::string_view kNoRecords = "no records";

// Encodes to a FlatBuffer (src/model/manifest.fbs). Errc::invalid for what decode_manifest would refuse: a promise
// broken, or more than limits::kManifestMax bytes.
Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest);

// The same without a copy: `use` is given the bytes, which live no longer than the call.
Status encode_manifest(const Manifest& manifest, const std::function<Status(std::span<const std::byte>)>& use);

// Everything that the comments above promise is checked; hostile bytes give Errc::corrupt.
Result<Manifest> decode_manifest(std::span<const std::byte> bytes);

std::uint64_t logical_bytes(const Manifest& manifest);  // of all published files, the small ones too
// SHA-256 of all that a manifest says but for bytes and sizes of files: paths, formats, names, types and shapes of
// tensors, architecture. A query (find.h) gives one answer for all manifests of one outline.
Digest outline_of(const Manifest& manifest);
std::size_t tensor_count(const Manifest& manifest);
std::uint64_t parameter_count(const Manifest& manifest);  // elements of all tensors; UINT64_MAX when they do not fit
// Bytes of the tensor's elements in C order: its extent's length; 0 when it has none.
std::uint64_t stored_bytes(const File& file, const Tensor& tensor);
// What the tensor's bytes are, whatever the tensor is called: its extent's id. The id of a scattered one has their
// length and a digest of the contents of its runs; no blob has it. Length 0: no bytes.
ContentId tensor_content(const Manifest& manifest, const File& file, const Tensor& tensor);

// A published path: see File::path; each component at most 255 bytes, valid UTF-8 without control characters, at most
// 4,000 bytes and 64 components in all.
Status check_file_path(std::string_view path);

}  // namespace weft
