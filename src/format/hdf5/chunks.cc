#include "format/hdf5/chunks.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "format/hdf5/fixed_array.h"
#include "format/hdf5/tree1.h"
#include "format/hdf5/tree2.h"

namespace weft {
namespace {

constexpr std::uint64_t kRankMax = limits::kDimensionsMax + 1;  // the last dimension of a chunk is the element's bytes

// Numbers of the specification.
enum class Hdf5Index : std::uint8_t { one_chunk = 1, implicit, fixed_array, extensible_array, tree2 };

class Hdf5ChunkReader {
 public:
  Hdf5ChunkReader(Hdf5File& file, const Hdf5ChunkedLayout& dataset) : file_(file), dataset_(dataset) {}
  Result<Hdf5Chunks> read();

 private:
  Status read_old_layout(std::uint64_t version, Hdf5Fields layout);
  Status read_new_layout(Hdf5Fields layout);
  Status set_grid(Shape dimensions);
  Status read_index(Hdf5Index index, bool filtered_chunk, Hdf5Fields layout);
  Status read_one_chunk(bool filtered_chunk, Hdf5Fields layout);
  Status read_implicit(std::uint64_t first);
  Status read_old_tree(std::uint64_t root);
  Status read_new_tree(std::uint64_t header);
  Status add_record(Hdf5Fields record);
  // Returns the number of the chunk with these numbers along each dimension.
  Result<std::uint64_t> number_of(const Shape& along) const;
  Status add(std::uint64_t number, std::uint64_t at, std::uint64_t bytes, std::uint64_t filters_skipped);

