// An .npy file of a tensor whose bytes are scattered over published files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/grid.h"
#include "weft/programs/vfs.h"

namespace weft {

// The tensor's memory is a sequence of runs of open files. Without strides and grid the elements lie there in C order,
// else as FoundTensor (weft/model/format.h) defines. Runs, strides and grid fit the shape, because the manifest was
// checked.
struct GatheredTensor {
  struct Run {
    std::uint64_t offset = 0;  // in the tensor's memory
    std::uint64_t length = 0;
    std::shared_ptr<OpenFile> file;
    std::uint64_t at = 0;  // offset in `file`
  };

  void add(std::shared_ptr<OpenFile> file, Range range);

  std::string head;
  std::vector<Run> runs;
  Shape shape;
  Strides strides;
  std::optional<Grid> grid;  // of a memory of cells
  std::uint64_t element_bytes = 1;
};

// Opens the file `head` ‖ elements in C order. A read of a tensor with a grid reads contiguous ranges of its memory, in
// pieces of at most kBoxWindow bytes. It takes bounded memory.
std::shared_ptr<OpenFile> open_gathered(GatheredTensor tensor);

}  // namespace weft
