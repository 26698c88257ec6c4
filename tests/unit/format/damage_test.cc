// Files of real writers, damaged at random. WEFT_TEST_FILES names a directory of such files
// (tests/frameworks/test_damage.py); without it the files are those of the builders.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>

#include "memory_group.h"
#include "random_runs.h"
#include "tflite_files.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Files = std::map<std::string, std::string>;  // by name

Files whole_files() {
  const char* directory = std::getenv("WEFT_TEST_FILES");
  if (directory == nullptr) {
    const std::string w = p_tensor(p_storage("0"), 0, {4, 6}, {6, 1});
    return {{"m.pt", torch_archive(p_dict({{"a", w}, {"b", p_tensor(p_storage("1"), 0, {2}, {1})}}))},
            {"m.npz", zip_file({{"w.npy", npy_raw(npy_dict("'<f4'", "(2, 3)"), std::string(24, 'x'))}})},
            {"m.tflite", tflite_file({{{"w", 0, {2, 3}, 1}}}, {"", std::string(24, 'x')})}};
  }
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.emplace(entry.path().filename(), read_text(entry.path()));
  return files;
}

// Returns the file that names the tensors in this one.
std::string main_of(const std::string& name) {
  if (name.ends_with(kCheckpointShardSuffix)) return std::string(kCheckpointMetadata);
  if (const std::size_t at = name.find(".data-"); at != name.npos) return name.substr(0, at) + ".index";
  return name.ends_with(".onnx_data") ? name.substr(0, name.size() - std::string_view("_data").size()) : name;
}

// A damaged file is kept, or has the tensors that its bytes describe; no place of them leaves its file. Returns true if
// it has tensors.
bool check_read_or_kept(const std::string& name, const Files& files) {
  MemoryGroup group(name, files.at(name), files);
  const auto layout = parse_file("place", group);
  if (!layout.ok()) {
    CHECK(layout.error().code == Errc::invalid);
    CHECK(layout.error().message.find('\n') == std::string::npos);
    return false;
  }
  const auto lies_in_file = [&](const TensorPart& part) {
    const std::string& bytes = files.at(part.file == 0 ? name : layout->others.at(part.file - 1));
    return part.offset <= bytes.size() && part.length <= bytes.size() - part.offset;
  };
  for (const FoundTensor& tensor : layout->tensors) CHECK(std::ranges::all_of(tensor.parts, lies_in_file));
  CHECK(std::ranges::all_of(layout->cuts, lies_in_file));
  return !layout->tensors.empty();
}

class DamageRun {
 public:
  explicit DamageRun(std::uint64_t seed) : random_(seed) { REQUIRE_FALSE(files_.empty()); }

  void step() {
    auto whole = files_.begin();
    std::advance(whole, below(files_.size()));
    CAPTURE(whole->first);
    const std::string before = whole->second;
    for (std::uint64_t count = 1 + below(3); count-- > 0;) damage(whole->second);
    read_ += check_read_or_kept(main_of(whole->first), files_) ? 1 : 0;
    whole->second = before;
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
  Files files_ = whole_files();
  std::uint64_t read_ = 0;
};

}  // namespace

TEST_CASE("damaged files are read or kept, and no place leaves the file") {
  run_rounds<DamageRun>(200);
}

namespace {

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
  Files files = whole_files();
  for (auto& [name, bytes] : files) {
    CAPTURE(name);
    const std::string whole = bytes;
    for (const std::size_t at : ends_of(whole.size(), kEnd)) {
      bytes.resize(at);
      check_read_or_kept(main_of(name), files);
      bytes = whole;
      bytes[at] = static_cast<char>(~bytes[at]);
      check_read_or_kept(main_of(name), files);
      bytes[at] = whole[at];
    }
  }
}