  Hdf5File& file_;
  const Hdf5ChunkedLayout& dataset_;
  Hdf5Chunks found_;
};

Result<Hdf5Chunks> Hdf5ChunkReader::read() {
  Hdf5Fields layout = dataset_.layout;
  const std::uint64_t version = layout.number(1);
  WEFT_CHECK(version <= 3 ? read_old_layout(version, layout) : read_new_layout(layout));
  std::ranges::sort(found_.chunks, {}, &Hdf5Chunk::number);
  if (std::ranges::adjacent_find(found_.chunks, {}, &Hdf5Chunk::number) != found_.chunks.end())
    return hdf5_error("it has one of its chunks twice");
  return std::move(found_);
}

// Versions 1 to 3 have a B-tree of version 1.
Status Hdf5ChunkReader::read_old_layout(std::uint64_t version, Hdf5Fields layout) {
  layout.skip(version == 3 ? 1 : 0);  // class
  const std::uint64_t rank = layout.number(1);
  layout.skip(version == 3 ? 0 : 6);  // class, reserved bytes
  const std::uint64_t root = layout.address();
  if (rank > kRankMax)
    return hdf5_error(fmt::format("expected at most {} dimensions of a chunk, got {}", kRankMax, rank));
  Shape dimensions;
  for (std::uint64_t i = 0; i < rank; ++i) dimensions.push_back(layout.number(4));
  if (layout.ended()) return hdf5_error("its layout is shorter than its fields");
  WEFT_CHECK(set_grid(std::move(dimensions)));
  return root == kHdf5Undefined ? Status{} : read_old_tree(root);
}

Status Hdf5ChunkReader::read_new_layout(Hdf5Fields layout) {
  layout.skip(1);  // class
  const std::uint64_t flags = layout.number(1), rank = layout.number(1), width = layout.number(1);
  if (rank > kRankMax || width == 0 || width > 8)
    return hdf5_error(fmt::format("its layout has chunks of {} dimensions in {} bytes each", rank, width));
  Shape dimensions;
  for (std::uint64_t i = 0; i < rank; ++i) dimensions.push_back(layout.number(width));
  const auto index = static_cast<Hdf5Index>(layout.number(1));
  if (layout.ended()) return hdf5_error("its layout is shorter than its fields");
  WEFT_CHECK(set_grid(std::move(dimensions)));
  return read_index(index, (flags & 2U) != 0, layout);
}

Status Hdf5ChunkReader::set_grid(Shape dimensions) {
  if (dimensions.empty() || dimensions.back() != dataset_.element_bytes)
    return hdf5_error("its chunks have elements of another size");
  dimensions.pop_back();
  WEFT_TRY(found_.grid, Hdf5Grid::of(dataset_.shape, std::move(dimensions), dataset_.element_bytes));
  return {};
}

Status Hdf5ChunkReader::read_index(Hdf5Index index, bool filtered_chunk, Hdf5Fields layout) {
  switch (index) {
    case Hdf5Index::one_chunk:
      return read_one_chunk(filtered_chunk, layout);
    case Hdf5Index::implicit:
      return read_implicit(layout.address());
    case Hdf5Index::fixed_array:
      layout.skip(1);  // bits of a page
      return read_fixed_array(
          file_, layout.address(), found_.grid.total, found_.grid.chunk_bytes,
          [&](const Hdf5ArrayEntry& one) { return add(one.number, one.at, one.bytes, one.filters_skipped); });
    case Hdf5Index::tree2:
      layout.skip(6);  // sizes of nodes
      return read_new_tree(layout.address());
    case Hdf5Index::extensible_array:
      return hdf5_error("its chunks are in an extensible array, which weft does not read");
  }
  return hdf5_error("its chunks are in an index that weft does not know");
}

Status Hdf5ChunkReader::read_one_chunk(bool filtered_chunk, Hdf5Fields layout) {
  std::uint64_t bytes = found_.grid.chunk_bytes, skipped = 0;
  if (filtered_chunk) bytes = layout.length(), skipped = layout.number(4);
  const std::uint64_t at = layout.address();
  if (layout.ended() || found_.grid.total > 1) return hdf5_error("its layout has one chunk, and its shape more");
  return found_.grid.total == 0 ? Status{} : add(0, at, bytes, skipped);
}

Status Hdf5ChunkReader::read_implicit(std::uint64_t first) {
  if (first == kHdf5Undefined) return {};
  const Hdf5Grid& grid = found_.grid;
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(grid.total, grid.chunk_bytes, &all)) return hdf5_error("its chunks are past the end");
  WEFT_CHECK(file_.data(first, all));
  for (std::uint64_t i = 0; i < grid.total; ++i) WEFT_CHECK(add(i, first + i * grid.chunk_bytes, grid.chunk_bytes, 0));
  return {};
}

// A key has the bytes of the chunk, the filters that it skipped, and its first element; the last dimension is 0.
Status Hdf5ChunkReader::read_old_tree(std::uint64_t root) {
  const Shape& chunk = found_.grid.chunk;
  return read_tree1(file_, root, Hdf5Tree1Type::chunks, 8 + 8 * (chunk.size() + 1),
                    [&](Hdf5Fields key, std::uint64_t at) -> Status {
                      const std::uint64_t bytes = key.number(4), skipped = key.number(4);
                      Shape along;
                      for (const std::uint64_t elements : chunk) {
                        const std::uint64_t begin = key.number(8);
                        if (begin % elements != 0) return hdf5_error("one of its chunks begins within another");
                        along.push_back(begin / elements);
                      }
                      WEFT_TRY(const std::uint64_t number, number_of(along));
                      return add(number, at, bytes, skipped);
                    });
}

Status Hdf5ChunkReader::read_new_tree(std::uint64_t header) {
  if (header == kHdf5Undefined) return {};
  return read_tree2(file_, header, dataset_.filtered ? Hdf5Tree2Type::filtered_chunks : Hdf5Tree2Type::chunks,
                    [&](const Hdf5Fields& record) { return add_record(record); });
}

Status Hdf5ChunkReader::add_record(Hdf5Fields record) {
  std::uint64_t bytes = found_.grid.chunk_bytes, skipped = 0;
  const std::uint64_t at = record.address();
  const std::size_t along_bytes = 8 * found_.grid.chunk.size();
  if (dataset_.filtered) {
    const std::size_t fixed = 4 + along_bytes;
    if (record.remaining() <= fixed || record.remaining() > fixed + 8)
      return hdf5_error("the records of its chunks have another size");
    bytes = record.number(record.remaining() - fixed);
    skipped = record.number(4);
  }
  Shape along;
  for (std::size_t i = 0; i < found_.grid.chunk.size(); ++i) along.push_back(record.number(8));
  if (record.ended()) return hdf5_error("the records of its chunks are shorter than their fields");
  WEFT_TRY(const std::uint64_t number, number_of(along));
  return add(number, at, bytes, skipped);
}

Result<std::uint64_t> Hdf5ChunkReader::number_of(const Shape& along) const {
  const Shape& count = found_.grid.count;
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < along.size(); ++i) {
    if (along[i] >= count[i]) return hdf5_error("one of its chunks begins after its shape");
    number = number * count[i] + along[i];
  }
  return number;
}

