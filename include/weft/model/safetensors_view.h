// The directory safetensors/MODEL/V (model/safetensors_view.cc): the published files of a version, with containers of
// safetensors in place of its weights in other formats. A pure, deterministic function of the manifest, which decides
// the numbering of nodes too (weft/model/tree.h).
//
// A file is *weights* if it is npz, PyTorch, pickle, ONNX, HDF5, Keras, Flax, a distributed checkpoint or a bundle of
// TensorFlow, and weft shows tensors of it. GGUF, npy and TFLite files are not weights here. The container of STEM.EXT
// is STEM.safetensors; of pytorch_model… it is model…; of a distributed checkpoint it is model.safetensors in its
// directory. The files that hold the bytes of its tensors leave the view with it. Weights for which a .safetensors file
// of that name is published, or shards of it, leave the view without a container. If the name is taken otherwise, the
// container is STEM.EXT.safetensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/model/manifest.h"

namespace weft {

// Which tensors of a checkpoint are the model: those of the subtree state_dict, model_state_dict or model_weights, or
// those of model or module if all other subtrees are known as state of a training, such as `optimizer`. A checkpoint
// without such a subtree is a model but for the subtrees of an optimizer. A file that holds state of a training alone
// counts as a whole. A flat state dict may have a layer `model` beside `lm_head`, so an unknown subtree counts as part
// of the model.
class ModelScope {
 public:
  // Of files whose tensors belong together.
  static ModelScope of(const Manifest& manifest, const std::vector<std::uint32_t>& files);

  bool has(std::string_view name) const;
  std::size_t prefix_bytes() const { return prefix_.size(); }  // that the names in the model lose at their beginning

 private:
  std::string prefix_;  // with a dot at the end; "" if the model is in no subtree
  bool all_ = false;    // with an optimizer, because there is nothing else
};

// A file of the view that is not published.
struct ViewFile {
  enum class Kind : std::uint8_t {
    container,  // of the tensors of `parts`, which are files of the manifest, ascending
    index,      // model.safetensors.index.json of `parts`, which are containers: indices into SafetensorsView::made
    left_out,   // left_out.txt: tensors and files that no container has
  };
  std::string path;  // in the view
  Kind kind = Kind::container;
  std::vector<std::uint32_t> parts = {};
};

struct SafetensorsView {
  std::vector<bool> shown;     // by published file: the view has the file itself
  std::vector<ViewFile> made;  // sorted by path, bytewise
  // Shown weights without a container, by file, with the reason. "" if it is that of each tensor.
  std::vector<std::pair<std::uint32_t, std::string>> kept = {};

  // True if a container stands for weights: the view differs from the published files by more than a text.
  bool replaces() const;
};

// The files of a data set are not in the view.
SafetensorsView plan_safetensors_view(const Manifest& manifest);

// A file or empty directory of the view.
struct ViewEntry {
  std::string_view path;
  enum class Kind : std::uint8_t { published, made, directory } kind = Kind::directory;
  std::uint32_t index = 0;  // into Manifest::files, or into SafetensorsView::made
};
// Returns them by path, bytewise. The result views both arguments.
std::vector<ViewEntry> view_entries(const Manifest& manifest, const SafetensorsView& view);

// A container: its header, then the stored bytes of its tensors in C order, one after the other.
struct ViewContainer {
  std::string header;
  std::vector<TensorRef> tensors;  // in the order of their bytes
  std::uint64_t size = 0;          // in bytes, with the header
};
// `made` is a container.
ViewContainer view_container(const Manifest& manifest, const ViewFile& made);

// Returns the text of a made file that is no container.
std::string render_view_text(const Manifest& manifest, const SafetensorsView& view, const ViewFile& made);

}  // namespace weft
