// The input is the pickle of a file of PyTorch with two storages. The archive round it is as PyTorch writes it, because
// the target npz fuzzes archives.
#include "archive_writer.h"
#include "fuzzing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::ArchiveWriter writer;
  writer.add("m/data.pkl", std::string(reinterpret_cast<const char*>(data), size));
  writer.add("m/data/0", std::string(96, '0'));
  writer.add("m/data/1", std::string(8, '1'));
  const std::string archive = writer.archive();
  weft::fuzzing::fuzz_format("m.pt", reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size(), true);
  return 0;
}
