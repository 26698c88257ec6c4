// An .npy file of a tensor whose bytes lie here and there in published files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/content.h"
#include "weft/dtype.h"
#include "weft/vfs.h"

namespace weft {

// The tensor's memory is bytes of open files, one run after the other. Without strides its elements lie there in C
// order; else as FoundTensor (weft/format.h) says. Runs and strides fit the shape: a manifest was checked.
struct GatheredTensor {
  struct Run {
    std::uint64_t offset = 0;  // in the memory
    std::uint64_t length = 0;
    std::shared_ptr<OpenFile> file;
    std::uint64_t at = 0;  // in the file
  };

  void add(std::shared_ptr<OpenFile> file, Range range);

  std::string head;
  std::vector<Run> runs;
  Shape shape;
  Strides strides;
  std::uint64_t element_bytes = 1;
};

// The file `head` ‖ elements in C order.
std::shared_ptr<OpenFile> open_gathered(GatheredTensor tensor);

}  // namespace weft
