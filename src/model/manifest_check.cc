// Checks the promises of weft/model/manifest.h.
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "model/manifest_codec.h"
#include "weft/model/arch.h"

namespace weft {
namespace {

template <class... Args>
Error broken(fmt::format_string<Args...> format, Args&&... args) {
  return Error{Errc::invalid, fmt::format(format, std::forward<Args>(args)...)};
}

Status check_text(std::string_view what, std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) return broken("{}: expected at most {} bytes, got {}", what, bytes_max, text.size());
  return {};
}

Status check_extents(const File& file) {
  if (file.extents.size() >= kNoExtent) return broken("expected fewer than {} extents", kNoExtent);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < file.extents.size(); ++i) {
    const Extent& extent = file.extents[i];
    if (extent.offset != end) return broken("extent {}: expected offset {}, got {}", i, end, extent.offset);
    if (extent.id.length == 0) return broken("extent {} at {}: expected bytes, got none", i, extent.offset);
    if (__builtin_add_overflow(end, extent.id.length, &end))
      return broken("extent {} at {}: its end does not fit in 64 bits", i, extent.offset);
  }
  if (end != file.size) return broken("expected extents of {} bytes together, got {}", file.size, end);
  return {};
}

Status check_shape(const Tensor& tensor) {
  if (tensor.shape.size() > limits::kDimensionsMax)
    return broken("expected at most {} dimensions, got {}", limits::kDimensionsMax, tensor.shape.size());
  if (!element_count(tensor.shape)) return broken("shape {} has more than 2^64 elements", shape_text(tensor.shape));
  return {};
}

// Checks that the tensor has as many bytes as its type and shape require. The dict of npy_other is not read here.
Status check_length(const File& file, const Tensor& tensor) {
  if (tensor.extent != kNoExtent && tensor.extent >= file.extents.size())
    return broken("expected an extent below {}, got {}", file.extents.size(), tensor.extent);
  if (tensor.dtype == DType::npy_other) return {};
  WEFT_TRY(std::uint64_t expected, tensor_bytes(tensor.dtype, tensor.shape));
  if (std::uint64_t got = stored_bytes(file, tensor); got != expected)
    return broken("expected {} bytes for shape {}, got {}", expected, shape_text(tensor.shape), got);
  return {};
}

// Returns the bytes of all runs.
Result<std::uint64_t> check_runs(const Manifest& manifest, const Tensor& tensor) {
  std::uint64_t bytes = 0;
  const std::uint64_t unit = tensor.strides.empty() ? 1 : dtype_info(tensor.dtype)->block_bytes;
  for (const TensorRun& run : tensor.runs) {
    if (run.file >= manifest.files.size() || run.extent >= manifest.files[run.file].extents.size())
      return broken("expected runs of extents, got extent {} of file {}", run.extent, run.file);
    const std::uint64_t extent = manifest.files[run.file].extents[run.extent].id.length;
    if (run.length == 0 || run.offset > extent || run.length > extent - run.offset)
      return broken("expected runs within their extents, got {} bytes at {} of one of {}", run.length, run.offset,
                    extent);
    if (run.length % unit != 0) return broken("expected runs of whole elements, got one of {} bytes", run.length);
    if (__builtin_add_overflow(bytes, run.length, &bytes)) return broken("expected runs of fewer than 2^64 bytes");
  }
  return bytes;
}

// Refuses a second encoding of one thing: a whole extent of the tensor's own file, in C order, must not be a run, and
// no run goes on in the next one.
Status check_canonical(const Manifest& manifest, const File& file, const Tensor& tensor) {
  if (tensor.extent != kNoExtent) return broken("expected runs or an extent, got both");
  if (!tensor.strides.empty() && tensor.strides == c_strides(tensor.shape))
    return broken("expected no strides for C order, got {}", shape_text(tensor.strides));
  const auto touch = [](const TensorRun& a, const TensorRun& b) { return goes_on(a, b); };
  if (std::ranges::adjacent_find(tensor.runs, touch) != tensor.runs.end())
    return broken("expected runs that touch as one run");
  if (!tensor.strides.empty() || !tensor.grid.empty() || tensor.runs.size() > 1) return {};
  const TensorRun& run = tensor.runs.front();
  if (&manifest.files[run.file] == &file && run.length == file.extents[run.extent].id.length)
    return broken("expected extent {}, got a run that is all of it", run.extent);
  return {};
}