Status Hdf5ChunkReader::add(std::uint64_t number, std::uint64_t at, std::uint64_t bytes,
                            std::uint64_t filters_skipped) {
  if (at == kHdf5Undefined) return {};  // never written
  if (bytes == 0 || (!dataset_.filtered && bytes != found_.grid.chunk_bytes))
    return hdf5_error(fmt::format("expected {} bytes of a chunk, got {}", found_.grid.chunk_bytes, bytes));
  WEFT_CHECK(file_.keep_chunks(1));
  if (found_.chunks.size() >= found_.grid.total) return hdf5_error("it has one of its chunks twice");
  WEFT_TRY(const Range place, file_.data(at, bytes));
  found_.chunks.push_back({number, place, static_cast<std::uint32_t>(filters_skipped)});
  return {};
}

}  // namespace

Result<Hdf5Grid> Hdf5Grid::of(const Shape& shape, Shape chunk, std::uint64_t element_bytes) {
  if (chunk.size() != shape.size())
    return hdf5_error(fmt::format("expected chunks of {} dimensions, got {}", shape.size(), chunk.size()));
  Hdf5Grid grid;
  grid.total = 1;
  grid.chunk_bytes = element_bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (chunk[i] == 0) return hdf5_error("its chunks have a dimension of 0");
    grid.count.push_back(shape[i] / chunk[i] + (shape[i] % chunk[i] != 0 ? 1 : 0));
    if (__builtin_mul_overflow(grid.chunk_bytes, chunk[i], &grid.chunk_bytes) ||
        __builtin_mul_overflow(grid.total, grid.count[i], &grid.total) || grid.total > limits::kHdf5ChunksMax)
      return hdf5_error(fmt::format("it has more than {} chunks", limits::kHdf5ChunksMax));
  }
  grid.chunk = std::move(chunk);
  return grid;
}

Shape Hdf5Grid::begin(std::uint64_t number) const {
  Shape begin(chunk.size());
  for (std::size_t i = chunk.size(); i-- > 0; number /= count[i]) begin[i] = number % count[i] * chunk[i];
  return begin;
}

Borders Hdf5Grid::borders() const {
  Borders borders;
  for (std::size_t i = 0; i < chunk.size(); ++i)
    for (std::uint64_t k = 0; k <= count[i]; ++k) borders.push_back(k * chunk[i]);
  return borders;
}

Result<Hdf5Chunks> read_chunks(Hdf5File& file, const Hdf5ChunkedLayout& dataset) {
  return Hdf5ChunkReader(file, dataset).read();
}

std::vector<TensorPart> touching_runs(std::vector<Hdf5Chunk> chunks) {
  std::ranges::sort(chunks, {}, &Hdf5Chunk::bytes);
  std::vector<TensorPart> runs;
  for (const Hdf5Chunk& chunk : chunks) append_run(runs, chunk.bytes);
  return runs;
}

void append_run(std::vector<TensorPart>& runs, const Range& next) {
  if (!runs.empty() && runs.back().offset + runs.back().length == next.offset)
    runs.back().length += next.length;
  else
    runs.push_back({0, next.offset, next.length});
}

}  // namespace weft
