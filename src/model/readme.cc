#include "weft/tree.h"

namespace weft {

std::string render_readme() {
  return "This is a weft mount: deep-learning models as ordinary files, for reading only.\n"
         "The first part of a path says what you see of a model. The rest is the same everywhere.\n"
         "\n"
         "  models/MODEL/1/      the published files, byte for byte. latest and tags are links to versions\n"
         "  layers/MODEL/1/      the model as a tree of layers: A/B/weight.npy, layer.json, and A/B.safetensors,\n"
         "                       which holds all tensors below the layer A.B\n"
         "  tensors/MODEL/1/     the same tensors, flat, by full name: A.B.weight.npy\n"
         "  lineage/MODEL/1/     info.json, log, ancestors, descendants, parents/, children/, diff/, graph.svg\n"
         "  lineage/MODEL/versions.tsv   all versions of the model\n"
         "  hub/                 the models by their Hugging Face names (HF_HUB_CACHE=MOUNT/hub HF_HUB_OFFLINE=1)\n"
         "  .weft/status         about this mount, as JSON\n"
         "\n"
         "Try:\n"
         "  ls models/*\n"
         "  ls layers/MODEL/latest\n"
         "  cat lineage/MODEL/latest/log\n"
         "\n"
         "weft(7) has the details.\n";
}

}  // namespace weft
