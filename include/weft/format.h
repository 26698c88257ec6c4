// A format is a pure function from a file's bytes to its tensor extents. After it, nobody knows formats any more.
// Implementations live one to a file in src/format/, are listed in src/format/formats.cc, and are fuzzed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/dtype.h"
#include "weft/result.h"

namespace weft {

// The bytes of one file; hostile until checked. read() fills all of `out` or fails; a read past size() is an error.
// One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

struct TensorExtent {
  std::string name;  // UTF-8, as the file says it
  DType dtype = DType::u8;
  Shape shape;               // logical elements, outermost first
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes; 0 where a dimension is 0
  std::string descr;         // only for DType::npy_other, or big-endian / Fortran-order npy: the npy header's dict text
};

// What a format found. Tensors are sorted by (offset, length), do not overlap, and lie within the file.
struct Layout {
  std::string format;  // "safetensors", "gguf", "npy", or "" for an opaque file
  std::vector<TensorExtent> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  // the file's own, text values; bounded by limits.h
};

class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;
  // Does a file of this name (base name) that starts with these bytes (up to 16) claim to be of this format?
  virtual bool claims(std::string_view file_name, std::span<const std::byte> head) const = 0;
  // Every bound is checked before memory is taken: a small file cannot make it allocate much. `file_name` (base name)
  // names the tensor of a format whose files do not name theirs.
  virtual Result<Layout> parse(std::string_view file_name, ByteSource& source) const = 0;
};

std::span<const Format* const> all_formats();

// Finds the format that claims the file and parses it; an opaque Layout when none does. A file named for a format must
// parse; one that only begins like a format, and does not parse, is opaque too. Errc::invalid for malformed bytes (also
// a Git LFS pointer in the place of a file), Errc::unsupported for versions and types that weft does not know, else
// what the source failed with. Messages start with `where` (the path as the user knows it).
Result<Layout> parse_file(std::string_view where, std::string_view file_name, ByteSource& source);

// A safetensors index (`*.safetensors.index.json`): tensor name -> shard file name. Text is hostile.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view where, ByteSource& source);

// Names of models that a file says its version was made from, as the file has them, each once: `base_model` (a text or
// a list of texts) in the YAML front matter of a README.md, `base_model_name_or_path` of an adapter_config.json. Other
// files name none, and neither does what is malformed, longer than limits.h allows, or no plain text. Names are UTF-8
// without control characters, 1 to limits::kBaseNameMax bytes, at most limits::kParentsMax of them.
std::vector<std::string> named_bases(std::string_view file_name, ByteSource& source);

}  // namespace weft
