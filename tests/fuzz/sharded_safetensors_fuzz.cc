// The input describes shards of tensors in up to four files, a few bytes for each shard. The target writes these files
// as HuggingFaceStorageWriter of PyTorch does, joins their shards, and compares each joined tensor with its shards. The
// target safetensors fuzzes what is in a file.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "weft/grid.h"

namespace weft::fuzzing {
namespace {

constexpr std::size_t kFiles = 4, kNames = 4, kDimensions = 3, kLengthBytes = 8;

struct Shard {
  bool wide = false;  // U16, else U8
  Shape begin, shape;
  std::uint64_t offset = 0;  // of its bytes in its file
};

// Takes bytes off the input. After the end they are 0.
class Numbers {
 public:
  Numbers(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool more() const { return !rest_.empty(); }
  std::uint8_t next() {
    if (rest_.empty()) return 0;
    const std::uint8_t value = rest_.front();
    rest_ = rest_.subspan(1);
    return value;
  }
  // Small numbers, and those near 2^64.
  std::uint64_t next_begin() {
    const std::uint64_t value = next();
    return value < 0x80U ? value : UINT64_MAX - (0xffU - value);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

struct File {
  std::map<char, Shard> shards;  // by the tensor's name
  std::string bytes;
};

std::uint64_t bytes_of(const Shard& shard) {
  std::uint64_t bytes = shard.wide ? 2 : 1;
  for (const std::uint64_t dimension : shard.shape) bytes *= dimension;
  return bytes;
}

// Returns the files with their shards. The first shard of a tensor in a file counts.
std::array<File, kFiles> read_shards(Numbers numbers) {
  std::array<File, kFiles> files;
  while (numbers.more()) {
    const unsigned head = numbers.next();
    Shard shard{(head & 0x10U) != 0, {}, {}, 0};
    for (unsigned left = head >> 5U & kDimensions; left-- > 0;) {
      shard.begin.push_back(numbers.next_begin());
      shard.shape.push_back(numbers.next() & 7U);
    }
    files[head % kFiles].shards.emplace(static_cast<char>('a' + (head / kFiles) % kNames), shard);
  }
  return files;
}

// The bytes of a file count from a number of its own.
void write(File& file, unsigned first) {
  std::string info, header;
  std::uint64_t end = 0;
  for (const auto& [name, shard] : file.shards) {
    const std::uint64_t begin = end;
    end += bytes_of(shard);
    info += fmt::format(R"({}\"{}\":{{\"saved_offsets\":[{}]}})", info.empty() ? "" : ",", name,
                        fmt::join(shard.begin, ","));
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name,
                          shard.wide ? "U16" : "U8", fmt::join(shard.shape, ","), begin, end);
  }
  header = fmt::format(R"({{"__metadata__":{{"DCP_SHARDING_INFO":"{{{}}}"}}{}}})", info, header);
  for (std::size_t i = 0; i < kLengthBytes; ++i) file.bytes += static_cast<char>(header.size() >> (8 * i));
  file.bytes += header;
  std::uint64_t at = file.bytes.size();
  for (auto& [name, shard] : file.shards) {
    shard.offset = at;
    at += bytes_of(shard);
  }
  while (file.bytes.size() < at) file.bytes += static_cast<char>(first + 3 * file.bytes.size());
}

// Returns the elements of a tensor in C order.
std::string elements_of(const FoundTensor& tensor, const std::string& memory) {
  const auto bytes = tensor_bytes(tensor.dtype, tensor.shape);
  require(bytes.ok() && *bytes == memory.size(), "shards have no padding");
  if (tensor.grid.empty()) return memory;
  const auto grid = Grid::of(tensor.dtype, tensor.shape, tensor.grid);
  require(grid.ok() && grid->memory_bytes() == memory.size(), "parts are the memory of a grid");
  std::string out(memory.size(), '\0');
  for (std::uint64_t cell = 0; cell < grid->cells(); ++cell)
    grid->each_row(cell, {0, grid->bytes()}, [&](const Grid::Row& row) {
      out.replace(row.in_tensor, row.length, memory, row.in_memory, row.length);
      return true;
    });
  return out;
}

// Requires the elements of a shard where it begins in the whole tensor.
void require_shard(const Shard& shard, std::string_view stored, const Shape& whole, std::string_view elements) {
  const std::size_t width = shard.wide ? 2 : 1;
  for (std::uint64_t number = 0; number * width < stored.size(); ++number) {
    std::uint64_t rest = number, at = 0, step = 1;
    for (std::size_t i = whole.size(); i-- > 0; rest /= shard.shape[i]) {
      at += (shard.begin[i] + rest % shard.shape[i]) * step;
      step *= whole[i];
    }
    require(elements.substr(at * width, width) == stored.substr(number * width, width), "elements are in their place");
  }
}

struct Joined {
  std::array<File, kFiles> files;
  std::vector<std::size_t> written;  // numbers of the files with shards
  std::vector<Layout> layouts;       // of these files

  // Layout `number` has the tensor. Returns its elements.
  std::string elements(std::size_t number, const FoundTensor& tensor) const {
    std::string memory;
    for (const TensorPart& part : tensor.parts) {
      require(part.file == 0 || number == 0, "only the first file has parts in others");
      const std::string& bytes = files[written.at(number + part.file)].bytes;
      require(part.length > 0 && part.offset <= bytes.size() && part.length <= bytes.size() - part.offset,
              "parts lie in their files");
      memory.append(bytes, part.offset, part.length);
    }
    return elements_of(tensor, memory);
  }
};

// Requires that all shards of a name are in one tensor, or hidden together.
void require_once(const Joined& joined, char name) {
  std::size_t shown = 0, shards = 0, in_files = 0;
  for (const File& file : joined.files) in_files += file.shards.contains(name) ? 1 : 0;
  for (std::size_t number = 0; number < joined.layouts.size(); ++number) {
    const std::string title(1, name);
    for (const FoundTensor& tensor : joined.layouts[number].tensors) {
      if (tensor.name != title) continue;
      const std::string elements = joined.elements(number, tensor);
      ++shown;
      for (const File& file : joined.files) {
        const auto shard = file.shards.find(name);
        if (shard == file.shards.end()) continue;
        const std::string_view bytes(file.bytes);
        require_shard(shard->second, bytes.substr(shard->second.offset, bytes_of(shard->second)), tensor.shape,
                      elements);
        ++shards;
      }
    }
    shown += static_cast<std::size_t>(std::ranges::count(joined.layouts[number].hidden, title, &HiddenTensor::name));
  }
  require(shown == (in_files > 0 ? 1 : 0), "each tensor is shown once, or hidden once");
  require(shards == 0 || shards == in_files, "a tensor has all its shards");
}

void fuzz_join(const std::uint8_t* data, std::size_t size) {
  Joined joined{read_shards({data, size}), {}, {}};
  std::vector<ShardedFile> sharded;
  for (std::size_t i = 0; i < kFiles; ++i) {
    File& file = joined.files[i];
    if (file.shards.empty()) continue;
    write(file, static_cast<unsigned>(61 * i));
    Input input(reinterpret_cast<const std::uint8_t*>(file.bytes.data()), file.bytes.size());
    auto layout = parse_file("place", "m.safetensors", input);
    require(layout.ok() && layout->sharded, "the target writes shards");
    joined.written.push_back(i);
    joined.layouts.push_back(*std::move(layout));
  }
  for (std::size_t i = 0; i < joined.layouts.size(); ++i)
    sharded.push_back({std::to_string(joined.written[i]), &joined.layouts[i]});
  require(join_shards(sharded).ok(), "no shards are refused");
  for (std::size_t i = 0; i < kNames; ++i) require_once(joined, static_cast<char>('a' + i));
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_join(data, size);
  return 0;
}