// Checks that the runs are the memory of the grid. Refuses a second encoding: runs in C order have no grid.
Status check_grid(const Tensor& tensor, std::uint64_t bytes) {
  if (!tensor.strides.empty()) return broken("expected strides or a grid, got both");
  WEFT_TRY(const Grid grid, Grid::of(tensor.dtype, tensor.shape, tensor.grid));
  if (bytes != grid.memory_bytes())
    return broken("expected runs of {} bytes for the cells of its grid, got {}", grid.memory_bytes(), bytes);
  if (grid.cells_are_runs()) return broken("expected no grid, because its cells are the runs of a tensor in C order");
  return {};
}

Status check_scattered(const Manifest& manifest, const File& file, const Tensor& tensor) {
  WEFT_TRY(const std::uint64_t bytes, check_runs(manifest, tensor));
  WEFT_CHECK(check_canonical(manifest, file, tensor));
  if (!tensor.grid.empty()) return check_grid(tensor, bytes);
  if (tensor.dtype == DType::npy_other) return {};
  WEFT_TRY(const std::uint64_t elements, tensor_bytes(tensor.dtype, tensor.shape));
  if (elements > limits::kVersionBytesMax)
    return broken("expected at most {} bytes for shape {}", limits::kVersionBytesMax, shape_text(tensor.shape));
  std::uint64_t expected = elements;
  if (!tensor.strides.empty()) {
    WEFT_TRY(expected, strided_bytes(tensor.dtype, tensor.shape, tensor.strides));
  }
  if (bytes != expected || bytes == 0)
    return broken("expected runs of {} bytes for shape {}, got {}", expected, shape_text(tensor.shape), bytes);
  return {};
}

Status check_place_of(const Manifest& manifest, const File& file, const Tensor& tensor) {
  if (!tensor.strides.empty() && (tensor.runs.empty() || tensor.dtype == DType::npy_other))
    return broken("expected strides of runs only");
  if (!tensor.grid.empty() && tensor.runs.empty()) return broken("expected a grid of runs only");
  if (tensor.dtype == DType::npy_other && tensor.descr.empty())
    return broken("expected a numpy description of its type, got none");
  return tensor.scattered() ? check_scattered(manifest, file, tensor) : check_length(file, tensor);
}

Status check_tensor(const Manifest& manifest, const File& file, const Tensor& tensor) {
  WEFT_CHECK(check_text("name", tensor.name, limits::kTensorNameMax));
  if (!valid_utf8(tensor.name)) return broken("name: expected UTF-8, got other bytes");
  if (dtype_info(tensor.dtype) == nullptr) return broken("unknown element type {}", static_cast<int>(tensor.dtype));
  WEFT_CHECK(check_text("numpy description", tensor.descr, limits::kNpyHeaderMax));
  WEFT_CHECK(check_shape(tensor));
  return check_place_of(manifest, file, tensor);
}

Status check_names(const File& file) {
  std::vector<std::string_view> names;
  names.reserve(file.tensors.size());
  for (const Tensor& tensor : file.tensors) names.emplace_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  return twice == names.end() ? Status{} : broken("tensor \"{}\" is there twice", printable(*twice));
}

Status check_tensors(const Manifest& manifest, const File& file) {
  if (file.tensors.size() > limits::kTensorsPerFileMax)
    return broken("expected at most {} tensors, got {}", limits::kTensorsPerFileMax, file.tensors.size());
  std::uint32_t last_extent = 0;
  for (const Tensor& tensor : file.tensors) {
    if (Status status = check_tensor(manifest, file, tensor); !status.ok())
      return broken("tensor \"{}\": {}", printable(tensor.name), status.error().message);
    if (tensor.extent == kNoExtent) continue;
    if (tensor.extent < last_extent)
      return broken("tensor \"{}\": expected extent {} or a later one, got {}", printable(tensor.name), last_extent,
                    tensor.extent);
    last_extent = tensor.extent;
  }
  return check_names(file);
}

Status check_metadata(const File& file) {
  if (file.metadata.size() > limits::kMetadataEntriesMax)
    return broken("expected at most {} metadata entries, got {}", limits::kMetadataEntriesMax, file.metadata.size());
  for (const auto& [key, value] : file.metadata) {
    WEFT_CHECK(check_text("metadata key", key, limits::kMetadataTextMax));
    WEFT_CHECK(check_text("metadata value", value, limits::kMetadataTextMax));
  }
  return {};
}

