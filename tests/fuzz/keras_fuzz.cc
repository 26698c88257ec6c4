// The input is the HDF5 file in a .keras file. The archive round it is as Keras writes it, because the target npz
// fuzzes archives. The target hdf5 reads without checksums.
#include <string>

#include "archive_writer.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  fuzzing::ArchiveWriter writer;
  writer.add("config.json", "{}");
  const std::uint64_t begin = writer.next_data("model.weights.h5");
  writer.add("model.weights.h5", std::string(reinterpret_cast<const char*>(data), size));
  writer.add("metadata.json", std::string(4096, ' '));  // of other bytes, which no tensor may have
  const std::string archive = writer.archive();
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(archive.data());
  fuzzing::fuzz_format("m.keras", bytes, archive.size(), true);

  fuzzing::Input input(bytes, archive.size());
  const auto layout = parse_file("place", "m.keras", input);
  fuzzing::require(layout.ok(), "no .keras file is refused");
  for (const FoundTensor& tensor : layout->tensors)
    for (const TensorPart& part : tensor.parts)
      fuzzing::require(part.offset >= begin && part.offset + part.length <= begin + size,
                       "tensors lie in the member with the weights");
  return 0;
}
