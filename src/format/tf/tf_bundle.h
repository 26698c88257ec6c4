// Checkpoints of TensorFlow ("tensor bundles"): NAME.index and, beside it, NAME.data-00000-of-00001 or more such files.
// A SavedModel has one as variables/variables. Source: tensorflow/core/util/tensor_bundle and
// tensorflow/core/protobuf/tensor_bundle.proto.
#pragma once

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Returns the tensors that an index names. A name has dots for the slashes of its key. Errc::invalid: the file is no
// index. Errc::unsupported: weft cannot read it. `verify`: compares checksums; a fuzzer turns it off.
Result<Layout> read_tf_bundle(FormatInput& files, bool verify = true);

}  // namespace weft
