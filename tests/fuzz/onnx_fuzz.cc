// The input is a model of ONNX. The file "d" of 64 bytes lies beside it, and is the external data of some seeds.
#include <array>
#include <string>

#include "fuzzing.h"

namespace {

using namespace weft;

constexpr std::array<std::uint8_t, 64> kOther{};

class Group final : public FormatInput {
 public:
  Group(const std::uint8_t* data, std::size_t size) : main_(data, size), other_(kOther.data(), kOther.size()) {}
  std::string_view name() const override { return "m.onnx"; }
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override {
    const std::string components = "/" + std::string(path) + "/";
    fuzzing::require(components.find("/../") == components.npos && components.find("//") == components.npos,
                     "paths stay below the directory");
    if (path != "d") return Error{Errc::not_found, "no such file"};
    return &other_;
  }

 private:
  fuzzing::Input main_, other_;
};

void require_inside(const TensorPart& part, std::uint64_t main_size) {
  const std::uint64_t size = part.file == 0 ? main_size : kOther.size();
  fuzzing::require(part.file <= 1 && part.offset <= size && part.length <= size - part.offset,
                   "parts lie in their files");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzzing::fuzz_format("m.onnx", data, size);
  Group group(data, size);
  const auto layout = parse_file("place", group);
  fuzzing::require(layout.ok(), "no model is refused");
  for (const FoundTensor& tensor : layout->tensors)
    for (const TensorPart& part : tensor.parts) require_inside(part, size);
  for (const TensorPart& cut : layout->cuts) require_inside(cut, size);
  return 0;
}