Status check_hidden(const HiddenTensor& hidden) {
  WEFT_CHECK(check_text("name", hidden.name, limits::kTensorNameMax));
  WEFT_CHECK(check_text("reason", hidden.why, limits::kHiddenReasonMax));
  if (!valid_utf8(hidden.name) || !valid_utf8(hidden.why) || hidden.why.empty())
    return broken("expected a name and a reason in UTF-8");
  if (hidden.dtype && (dtype_info(*hidden.dtype) == nullptr || *hidden.dtype == DType::npy_other))
    return broken("unknown element type {}", static_cast<int>(*hidden.dtype));
  if (hidden.shape.size() > (hidden.dtype ? limits::kDimensionsMax : 0))
    return broken("expected at most {} dimensions, of a known type, got {}", limits::kDimensionsMax,
                  hidden.shape.size());
  return {};
}

Status check_all_hidden(const File& file) {
  if (file.hidden.size() > limits::kHiddenTensorsMax)
    return broken("expected at most {} hidden tensors, got {}", limits::kHiddenTensorsMax, file.hidden.size());
  if (file.hidden_more > 0 && file.hidden.size() < limits::kHiddenTensorsMax)
    return broken("expected all hidden tensors in the list, got {} more", file.hidden_more);
  if (!file.hidden.empty() && file.role != FileRole::published)
    return broken("expected hidden tensors of published files only");
  for (const HiddenTensor& hidden : file.hidden)
    if (Status status = check_hidden(hidden); !status.ok())
      return broken("hidden tensor \"{}\": {}", printable(hidden.name), status.error().message);
  return {};
}

