#include "format/hdf5/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/limits.h"
#include "format/boxes.h"
#include "format/parse_errors.h"

namespace weft {
namespace {

constexpr std::string_view kNeverWritten = "never written: its elements are the fill value";

// Numbers of the specification.
enum class Hdf5Layout : std::uint8_t { compact, contiguous, chunked, virtual_data };

struct Hdf5Filters {
  std::uint64_t count = 0;
  bool compress = false;
};

Result<Hdf5Filters> read_filters(const Hdf5Message* message, Hdf5Fields fields) {
  constexpr std::uint64_t kShuffle = 2, kChecksum = 3, kFiltersMax = 32, kNameless = 256;
  Hdf5Filters filters;
  if (message == nullptr) return filters;
  if (message->shared) return hdf5_error("its filters are in a shared message");
  const std::uint64_t version = fields.number(1);
  filters.count = fields.number(1);
  if (filters.count > kFiltersMax)
    return hdf5_error(fmt::format("expected at most {} filters, got {}", kFiltersMax, filters.count));
  const bool old = version == 1;
  fields.skip(old ? 6 : 0);
  for (std::uint64_t i = 0; i < filters.count; ++i) {
    const std::uint64_t id = fields.number(2), name = old || id >= kNameless ? fields.number(2) : 0;
    fields.skip(2);  // flags
    const std::uint64_t values = fields.number(2);
    fields.skip(old ? (name + 7) / 8 * 8 : name);
    fields.skip(4 * values + (old && values % 2 != 0 ? 4 : 0));
    filters.compress = filters.compress || (id != kShuffle && id != kChecksum);
  }
  if (fields.ended()) return hdf5_error("its filters are longer than their message");
  return filters;
}

// True if each chunk is a run of the elements in C order: behind the first dimension that a chunk has more than one
// element of, it has all elements.
bool chunks_are_rows(const Hdf5Grid& grid, const Shape& shape) {
  std::size_t i = 0;
  while (i < shape.size() && grid.chunk[i] == 1) ++i;
  for (++i; i < shape.size(); ++i)
    if (grid.chunk[i] != shape[i]) return false;
  return true;
}

// Returns the bytes of a chunk of rows that lie within the shape.
std::uint64_t row_chunk_bytes(const Hdf5Chunks& found, const Shape& shape, std::uint64_t number) {
  const Shape begin = found.grid.begin(number);
  std::uint64_t bytes = found.grid.chunk_bytes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    bytes = bytes / found.grid.chunk[i] * std::min(found.grid.chunk[i], shape[i] - begin[i]);
  return bytes;
}

Status hide_dataset(Hdf5Dataset& dataset, std::string_view why, std::vector<TensorPart> cuts = {}) {
  dataset.hidden.why = why;
  for (const TensorPart& cut : cuts) dataset.hidden.bytes += cut.length;
  dataset.cuts = std::move(cuts);
  return {};
}

}  // namespace

Result<Hdf5Dataset> Hdf5Datasets::read(const Hdf5Header& header) {
  Hdf5Dataset dataset;
  if (Status described = describe(header, dataset); !described.ok()) {
    if (!is_malformed(described.error())) return std::move(described).error();
    hide_dataset(dataset, described.error().message).value();
  }
  return dataset;
}

Status Hdf5Datasets::describe(const Hdf5Header& header, Hdf5Dataset& dataset) {
  WEFT_TRY(type_, type_of(header));
  const Hdf5Message* space = header.find(Hdf5MessageType::dataspace);
  if (space == nullptr || space->shared) return hdf5_error("it has no dataspace of its own");
  WEFT_TRY(auto shape, read_hdf5_shape(file_.fields(space->body)));
  if (!shape) return hide_dataset(dataset, "it has no elements and no shape");
  shape_ = *std::move(shape);
  const auto count = element_count(shape_);
  if (!count || __builtin_mul_overflow(*count, type_.bytes, &bytes_) || bytes_ > limits::kVersionBytesMax)
    return hdf5_error(fmt::format("its shape {} is too large", shape_text(shape_)));
  if (type_.dtype) dataset.hidden.dtype = type_.dtype, dataset.hidden.shape = shape_;
  if (header.find(Hdf5MessageType::external_files) != nullptr)
    return hide_dataset(dataset, "its elements are in external files");
  return place(header, *header.find(Hdf5MessageType::layout), dataset);
}

Status Hdf5Datasets::place(const Hdf5Header& header, const Hdf5Message& layout, Hdf5Dataset& dataset) {
  Hdf5Fields fields = file_.fields(layout.body);
  const std::uint64_t version = fields.number(1), second = fields.number(1);
  if (version == 0 || version > 5)
    return hdf5_error(fmt::format("its layout: expected a version from 1 to 5, got {}", version));
  const bool old = version < 3;  // with a rank before the class
  const auto kind = static_cast<Hdf5Layout>(old ? fields.number(1) : second);
  fields.skip(old ? 5 : 0);
  std::uint64_t at = kHdf5Undefined, length = bytes_;
  switch (kind) {
    case Hdf5Layout::chunked:
      return place_chunks(header, layout, dataset);
    case Hdf5Layout::virtual_data:
      return hide_dataset(dataset, "its elements are in other datasets (virtual)");
    case Hdf5Layout::contiguous:
      at = fields.address();
      if (!old) length = fields.length();
      break;
    case Hdf5Layout::compact:
      fields.skip(old ? 4 * second : 0);
      length = fields.number(old ? 4 : 2);
      at = layout.address + fields.position();
      fields.skip(length);
      break;
    default:
      return hdf5_error("its layout is of an unknown class");
  }
  return fields.ended() ? hdf5_error("its layout is shorter than its fields") : place_run(at, length, dataset);
}

Status Hdf5Datasets::place_run(std::uint64_t at, std::uint64_t length, Hdf5Dataset& dataset) {
  std::vector<TensorPart> run;
  if (bytes_ > 0) {
    if (at == kHdf5Undefined) return hide_dataset(dataset, kNeverWritten);
    WEFT_TRY(const Range all, file_.data(at, length));
    if (length < bytes_)
      return hdf5_error(fmt::format("expected {} bytes for its shape {}, got {}", bytes_, shape_text(shape_), length));
    run.push_back({0, all.offset, bytes_});
  }
  return show(std::move(run), dataset);
}

Status Hdf5Datasets::place_chunks(const Hdf5Header& header, const Hdf5Message& layout, Hdf5Dataset& dataset) {
  const Hdf5Message* message = header.find(Hdf5MessageType::filters);
  WEFT_TRY(const Hdf5Filters filters,
           read_filters(message, file_.fields(message != nullptr ? message->body : layout.body)));
  WEFT_TRY(Hdf5Chunks found, read_chunks(file_, {file_.fields(layout.body), shape_, type_.bytes, filters.count > 0}));
  const std::uint64_t all_filters = (1ULL << filters.count) - 1;
  const auto plain = [&](const Hdf5Chunk& one) {
    return filters.count == 0 || (one.filters_skipped == all_filters && one.bytes.length == found.grid.chunk_bytes);
  };
  if (!std::ranges::all_of(found.chunks, plain))
    return hide_dataset(dataset, filters.compress ? "compressed" : "filtered", touching_runs(std::move(found.chunks)));
  if (found.chunks.size() < found.grid.total) {
    const std::string_view why =
        found.chunks.empty() ? kNeverWritten : "some chunks were never written: the fill value";
    return hide_dataset(dataset, why, touching_runs(std::move(found.chunks)));
  }
  if (!found.chunks.empty() && !chunks_are_rows(found.grid, shape_)) return place_tiles(std::move(found), dataset);
  std::vector<TensorPart> rows;
  for (const Hdf5Chunk& chunk : found.chunks)
    append_run(rows, {chunk.bytes.offset, row_chunk_bytes(found, shape_, chunk.number)});
  return show(std::move(rows), dataset);
}

// A chunk is a box of the tensor, with its padding. The dict of numpy describes no boxes.
Status Hdf5Datasets::place_tiles(Hdf5Chunks found, Hdf5Dataset& dataset) {
  if (!type_.dtype) return hide_dataset(dataset, type_.why, touching_runs(std::move(found.chunks)));
  if (type_.big_endian) return hide_dataset(dataset, "big-endian, in tiles", touching_runs(std::move(found.chunks)));
  FoundTensor& tensor = dataset.tensor;
  tensor.dtype = *type_.dtype;
  tensor.shape = shape_;
  std::vector<TensorPart> cells;
  cells.reserve(found.chunks.size());
  for (const Hdf5Chunk& chunk : found.chunks) cells.push_back({0, chunk.bytes.offset, 0});
  if (Status placed = place_cells(tensor, found.grid.borders(), std::move(cells)); !placed.ok())
    return hide_dataset(dataset, placed.error().message, touching_runs(std::move(found.chunks)));
  return {};
}

// numpy describes numbers in the other byte order. It does not know all types of weft.
Status Hdf5Datasets::show(std::vector<TensorPart> parts, Hdf5Dataset& dataset) {
  if (!type_.dtype) return hide_dataset(dataset, type_.why, std::move(parts));
  FoundTensor& tensor = dataset.tensor;
  tensor.dtype = *type_.dtype;
  if (type_.big_endian) {
    const std::string_view little = dtype_info(tensor.dtype)->npy_descr;
    if (!little.starts_with('<'))
      return hide_dataset(dataset, "big-endian, of a type that numpy lacks", std::move(parts));
    tensor.dtype = DType::npy_other;
    tensor.descr = npy_dict_text(fmt::format(">{}", little.substr(1)), shape_);
  }
  tensor.shape = shape_;
  tensor.parts = std::move(parts);
  return {};
}

Result<Hdf5Type> Hdf5Datasets::type_of(const Hdf5Header& header) {
  const Hdf5Message* message = header.find(Hdf5MessageType::datatype);
  if (message == nullptr) return hdf5_error("it has no datatype");
  if (message->shared) return shared_type(*message);
  WEFT_TRY(Hdf5Type type, type_in(header));
  if (!type.opaque) return type;
  WEFT_TRY(const auto name, attributes_.text(header, "dtype"));
  if (name) type.dtype = named_hdf5_type(*name, type.bytes);
  return type;
}

Result<Hdf5Type> Hdf5Datasets::type_in(const Hdf5Header& header) const {
  const Hdf5Message* message = header.find(Hdf5MessageType::datatype);
  if (message == nullptr || message->shared) return hdf5_error("its datatype is in no message of its own");
  return read_hdf5_type(file_.fields(message->body));
}

Result<Hdf5Type> Hdf5Datasets::shared_type(const Hdf5Message& message) {
  constexpr std::uint64_t kInHeap = 1;
  Hdf5Fields fields = file_.fields(message.body);
  const std::uint64_t version = fields.number(1), kind = fields.number(1);
  if (version == 3 && kind == kInHeap) return hdf5_error("its datatype is in a heap of shared messages");
  fields.skip(version == 1 ? 6 : 0);
  const std::uint64_t at = fields.address();
  if (fields.ended()) return hdf5_short("shared message", message.address);
  if (const auto known = types_.find(at); known != types_.end()) return known->second;
  WEFT_TRY(const Hdf5Header header, Hdf5Header::read(file_, at));
  remember_type(at, header);
  return type_in(header);
}

void Hdf5Datasets::remember_type(std::uint64_t at, const Hdf5Header& header) {
  if (const auto type = type_in(header); type.ok()) types_.emplace(at, *type);
}

}  // namespace weft
