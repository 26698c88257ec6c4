#include "weft/model/tree.h"

namespace weft {

std::string render_readme() {
  return "This is a weft mount: deep-learning models as read-only files. The manual is weft(7).\n"
         "The first part of a path selects a view. VERSION is a number, a tag or latest.\n"
         "\n"
         "  models/MODEL/VERSION/       exactly the published files\n"
         "  layers/MODEL/VERSION/       the tensors as a tree of layers: A/B/weight.npy, layer.json, A/B.safetensors\n"
         "  tensors/MODEL/VERSION/      the same tensors in one directory: A.B.weight.npy\n"
         "  safetensors/MODEL/VERSION/  the published files, with the weights of other formats as safetensors\n"
         "  datasets/NAME/VERSION/      exactly the published files of a data set\n"
         "  records/NAME/VERSION/       the records of its tar and LMDB files: FILE/files/, FILE/index.npy\n"
         "  lineage/MODEL/VERSION/      info.json, log, ancestors, descendants, parents/, children/, diff/, graph.svg\n"
         "  lineage/MODEL/versions.tsv  a table of the versions of the model\n"
         "  hub/                        the models in the layout of the Hugging Face cache (HF_HUB_CACHE=MOUNT/hub)\n"
         "  .weft/status                the state of this mount (JSON)\n"
         "  .weft/events                what is published, tagged and removed from now on (JSON lines)\n"
         "\n"
         "Try:\n"
         "  find models -name latest\n"
         "  ls layers/MODEL/latest\n"
         "  cat lineage/MODEL/versions.tsv\n";
}

}  // namespace weft
