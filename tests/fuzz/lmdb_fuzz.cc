// Scans an LMDB file. Seeds are written by make_corpus.py.
#include "format/containers.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_container(weft::lmdb_container(), data, size);
  return 0;
}
