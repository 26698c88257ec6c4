#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_format("flax_model.msgpack", data, size);
  return 0;
}
