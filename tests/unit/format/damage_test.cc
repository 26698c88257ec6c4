// Files of real writers, damaged at random. WEFT_TEST_FILES names a directory of such files
// (tests/frameworks/test_damage.py); without it the files are those of the builders.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "random_runs.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Whole {
  std::string name;
  std::string bytes;
};

std::vector<Whole> whole_files() {
  const char* directory = std::getenv("WEFT_TEST_FILES");
  if (directory == nullptr) {
    const std::string w = p_tensor(p_storage("0"), 0, {4, 6}, {6, 1});
    return {{"m.pt", torch_archive(p_dict({{"a", w}, {"b", p_tensor(p_storage("1"), 0, {2}, {1})}}))},
            {"m.npz", zip_file({{"w.npy", npy_raw(npy_dict("'<f4'", "(2, 3)"), std::string(24, 'x'))}})}};
  }
  std::vector<Whole> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.push_back({entry.path().filename(), read_text(entry.path())});
  std::ranges::sort(files, {}, &Whole::name);
  return files;
}

bool lies_in(const TensorPart& part, std::string_view bytes) {
  return part.offset <= bytes.size() && part.length <= bytes.size() - part.offset;
}

class DamageRun {
 public:
  explicit DamageRun(std::uint64_t seed) : random_(seed) { REQUIRE_FALSE(files_.empty()); }

  // A damaged file is kept, or has the tensors that its bytes describe; no place of them leaves the file.
  void step() {
    const Whole& whole = files_[below(files_.size())];
    CAPTURE(whole.name);
    std::string bytes = whole.bytes;
    for (std::uint64_t count = 1 + below(3); count-- > 0;) damage(bytes);
    MemorySource source(bytes);
    const auto layout = parse_file("place", whole.name, source);
    if (!layout.ok()) {
      CHECK(layout.error().code == Errc::invalid);
      CHECK(layout.error().message.find('\n') == std::string::npos);
      return;
    }
    for (const FoundTensor& tensor : layout->tensors)
      for (const TensorPart& part : tensor.parts) CHECK(lies_in(part, bytes));
    for (const TensorPart& cut : layout->cuts) CHECK(lies_in(cut, bytes));
    read_ += layout->tensors.empty() ? 0 : 1;
  }
  void finish() { MESSAGE("damaged files with tensors: ", read_); }

 private:
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }

  // Half of the damages are near an end of the file, where headers and directories are.
  std::uint64_t place(const std::string& bytes) {
    constexpr std::uint64_t kEnd = 4096;
    if (below(2) == 0) return below(bytes.size());
    const std::uint64_t near = below(std::min<std::uint64_t>(kEnd, bytes.size()));
    return below(2) == 0 || bytes.empty() ? near : bytes.size() - 1 - near;
  }

  void damage(std::string& bytes) {
    if (bytes.empty()) return;
    const std::uint64_t at = place(bytes), length = std::min<std::uint64_t>(1 + below(64), bytes.size() - at);
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1U << below(8)));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      default:
        for (std::uint64_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(below(2) == 0 ? 0 : 0xff);
    }
  }

  std::mt19937_64 random_;
  const std::vector<Whole> files_ = whole_files();
  std::uint64_t read_ = 0;
};

}  // namespace

TEST_CASE("damaged files are read or kept, and no place leaves the file") {
  run_rounds<DamageRun>(200);
}

namespace {

void check_read_or_kept(const Whole& whole, std::string_view bytes) {
  MemorySource source(bytes);
  const auto layout = parse_file("place", whole.name, source);
  if (!layout.ok()) {
    CHECK(layout.error().code == Errc::invalid);
    return;
  }
  for (const FoundTensor& tensor : layout->tensors)
    for (const TensorPart& part : tensor.parts) CHECK(lies_in(part, bytes));
}

// Returns the places within `end` bytes of either end of a file.
std::vector<std::size_t> ends_of(std::size_t size, std::size_t end) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < size; ++at)
    if (at < end || size - at <= end) places.push_back(at);
  return places;
}

}  // namespace

TEST_CASE("files that are cut or changed within 4 KiB of either end are read or kept") {
  constexpr std::size_t kEnd = 4096;
  for (const Whole& whole : whole_files()) {
    CAPTURE(whole.name);
    std::string bytes = whole.bytes;
    for (const std::size_t at : ends_of(bytes.size(), kEnd)) {
      check_read_or_kept(whole, std::string_view(bytes).substr(0, at));
      bytes[at] = static_cast<char>(~bytes[at]);
      check_read_or_kept(whole, bytes);
      bytes[at] = whole.bytes[at];
    }
  }
}
