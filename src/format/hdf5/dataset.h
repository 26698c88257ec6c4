// Datasets of HDF5: type, shape, and the places of the elements.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/hdf5/attributes.h"
#include "format/hdf5/chunks.h"
#include "format/hdf5/file.h"
#include "format/hdf5/header.h"
#include "format/hdf5/types.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// A dataset without its name.
struct Hdf5Dataset {
  FoundTensor tensor;            // if hidden.why is empty
  HiddenTensor hidden;           // else
  std::vector<TensorPart> cuts;  // of a hidden dataset
};

// Reads the datasets of one file.
class Hdf5Datasets {
 public:
  explicit Hdf5Datasets(Hdf5File& file) : file_(file), attributes_(file) {}

  // Returns the dataset of an object header with a layout. One that weft cannot show, or that is broken, is hidden.
  // Errors come from the source.
  Result<Hdf5Dataset> read(const Hdf5Header& header);

  // Types that are objects of their own, which datasets share. A header is read once: by a dataset, or through the
  // group that names it.
  void remember_type(std::uint64_t at, const Hdf5Header& header);
  bool knows_type(std::uint64_t at) const { return types_.contains(at); }

 private:
  Status describe(const Hdf5Header& header, Hdf5Dataset& dataset);
  Result<Hdf5Type> type_of(const Hdf5Header& header);
  Result<Hdf5Type> shared_type(const Hdf5Message& message);
  Result<Hdf5Type> type_in(const Hdf5Header& header) const;
  Status place(const Hdf5Header& header, const Hdf5Message& layout, Hdf5Dataset& dataset);
  Status place_run(std::uint64_t at, std::uint64_t length, Hdf5Dataset& dataset);
  Status place_chunks(const Hdf5Header& header, const Hdf5Message& layout, Hdf5Dataset& dataset);
  Status place_tiles(Hdf5Chunks found, Hdf5Dataset& dataset);
  // Makes a tensor of these bytes, or hides them if weft lacks their type.
  Status show(std::vector<TensorPart> parts, Hdf5Dataset& dataset);

  Hdf5File& file_;
  Hdf5Attributes attributes_;
  std::unordered_map<std::uint64_t, Hdf5Type> types_;
  Hdf5Type type_;  // of the dataset that is being read
  Shape shape_;
  std::uint64_t bytes_ = 0;  // of all its elements
};

}  // namespace weft
