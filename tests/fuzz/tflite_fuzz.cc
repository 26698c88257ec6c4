#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_format("model.tflite", data, size, true);
  return 0;
}
