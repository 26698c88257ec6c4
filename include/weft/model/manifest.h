// A manifest (model/manifest.cc) describes the content of a version and nothing else: its files, their extents and
// tensors, and the architecture of these. Its name is the SHA-256 of its encoded bytes, so the encoding is canonical:
// equal manifests encode to equal bytes.
//
// The plain SHA-256 of a file is a fact about its content and never an identity: no blob is named or found by it. It
// stands here and not in the version's record of the journal or the registry, because equal bytes have equal digests,
// so it changes no manifest that equals another, and because a version may have a million files: a value of the
// registry has at most 1 MB, which is 31,250 digests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/grid.h"
#include "weft/model/arch.h"
#include "weft/model/hidden_tensor.h"
#include "weft/names.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::uint32_t kNoExtent = 0xffffffffU;

// A run of bytes of an extent.
struct TensorRun {
  std::uint32_t file = 0;    // index into Manifest::files
  std::uint32_t extent = 0;  // index into its extents
  std::uint64_t offset = 0;  // bytes from the start of the extent
  std::uint64_t length = 0;  // bytes, not 0
  bool operator==(const TensorRun&) const = default;
};

// True if `next` continues `last`: a tensor has both as one run (weft/bytes/run_list.h).
inline bool goes_on(const TensorRun& last, const TensorRun& next) {
  return last.file == next.file && last.extent == next.extent && last.offset + last.length == next.offset;
}

// Most tensors are one extent of their file, in C order. Any other tensor is *scattered*: it has runs, which are its
// memory, as FoundTensor::parts are. Successive runs that touch in one extent are one run. Tensors that overlap lie in
// one extent, which spans all of them, and so do parts of a tensor that touch.
struct Tensor {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;
  std::uint32_t extent = kNoExtent;  // index into File::extents; kNoExtent if the tensor is empty or scattered
  std::string descr;                 // as FoundTensor::descr
  std::vector<TensorRun> runs = {};  // only for a scattered tensor
  Strides strides = {};              // as FoundTensor::strides; only for a scattered tensor that is not in C order
  Borders grid = {};                 // as FoundTensor::grid; only for a scattered tensor without strides

  bool scattered() const { return !runs.empty(); }
  bool operator==(const Tensor&) const = default;
};

// A tensor of a manifest.
struct TensorRef {
  std::uint32_t file = 0;    // index into Manifest::files
  std::uint32_t tensor = 0;  // index into its tensors
  bool operator==(const TensorRef&) const = default;
};

// The role of a file of a manifest. Only data sets have files of other roles than `published`. No listing shows these.
enum class FileRole : std::uint8_t {
  published,
  bundle,        // the bytes of small published files
  file_table,    // names and sizes of the small files (dataset/file_table.h)
  record_table,  // the records of a container (dataset/record_table.h)
  sums,          // the plain SHA-256 of each small file, in the order of the file table, 32 bytes each
};

// The permission bits of a published file that a version keeps: st_mode & kExecuteBits. A mount and an export show them
// beside 0644.
inline constexpr unsigned kExecuteBits = 0111;
constexpr std::uint8_t execute_bits(unsigned mode) {
  return static_cast<std::uint8_t>(mode & kExecuteBits);
}

struct File {
  // Relative, '/'-separated, no empty, "." or ".." component. For a record table: the container's path. For a bundle
  // and the file table: "".
  std::string path;
  std::uint64_t size = 0;
  std::string format;  // as Layout::format
  std::vector<Extent> extents;
  std::vector<Tensor> tensors;  // names are unique; extents ascend, and tied tensors have the same one
  std::vector<std::pair<std::string, std::string>> metadata;
  FileRole role = FileRole::published;
  std::uint8_t execute = 0;  // kExecuteBits; 0 unless the file is published
  // The plain SHA-256 of the bytes. Only a published file has one. A file lacks it if its version inherits some of the
  // bytes and the publisher's node had not all of them undamaged.
  std::optional<Digest> sha256 = {};
  std::vector<HiddenTensor> hidden = {};  // as Layout::hidden; only of a published file
  std::uint64_t hidden_more = 0;          // as Layout::hidden_more
  bool operator==(const File&) const = default;
};

struct Manifest {
  // By role. Published files, sorted by path, bytewise; no path is another's or its directory. Then bundles: their
  // bytes, concatenated, are the small files in the order of the table. Then the file table, if there are bundles. Then
  // record tables, by path. Then the sums, if there are small files.
  std::vector<File> files;
  Architecture architecture = {};
  VersionKind kind = VersionKind::model;  // a data set has no tensors
  // The published directories with nothing in them, sorted, as File::path. No path is another's, a file's, or that of a
  // directory of either. Other directories follow from the paths of files.
  std::vector<std::string> directories = {};
  bool operator==(const Manifest&) const = default;
};

