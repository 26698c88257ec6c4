// Files of each format, damaged at random. WEFT_TEST_FILES names a directory of files of real writers
// (tests/frameworks/test_damage.py); without it the files are small ones, of the builders and of the fuzzer's corpus.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "allocation.h"
#include "dcp_files.h"
#include "protobufs.h"
#include "random_runs.h"
#include "tflite_files.h"
#include "torch_files.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Files = std::map<std::string, std::string>;  // by name

// Returns tests/fuzz/corpus/PATH.
std::string seed(std::string_view path) {
  return read_text(std::string(WEFT_SOURCE_DIR "/tests/fuzz/corpus/").append(path));
}

std::string exported() {
  return zip_file({{"m/data/weights/weight_0", std::string(96, '0')},
                   {"m/data/weights/weight_1", std::string(8, '1')},
                   {"m/data/weights/model_weights_config.json", seed("torch_export/weights")}});
}

std::string with_external_data() {
  return onnx_model(pb_bytes(5, onnx_raw("own", 1, {2}, "01234567")) +
                    pb_bytes(5, onnx_tensor("w", 1, {2}) + onnx_external("m.onnx_data", "8", "8")));
}

// A file of each format, and the files that lie beside it.
Files small_files() {
  const std::string w = p_tensor(p_storage("0"), 0, {4, 6}, {6, 1});
  const Checkpoint checkpoint = dcp_columns();
  Files files = checkpoint.files;
  files.emplace(kCheckpointMetadata, checkpoint.metadata());
  files.insert({{"m.pt", torch_archive(p_dict({{"a", w}, {"b", p_tensor(p_storage("1"), 0, {2}, {1})}}))},
                {"old.pt", seed("torch_legacy/state_dict")},
                {"arrays.pkl", seed("torch/numpy")},
                {"program.pt2", exported()},
                {"m.npz", seed("npz/stored")},
                {"m.npy", seed("npy/plain")},
                {"m.safetensors", seed("safetensors/two")},
                {"shard.safetensors", seed("safetensors/sharded")},
                {"m.safetensors.index.json", seed("safetensors_index/two")},
                {"m.gguf", seed("gguf/tensors")},
                {"m.onnx", with_external_data()},
                {"m.onnx_data", std::string(64, 'x')},
                {"m.h5", seed("hdf5/tensors")},
                {"new.h5", seed("hdf5/chunks_latest")},
                {"m.keras", zip_file({{"config.json", "{}"}, {"model.weights.h5", seed("keras/weights_latest")}})},
                {"m.index", seed("tf_bundle/plain")},
                {"m.data-00000-of-00001", std::string(64, 'x')},
                {"m.tflite", tflite_file({{{"w", 0, {2, 3}, 1}}}, {"", std::string(24, 'x')})},
                {"m.msgpack", seed("flax/state")}});
  return files;
}

Files whole_files() {
  const char* directory = std::getenv("WEFT_TEST_FILES");
  if (directory == nullptr) return small_files();
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

// Returns the main file, and those beside it that its tensors lie in.
Files group_of(const std::string& main, const Files& files) {
  Files group;
  for (const auto& [name, bytes] : files)
    if (main_of(name) == main) group.emplace(name, bytes);
  return group;
}

// The size of the files bounds work and memory, so that no damage makes a file of a GiB take minutes or all memory. The
// test compares counts and not times, because counts are the same on each machine.
constexpr std::uint64_t kReadsSpare = 128, kBytesPerRead = 8;
constexpr std::uint64_t kBytesReadSpare = 8U << 10U, kBytesReadPerByte = 8;
constexpr std::uint64_t kMemorySpare = 64U << 10U, kAllocatedPerByte = 64, kPeakPerByte = 32;

struct Work {
  std::uint64_t reads = 0, bytes_read = 0, allocated = 0, peak = 0;  // the last two in bytes
};

void check_work(const Work& work, const Files& group) {
  std::uint64_t bytes = 0;
  for (const auto& [name, text] : group) bytes += text.size();
  CHECK(work.reads <= kReadsSpare + bytes / kBytesPerRead);
  CHECK(work.bytes_read <= kBytesReadSpare + kBytesReadPerByte * bytes);
  CHECK(work.allocated <= kMemorySpare + kAllocatedPerByte * bytes);
  CHECK(work.peak <= kMemorySpare + kPeakPerByte * bytes);
}

Result<Layout> parsed(const std::string& main, const Files& group) {
  MemoryGroup files(main, group.at(main), group);
  reset_allocations();
  auto layout = parse_file("place", files);
  if (layout.ok() && layout->sharded) {
    const ShardedFile alone{main, &*layout};
    must(join_shards({&alone, 1}));
  }
  const Allocations used = allocations();
  check_work({files.reads(), files.bytes_read(), used.total, used.peak}, group);
  return layout;
}

void check_index(const std::string& bytes) {
  MemorySource source(bytes);
  reset_allocations();
  const auto index = parse_shard_index("place", source);
  const Allocations used = allocations();
  check_work({source.reads(), source.bytes_read(), used.total, used.peak}, {{"index", bytes}});
  if (!index.ok()) CHECK(index.error().code == Errc::invalid);
}

// A damaged file is kept, or has the tensors that its bytes describe; no place of them leaves its file. Returns true if
// it has tensors.
bool check_read_or_kept(const std::string& main, const Files& files) {
  const Files group = group_of(main, files);
  if (main.ends_with(".index.json")) check_index(group.at(main));
  const auto layout = parsed(main, group);
  if (!layout.ok()) {
    CHECK(layout.error().code == Errc::invalid);
    CHECK(layout.error().message.find('\n') == std::string::npos);
    return false;
  }
  const auto lies_in_file = [&](const TensorPart& part) {
    const std::string& bytes = group.at(part.file == 0 ? main : layout->others.at(part.file - 1));
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

TEST_CASE("small files: there is one of each format") {
  std::set<std::string> formats;
  const Files files = small_files();
  for (const auto& file : files) {
    const std::string& name = file.first;
    if (main_of(name) != name) continue;
    CAPTURE(name);
    const Layout layout = must(parsed(name, group_of(name, files)));
    CHECK(layout.tensors.empty() == layout.format.empty());
    if (!layout.format.empty()) formats.insert(layout.format);
  }
  CHECK(formats == std::set<std::string>{"safetensors", "gguf", "npy", "npz", "torch zip", "torch legacy",
                                         "torch export", "pickle", "onnx", "dcp", "hdf5", "keras", "tf bundle",
                                         "tflite", "flax"});
}

TEST_CASE("damaged files are read or kept with bounded work, and no place leaves the file") {
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
  for (auto& file : files) {
    const std::string& name = file.first;
    std::string& bytes = file.second;
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
