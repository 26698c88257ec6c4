#include "reading/gathered_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "testing.h"

namespace weft::testing {
namespace {

// A file that counts its reads.
class CountedFile final : public OpenFile {
 public:
  explicit CountedFile(std::string text) : text_(std::move(text)) {}
  std::uint64_t size() const override { return text_.size(); }
  int backing_fd() const override { return -1; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    ++reads;
    const std::string part = text_.substr(std::min<std::uint64_t>(offset, text_.size()), out.size());
    std::memcpy(out.data(), part.data(), part.size());
    return part.size();
  }
  int reads = 0;

 private:
  const std::string text_;
};

// A tensor of 3 x 5 letters in four cells of 2 x 3, with the head "HEAD". The other letters are padding.
std::shared_ptr<OpenFile> letters(const std::shared_ptr<CountedFile>& file) {
  GatheredTensor tensor;
  tensor.head = "HEAD";
  tensor.shape = {3, 5};
  tensor.grid = must(Grid::of(DType::u8, tensor.shape, Borders{0, 2, 4, 0, 3, 6}));
  for (const std::uint64_t offset : {1, 8, 20, 14}) tensor.add(file, {offset, 6});
  return open_gathered(std::move(tensor));
}

const std::string kBoxes = "_abcfgh_de#ij#no####klm###";
const std::string kWhole = "HEADabcdefghijklmno";

TEST_CASE("a tensor in boxes reads as its elements in C order") {
  const auto file = std::make_shared<CountedFile>(kBoxes);
  const auto opened = letters(file);
  REQUIRE(opened->size() == kWhole.size());
  for (std::size_t offset = 0; offset <= kWhole.size(); ++offset)
    for (std::size_t count = 0; count <= kWhole.size(); ++count) {
      std::string got(count, '?');
      const std::size_t length = must(opened->read(offset, std::as_writable_bytes(std::span(got))));
      CHECK(got.substr(0, length) == kWhole.substr(offset, count));
    }
}

TEST_CASE("a read of a tensor in boxes reads each box once") {
  const auto file = std::make_shared<CountedFile>(kBoxes);
  std::string got(kWhole.size(), '?');
  must(letters(file)->read(0, std::as_writable_bytes(std::span(got))));
  CHECK(got == kWhole);
  CHECK(file->reads == 4);
}

TEST_CASE("boxes that touch in their order are one read of their file") {
  const auto file = std::make_shared<CountedFile>("_abcfghde#ij#klm###no####");
  GatheredTensor tensor;
  tensor.shape = {3, 5};
  tensor.grid = must(Grid::of(DType::u8, tensor.shape, Borders{0, 2, 4, 0, 3, 6}));
  tensor.add(file, {1, 24});
  std::string got(15, '?');
  must(open_gathered(std::move(tensor))->read(0, std::as_writable_bytes(std::span(got))));
  CHECK(got == "abcdefghijklmno");
  CHECK(file->reads == 1);
}

TEST_CASE("a file that ends before its box is an error") {
  const auto file = std::make_shared<CountedFile>(kBoxes.substr(0, 16));
  std::string got(kWhole.size(), '?');
  CHECK(letters(file)->read(0, std::as_writable_bytes(std::span(got))).error().code == Errc::io);
}

}  // namespace
}  // namespace weft::testing
