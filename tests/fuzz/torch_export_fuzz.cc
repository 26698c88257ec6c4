// The input is the JSON text of a file of torch.export with two weights. The archive round it is as PyTorch writes it,
// because the target npz fuzzes archives.
#include "archive_writer.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::ArchiveWriter writer;
  writer.add("m/data/weights/weight_0", std::string(96, '0'));
  writer.add("m/data/weights/weight_1", std::string(8, '1'));
  writer.add("m/data/weights/model_weights_config.json", std::string(reinterpret_cast<const char*>(data), size));
  const std::string archive = writer.archive();
  weft::fuzzing::fuzz_format("m.pt2", reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size(), true);
  return 0;
}
