// The input is an HDF5 file. It is read again without its checksums, which a fuzzer does not guess.
#include "format/hdf5/hdf5.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  fuzzing::fuzz_format("model.h5", data, size, true);
  fuzzing::Input input(data, size);
  const auto layout = read_hdf5(input, false);
  if (layout.ok())
    fuzzing::require_sound(*layout, size, true);
  else
    fuzzing::require_clear(layout.error(), "hdf5: ");
  return 0;
}
