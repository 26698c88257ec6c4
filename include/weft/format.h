// A format is a pure function from a group of files to tensors. After it, nobody knows formats any more.
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

// Files that are published together, as a format sees them from one of them, the main file. One thread at a time.
class FormatInput {
 public:
  virtual ~FormatInput() = default;
  virtual std::string_view name() const = 0;  // base name of the main file
  virtual ByteSource& main() = 0;
  // Another file of the group, by its path from the main file's directory: as File::path, so nothing above that
  // directory. Lives as long as the group. Errc::not_found: there is none. Any text may be asked for.
  virtual Result<ByteSource*> beside(std::string_view path) = 0;
};

// A run of bytes of a file of the group.
struct TensorPart {
  std::uint32_t file = 0;    // 0: the main file; n: Layout::others[n - 1]
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes, not 0
};

// The bytes of `parts`, one after the other, are the tensor's memory. Without strides that is its elements in C order.
// With strides, element (i, j, ...) is i * strides[0] + j * strides[1] + ... elements from the start; the memory ends
// with the last of them. Elements may be missing from C order, or be used many times, but not be cut by a part's end.
struct FoundTensor {
  std::string name;  // UTF-8, as the file says it
  DType dtype = DType::u8;
  Shape shape;                    // logical elements, outermost first
  std::vector<TensorPart> parts;  // none where a dimension is 0
  Strides strides;                // none: C order. Else one for each dimension; not of packed or quantized types
  std::string descr;  // only for DType::npy_other, or big-endian / Fortran-order npy: the npy header's dict text
};

// What a format found. Tensors are in the order of the (file, offset, length) of their first parts. Parts lie within
// their files. Tensors may overlap, as tied ones do.
struct Layout {
  std::string format;  // "safetensors", "gguf", "npy"; of an opaque file the kind of container (weft/records.h), or ""
  std::vector<FoundTensor> tensors;
  std::vector<std::string> others;  // files beside the main one that parts lie in, as FormatInput::beside() takes them
  std::vector<std::pair<std::string, std::string>> metadata;  // the file's own, text values; bounded by limits.h
};

class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;
  // Does a file of this name (base name) that starts with these bytes (up to 16) claim to be of this format?
  virtual bool claims(std::string_view file_name, std::span<const std::byte> head) const = 0;
  // Every bound is checked before memory is taken: a small file cannot make it allocate much. The main file's name
  // names the tensor of a format whose files do not name theirs.
  virtual Result<Layout> parse(FormatInput& files) const = 0;
};

using Formats = std::span<const Format* const>;
Formats all_formats();

// Finds the format that claims the main file and parses it; an opaque Layout when none does. A file named for a format
// must parse; one that only begins like a format, and does not parse, is opaque too. Errc::invalid for malformed bytes
// (also a Git LFS pointer in the place of a file), Errc::unsupported for versions and types that weft does not know,
// Errc::internal for a layout that breaks the promises above, else what the source failed with. Messages start with
// `where` (the path as the user knows it).
Result<Layout> parse_file(std::string_view where, FormatInput& files, Formats formats = all_formats());
// The same of a file that has none beside it.
Result<Layout> parse_file(std::string_view where, std::string_view file_name, ByteSource& source);

// A safetensors index (`*.safetensors.index.json`): tensor name -> shard file name. Text is hostile.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view where, ByteSource& source);

// Names of models that a file says its version was made from, as the file has them, each once: `base_model` (a text or
// a list of texts) in the YAML front matter of a README.md, `base_model_name_or_path` of an adapter_config.json. Other
// files name none, and neither does what is malformed, longer than limits.h allows, or no plain text. Names are UTF-8
// without control characters, 1 to limits::kBaseNameMax bytes, at most limits::kParentsMax of them.
std::vector<std::string> named_bases(std::string_view file_name, ByteSource& source);

}  // namespace weft