Status check_file(const Manifest& manifest, const File& file) {
  if (file.execute != (file.role == FileRole::published ? execute_bits(file.execute) : 0))
    return broken("expected permission bits among {:03o}, of a published file, got {:03o}", kExecuteBits, file.execute);
  if (file.sha256 && file.role != FileRole::published) return broken("expected a SHA-256 of published files only");
  WEFT_CHECK(check_text("format", file.format, limits::kFormatNameMax));
  WEFT_CHECK(check_tensors(manifest, file));
  WEFT_CHECK(check_all_hidden(file));
  return check_metadata(file);
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Refuses a path whose directory is itself one of `sorted`. Checks only directories that end at or after `from`, an
// offset in the path.
template <class Sorted, class Path>
Status check_above(const Sorted& sorted, Path path_of, std::string_view path, std::size_t from) {
  for (auto slash = path.find('/', from); slash != path.npos; slash = path.find('/', slash + 1)) {
    const std::string_view directory = path.substr(0, slash);
    const auto it = std::ranges::lower_bound(sorted, directory, {}, path_of);
    if (it != sorted.end() && path_of(*it) == directory)
      return broken("\"{}\" is the directory of \"{}\": expected neither a file nor an empty directory", directory,
                    path);
  }
  return {};
}

std::string_view path_of_file(const File& file) {
  return file.path;
}

// Checks a path against `earlier`, the sorted files before this one: no earlier file may be a directory of the path.
// Directories that the path shares with the last earlier file were checked with that file.
Status check_place(std::span<const File> earlier, const File& file) {
  WEFT_CHECK(check_file_path(file.path));
  if (earlier.empty()) return {};
  const std::string& last = earlier.back().path;
  if (file.path <= last) return broken("file \"{}\" after \"{}\": expected paths in order", file.path, last);
  return check_above(earlier, path_of_file, file.path, common_prefix(file.path, last));
}

// Checks that the directories are sorted and that each is empty.
Status check_directories(const Manifest& manifest) {
  const std::span<const File> files = published_files(manifest);
  const auto itself = [](const std::string& path) { return std::string_view(path); };
  std::string_view last;
  for (const std::string& path : manifest.directories) {
    WEFT_CHECK(check_file_path(path));
    if (path <= last) return broken("directory \"{}\" after \"{}\": expected paths in order", path, last);
    const std::size_t known = common_prefix(path, last);
    WEFT_CHECK(check_above(files, path_of_file, path, known));
    WEFT_CHECK(check_above(manifest.directories, itself, path, known));
    const auto equal = std::ranges::lower_bound(files, std::string_view(path), {}, path_of_file);
    if (equal != files.end() && equal->path == path) return broken("\"{}\" is a file and an empty directory", path);
    const std::string inside = path + '/';
    const auto below = std::ranges::lower_bound(files, std::string_view(inside), {}, path_of_file);
    if (below != files.end() && below->path.starts_with(inside))
      return broken("directory \"{}\": expected it empty, got \"{}\"", path, below->path);
    last = path;
  }
  return {};
}

// Checks the positions of tensors first, because graph_of() relies on them.
Status check_architecture(const Manifest& manifest) {
  const Architecture& architecture = manifest.architecture;
  std::size_t tensors = tensor_count(manifest);
  if (architecture.layers.empty() != architecture.family.empty()) return broken("an architecture without layers");
  if (architecture.layers.size() > limits::kArchLayersMax)
    return broken("expected at most {} layers, got {}", limits::kArchLayersMax, architecture.layers.size());
  std::vector<std::uint8_t> uses(tensors);
  for (const ArchLayer& layer : architecture.layers)
    for (const auto& [role, position] : layer.tensors) {
      if (position >= tensors)
        return broken("layer \"{}\": expected tensors below {}, got {}", printable(layer.name), tensors, position);
      if (++uses[position] > limits::kArchTensorUsesMax)
        return broken("expected at most {} layers to use a tensor, got more", limits::kArchTensorUsesMax);
    }
  if (Status status = check_graph(graph_of(manifest)); !status.ok())
    return broken("architecture: {}", status.error().message);
  return {};
}

// Checks all extents first, because tensors may lie in extents of any file.
Status check_contents(const Manifest& manifest) {
  for (const File& file : manifest.files)
    if (Status status = check_extents(file); !status.ok())
      return broken("file \"{}\": {}", file.path, status.error().message);
  for (const File& file : manifest.files)
    if (Status status = check_file(manifest, file); !status.ok())
      return broken("file \"{}\": {}", file.path, status.error().message);
  return {};
}

// Checks that record tables are sorted by path, and that each belongs to a published file.
Status check_tables(const Manifest& manifest) {
  std::string_view last;
  for (const File& table : files_of(manifest, FileRole::record_table)) {
    if (table.path <= last) return broken("record table of \"{}\": expected tables in order", printable(table.path));
    last = table.path;
    if (find_file(manifest, FileRole::published, last) == nullptr)
      return broken("record table of \"{}\": expected the table of a file", printable(last));
  }
  return {};
}

// Checks the roles of files, and which of them a model or a data set may have.
Status check_kind(const Manifest& manifest) {
  const auto roles = std::span(manifest.files);
  if (!std::ranges::is_sorted(roles, {}, &File::role) || (!roles.empty() && roles.back().role > FileRole::sums))
    return broken("expected files by their roles");
  const std::span<const File> bundles = files_of(manifest, FileRole::bundle);
  const std::span<const File> tables = files_of(manifest, FileRole::file_table);
  if (tables.size() > 1 || (tables.empty() && !bundles.empty())) return broken("expected one table of small files");
  const std::span<const File> sums = files_of(manifest, FileRole::sums);
  if (sums.size() > tables.size() || (!sums.empty() && sums.front().size % sizeof(Digest) != 0))
    return broken("expected a digest for each small file");
  for (const std::span<const File> unnamed : {bundles, tables, sums})
    if (!std::ranges::all_of(unnamed, [](const File& file) { return file.path.empty() && file.metadata.empty(); }))
      return broken("expected bundles, their table and their sums without a path");
  const bool dataset = manifest.kind == VersionKind::dataset;
  if (!dataset && published_files(manifest).size() != roles.size()) return broken("expected only files of a model");
  if (dataset && (tensor_count(manifest) != 0 || !manifest.architecture.layers.empty()))
    return broken("expected a data set without tensors");
  return check_tables(manifest);
}

}  // namespace

Status check_manifest(const Manifest& manifest) {
  const std::size_t entries = manifest.files.size() + manifest.directories.size();
  if (entries > limits::kFilesPerVersionMax)
    return broken("expected at most {} files and empty directories, got {}", limits::kFilesPerVersionMax, entries);
  WEFT_CHECK(check_kind(manifest));
  std::span<const File> files = manifest.files;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const File& file = files[i];
    if (file.role == FileRole::published) WEFT_CHECK(check_place(files.first(i), file));
    if (file.size > limits::kVersionBytesMax - total)
      return broken("expected files of at most {} bytes together, got more", limits::kVersionBytesMax);
    total += file.size;
  }
  WEFT_CHECK(check_directories(manifest));
  WEFT_CHECK(check_contents(manifest));
  return check_architecture(manifest);
}

}  // namespace weft
