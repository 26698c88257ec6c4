#include "vfs/datasets.h"

namespace weft {

Subtree* Datasets::owner_of(const TreeVersion& version, Ino ino) {
  const std::uint64_t number = ino - version.local.ino_base;
  switch (version.dataset->numbers.area_of(number)) {
    case DatasetArea::none:
      break;
    case DatasetArea::tree: {
      const bool is_file = version.tree->node(static_cast<std::uint32_t>(number)).kind == NodeKind::file;
      return is_file ? static_cast<Subtree*>(&versions_) : &published_;
    }
    case DatasetArea::records:
      return &records_;
    case DatasetArea::small:
      return &published_;
    case DatasetArea::container:
      return &containers_;
  }
  return nullptr;
}

}  // namespace weft
