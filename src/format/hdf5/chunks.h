// Chunks of HDF5's datasets, by the indexes that say where they are.
#pragma once

#include <cstdint>
#include <vector>

#include "format/hdf5/file.h"
#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

struct Hdf5Chunk {
  std::uint64_t number = 0;           // in C order of the grid of chunks
  Range bytes;                        // in the file
  std::uint32_t filters_skipped = 0;  // a bit for each filter of the dataset
};

// The chunks of a dataset. A chunk holds whole elements in C order, also beyond the end of the shape.
struct Hdf5Grid {
  Shape chunk;  // elements of a chunk, for each dimension; none is 0
  Shape count;  // chunks of the grid, for each dimension
  std::uint64_t total = 0;
  std::uint64_t chunk_bytes = 0;  // before filters

  // Errc::unsupported: the numbers contradict one another, or there are too many chunks.
  static Result<Hdf5Grid> of(const Shape& shape, Shape chunk, std::uint64_t element_bytes);
  Shape begin(std::uint64_t number) const;  // the first element of a chunk
  Borders borders() const;                  // each chunk lies within the file, so they fit into 64 bits
};

// Reads the index of a dataset. `layout` is the layout message of a chunked dataset.
struct Hdf5ChunkedLayout {
  Hdf5Fields layout;
  const Shape& shape;
  std::uint64_t element_bytes;
  bool filtered;
};
struct Hdf5Chunks {
  Hdf5Grid grid;
  std::vector<Hdf5Chunk> chunks;  // by number; each number at most once. Chunks that were never written are left out
};
Result<Hdf5Chunks> read_chunks(Hdf5File& file, const Hdf5ChunkedLayout& dataset);

// Appends a run of the main file. One that begins where the last one ends makes that one longer.
void append_run(std::vector<TensorPart>& runs, const Range& next);
// Returns the runs of chunks by their places; touching chunks are one.
std::vector<TensorPart> touching_runs(std::vector<Hdf5Chunk> chunks);

}  // namespace weft
