#include "weft/tree.h"

namespace weft {

std::string render_readme() {
  return "This is a weft mount: deep-learning models as files, for reading only. See weft(7).\n"
         "  models/MODEL/1 2 3 ...         its versions; latest and tags are links to them\n"
         "  models/MODEL/latest/           the published files, byte for byte; and beside them\n"
         "      info.json                  everything about the version (jq .message info.json)\n"
         "      tensors/NAME.npy           each tensor (numpy.load, mmap_mode=\"r\" too)\n"
         "      layers/A/B/C.npy           the same by layers, names split at their dots; layer.json sums a layer up\n"
         "      layers/A/B.safetensors     all tensors of the layer A.B\n"
         "      lineage/                   parents/, children/ (links), ancestors, descendants, log, graph.svg, diff/\n"
         "  .weft/status                   about this mount (JSON)\n"
         "Equal tensors are one inode (find -samefile); du -s of models tells what is stored, shared parts once.\n";
}

}  // namespace weft
