// Scans a tar. Seeds are written by make_corpus.py.
#include "format/containers.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_container(weft::tar_container(), data, size);
  return 0;
}
