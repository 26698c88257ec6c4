// The input is the pickle of a file of PyTorch with two storages. The archive round it is as PyTorch writes it, because
// the target npz fuzzes archives.
#include <string>

#include "fuzzing.h"

namespace {

std::string number(std::uint64_t value, unsigned bytes) {
  std::string out(bytes, '\0');
  for (unsigned i = 0; i < bytes && i < sizeof value; ++i) out[i] = static_cast<char>(value >> (8U * i));
  return out;
}

class Writer {
 public:
  void add(const std::string& name, const std::string& bytes) {
    const std::string sizes = number(bytes.size(), 4) + number(bytes.size(), 4) + number(name.size(), 2);
    const std::string common = number(0, 12) + sizes + number(0, 2);  // flags, method, time and checksum are 0
    entries_ += "PK\1\2" + number(20, 2) + number(20, 2) + common + number(0, 10) + number(members_.size(), 4) + name;
    members_ += "PK\3\4" + number(20, 2) + common + name + bytes;
    ++count_;
  }
  std::string archive() const {
    return members_ + entries_ + "PK\5\6" + number(0, 4) + number(count_, 2) + number(count_, 2) +
           number(entries_.size(), 4) + number(members_.size(), 4) + number(0, 2);
  }

 private:
  std::string members_, entries_;
  unsigned count_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Writer writer;
  writer.add("m/data.pkl", std::string(reinterpret_cast<const char*>(data), size));
  writer.add("m/data/0", std::string(96, '0'));
  writer.add("m/data/1", std::string(8, '1'));
  const std::string archive = writer.archive();
  weft::fuzzing::fuzz_format("m.pt", reinterpret_cast<const std::uint8_t*>(archive.data()), archive.size(), true);
  return 0;
}
