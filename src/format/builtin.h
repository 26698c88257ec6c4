// The built-in formats. Each is stateless and lives as long as the process; formats.cc lists them.
#pragma once

#include "weft/model/format.h"

namespace weft {

const Format& safetensors_format();
const Format& gguf_format();
const Format& npy_format();
const Format& dcp_format();
const Format& archive_format();
const Format& onnx_format();
const Format& hdf5_format();
const Format& torch_legacy_format();
const Format& tf_bundle_format();
const Format& tflite_format();
const Format& flax_format();

}  // namespace weft
