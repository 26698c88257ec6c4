#include "format/hdf5/keras.h"

#include "format/hdf5/hdf5.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "format/slice.h"

namespace weft {
namespace {

constexpr std::string_view kKerasWeights = "model.weights.h5";

}  // namespace

bool is_keras(const ZipDirectory& members) {
  return members.find(kKerasWeights) != nullptr;
}

Result<Layout> read_keras(ByteSource& archive, const ZipDirectory& members) {
  const ZipMember& weights = *members.find(kKerasWeights);
  if (!weights.stored) {
    Layout layout;
    layout.format = "keras";
    hide(layout, {weights.name, weights.data.length, "compressed", {}, {}});
    return layout;
  }
  SliceSource file(archive, weights.data);
  auto layout = read_hdf5(file);
  if (!layout.ok()) {
    if (!is_malformed(layout.error())) return layout;
    return unread_layout(layout.error());
  }
  layout->format = "keras";
  move_places(*layout, weights.data.offset);
  return layout;
}

}  // namespace weft