std::span<const File> files_of(const Manifest& manifest, FileRole role);
inline std::span<const File> published_files(const Manifest& manifest) {
  return files_of(manifest, FileRole::published);
}
// Visits the published files and the empty directories in the order of their paths: visit(path, file). `file` is the
// file's index, or nothing for a directory.
template <class Visit>
void each_published(const Manifest& manifest, Visit visit) {
  std::size_t next = 0;
  std::uint32_t number = 0;
  for (const File& file : published_files(manifest)) {
    for (; next < manifest.directories.size() && manifest.directories[next] < file.path; ++next)
      visit(std::string_view(manifest.directories[next]), std::optional<std::uint32_t>());
    visit(std::string_view(file.path), std::optional(number++));
  }
  for (; next < manifest.directories.size(); ++next)
    visit(std::string_view(manifest.directories[next]), std::optional<std::uint32_t>());
}
// A file of a data set is small if it is no larger than this and not a container. One segment, which is an extent of a
// bundle, contains it.
inline constexpr std::uint64_t kSmallFileMax = (4U << 20U) - 1;
inline constexpr std::uint64_t kSegmentMax = 4U << 20U;
// Metadata key of a file that claims to be a container and could not be read as one. The value is the reason.
inline constexpr std::string_view kNoRecords = "no records";
// Metadata key of a file that claims to be of a format (weft/model/format.h), and that weft keeps without reading its
// tensors. The value is the reason. Such a file has no format.
inline constexpr std::string_view kNoTensors = "no tensors";
// Metadata key of a file without a format that weft keeps although it contradicts another file. The value says how.
inline constexpr std::string_view kRemark = "remark";
// Metadata keys of a file with pickles, with format "torch zip", "torch legacy", "pickle" or "dcp" or without a format:
// the globals that its pickles name, separated by blanks, and those of them that torch.load(weights_only=True) does not
// allow by itself. They prove no file safe.
inline constexpr std::string_view kGlobals = "globals";
inline constexpr std::string_view kOtherGlobals = "globals beyond weights_only";
// Returns the value of one of the two keys; "" if the file has none.
std::string_view globals_of(const File& file, std::string_view key);
// Return the reason and the remark; "" for any other file.
std::string_view why_no_tensors(const File& file);
std::string_view remark_on(const File& file);

// Encodes to a FlatBuffer (src/model/manifest.fbs). Errc::invalid: decode_manifest would refuse the result, because it
// breaks a guarantee or exceeds limits::kManifestMax bytes.
Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest);

// Encodes without a copy: `use` receives the bytes, which are valid during the call.
Status encode_manifest(const Manifest& manifest, const std::function<Status(std::span<const std::byte>)>& use);

// Checks all guarantees of the comments above. Errc::corrupt: the bytes break one.
Result<Manifest> decode_manifest(std::span<const std::byte> bytes);

// Returns the file with this path among those of a role that have paths of their own; nullptr if there is none.
const File* find_file(const Manifest& manifest, FileRole role, std::string_view path);
std::uint64_t logical_bytes(const Manifest& manifest);  // of all published files, small ones included
// Returns a SHA-256 of the manifest without bytes and sizes of files: paths, formats, names, types and shapes of
// tensors, architecture. A query (find.h) has one answer for all manifests of one outline.
Digest outline_of(const Manifest& manifest);
std::size_t tensor_count(const Manifest& manifest);
std::uint64_t parameter_count(const Manifest& manifest);  // elements of all tensors; UINT64_MAX if they do not fit
// Returns the bytes of the tensor's elements in C order; 0 if there are none.
std::uint64_t stored_bytes(const File& file, const Tensor& tensor);
// Returns the content id of the tensor's bytes, without regard to its name: the id of its extent. The id of a scattered
// tensor has the length of its elements and a digest. The digest covers the contents of its runs, its strides and its
// grid, and with strides or a grid also its shape. The elements are not hashed by themselves: equal elements that a
// file divides into other extents have another id. No blob has this id. Length 0: no bytes.
ContentId tensor_content(const Manifest& manifest, const File& file, const Tensor& tensor);

// Checks a published path: see File::path; each component at most 255 bytes, valid UTF-8 without control characters, at
// most 4,000 bytes and 64 components in all.
Status check_file_path(std::string_view path);

}  // namespace weft
