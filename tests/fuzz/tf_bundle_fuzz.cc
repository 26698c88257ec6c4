// The input is the index of a TensorFlow checkpoint with one or two files of 64 bytes beside it. It is read again
// without its checksums, which a fuzzer does not guess.
#include <array>
#include <string_view>

#include "format/tf/tf_bundle.h"
#include "fuzzing.h"
#include "weft/grid.h"

namespace {

using namespace weft;

constexpr std::array<std::uint8_t, 64> kData{};

class Group final : public FormatInput {
 public:
  Group(const std::uint8_t* data, std::size_t size) : main_(data, size), other_(kData.data(), kData.size()) {}
  std::string_view name() const override { return "m.index"; }
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override {
    fuzzing::require(path.starts_with("m.data-") && path.find('/') == path.npos, "data files lie beside the index");
    if (path != "m.data-00000-of-00001" && path != "m.data-00000-of-00002" && path != "m.data-00001-of-00002")
      return Error{Errc::not_found, "no such file"};
    return &other_;
  }

 private:
  fuzzing::Input main_, other_;
};

void require_inside(const Layout& layout, const TensorPart& part) {
  fuzzing::require(part.file > 0 && part.file <= layout.others.size() && part.length > 0 &&
                       part.offset <= kData.size() && part.length <= kData.size() - part.offset,
                   "parts lie in the data files");
}

void require_placed(const Layout& layout) {
  for (const FoundTensor& tensor : layout.tensors) {
    std::uint64_t bytes = 0;
    for (const TensorPart& part : tensor.parts) {
      require_inside(layout, part);
      bytes += part.length;
    }
    if (tensor.grid.empty()) continue;
    const auto grid = Grid::of(tensor.dtype, tensor.shape, tensor.grid);
    fuzzing::require(grid.ok() && grid->memory_bytes() == bytes, "parts are the memory of a grid");
  }
  for (const TensorPart& cut : layout.cuts) require_inside(layout, cut);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Group group(data, size);
  const auto layout = parse_file("place", group);
  fuzzing::require(layout.ok(), "no index is refused");
  require_placed(*layout);
  const auto unverified = read_tf_bundle(group, false);
  if (unverified.ok()) require_placed(*unverified);
  return 0;
}
