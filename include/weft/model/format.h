// A format is a pure function from a group of files to tensors (format/formats.cc). No later code depends on formats.
// Each implementation is one file in src/format/, is listed in formats.cc, and is fuzzed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/dtype.h"
#include "weft/grid.h"
#include "weft/model/hidden_tensor.h"
#include "weft/result.h"

namespace weft {

// The bytes of one file, untrusted until checked. read() fills all of `out` or fails. A read past size() is an error.
// One thread at a time.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

// Files that are published together, as seen from one of them, the main file. One thread at a time.
class FormatInput {
 public:
  virtual ~FormatInput() = default;
  virtual std::string_view name() const = 0;  // base name of the main file
  virtual ByteSource& main() = 0;
  // Returns another file of the group, by its path from the main file's directory. The path is as File::path, so it
  // does not leave that directory. The result lives as long as the group. Errc::not_found: there is no such file. Any
  // text is allowed.
  virtual Result<ByteSource*> beside(std::string_view path) = 0;
};

// A run of bytes of a file of the group.
struct TensorPart {
  std::uint32_t file = 0;    // 0: the main file; n: Layout::others[n - 1]
  std::uint64_t offset = 0;  // bytes from the start of the file
  std::uint64_t length = 0;  // bytes, not 0
};

// The bytes of `parts`, one after the other, are the tensor's memory. Without strides these are its elements in C
// order. With strides, element (i, j, ...) is i * strides[0] + j * strides[1] + ... elements from the start, and the
// memory ends with the last element. Strides may leave out elements of C order or use them many times. A part's end
// cuts no element.
//
// A tensor in boxes (shards, chunks) has a grid instead of strides, and its memory is that of the grid (weft/grid.h). A
// part may contain many cells, or a piece of a cell. A tensor has no grid if its cells without their padding are its
// elements in C order: they are its memory. format/boxes.h makes both.
struct FoundTensor {
  std::string name;  // UTF-8, as in the file
  DType dtype = DType::u8;
  Shape shape;                    // logical elements, outermost first
  std::vector<TensorPart> parts;  // none if a dimension is 0
  Strides strides;                // none: C order. Else one for each dimension; not for packed or quantized types
  std::string descr;  // only for DType::npy_other, or big-endian / Fortran-order npy: the npy header's dict text
  Borders grid = {};  // none: it does not lie in boxes. Not for packed or quantized types
  Shape begin = {};   // of a shard, if Layout::sharded: its first element in the whole tensor
};

// The result of a format. Tensors are sorted by (file, offset, length) of their first parts. Parts lie within their
// files. Tensors may overlap, as tied ones do.
struct Layout {
  std::string format;  // "safetensors", "gguf", "npy", "npz", "torch zip", "torch legacy", "torch export", "pickle",
                       // "onnx", "dcp", "hdf5", "keras", "tf bundle", "tflite", "flax"; for an opaque file the
                       // container format (weft/model/records.h), or ""
  std::vector<FoundTensor> tensors;
  std::vector<std::string> others;  // other files that parts lie in, as FormatInput::beside() takes them
  std::vector<std::pair<std::string, std::string>> metadata;  // the file's own, as texts; bounded by limits.h
  // Runs that are worth extents of their own, because other versions and files may have them too: members of an
  // archive, storages, compressed chunks. In any order. They lie within their files, and may overlap one another and
  // the parts of tensors. A publish uses them only outside of these parts (publish/cut.h).
  std::vector<TensorPart> cuts = {};
  // Tensors that the file has and weft cannot show; at most limits::kHiddenTensorsMax, in any order. A name may be that
  // of a tensor, or occur twice.
  std::vector<HiddenTensor> hidden = {};
  std::uint64_t hidden_more = 0;  // further hidden tensors that are not listed
  bool sharded = false;           // the tensors are shards, for join_shards()
};

class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;
  // True if a file of this name (base name) that starts with these bytes (up to 16) claims to be of this format. The
  // bytes alone claim it only if no text begins with them.
  virtual bool claims(std::string_view file_name, std::span<const std::byte> head) const = 0;
  // Checks every bound before it takes memory, so a small file cannot make it allocate much. If a format's files do not
  // name their tensor, the main file's name does. Errc::invalid: the format's own library refuses the file too.
  // Errc::unsupported: the library reads the file, or a newer one may, and weft does not.
  virtual Result<Layout> parse(FormatInput& files) const = 0;
};

using Formats = std::span<const Format* const>;
Formats all_formats();

// Finds the format that claims the main file and parses it; returns an opaque Layout if none does. An opaque layout
// whose format found something unsupported has the reason as its first metadata (kNoTensors of weft/model/manifest.h),
// and no other but the globals of a pickle. So has a file that claims a format by its first bytes alone and does not
// parse. Errc::invalid: the bytes are malformed and the name claims the format, or the file is a Git LFS pointer
// (weft/model/lfs_pointer.h). Errc::internal: a layout that breaks the guarantees above. Other errors come from the
// source. Messages start with `where` (the path as the user knows it).
Result<Layout> parse_file(std::string_view where, FormatInput& files, Formats formats = all_formats());
// Returns the layout of a file that is kept without its tensors: opaque, with the reason.
Layout unread_layout(const Error& why);
// Parses a single file, without other files in its group.
Result<Layout> parse_file(std::string_view where, std::string_view file_name, ByteSource& source);

// Parses the index of a model in shards (`*.safetensors.index.json`, `*.bin.index.json`): tensor name -> path of its
// shard from the index's directory.
// Of two entries of one name the last counts, as for transformers. The text is untrusted, and so are names and paths.
Result<std::map<std::string, std::string>> parse_shard_index(std::string_view where, ByteSource& source);

// A file with shards (Layout::sharded), and its name in the directory that all these files lie in.
struct ShardedFile {
  std::string name;
  Layout* layout = nullptr;
};
// Makes one tensor of all shards of one name. The tensor then belongs to the layout of the first file, which names the
// other files in their order, as its `others`. Shards that do not fit together become a hidden tensor of that layout,
// and so do shards of which the first ones are missing. The shape is where the last shards end, as for torch's own
// reader, because no file has the shape of a whole tensor: without its last files a tensor ends earlier, and nothing
// shows it. A tensor without other shards stays in its file. Errc::internal: as parse_file().
Status join_shards(std::span<const ShardedFile> files);

// The file of a distributed checkpoint (torch.distributed.checkpoint) that names all others, and the end of their
// names.
inline constexpr std::string_view kCheckpointMetadata = ".metadata";
inline constexpr std::string_view kCheckpointShardSuffix = ".distcp";
// Without collectives, rank N of a job writes `__N.metadata` in place of .metadata. Returns N of such a name, and of
// `__N_M.distcp`; nothing for other names.
std::optional<std::uint32_t> checkpoint_rank(std::string_view name);
std::string rank_metadata(std::uint32_t rank);  // `__N.metadata`
// A file that the metadata of a checkpoint names.
struct CheckpointFile {
  std::string name;
  std::uint64_t bytes = 0;  // at least: where the last of its items ends
  bool operator==(const CheckpointFile&) const = default;
};
// The needs of a checkpoint by its metadata. A complete checkpoint has all these files beside its metadata, and none of
// them is shorter. No file says how many ranks there are: they are 0, 1, ... up to the last one that is there, each
// rank with a part has its metadata, and if the last ranks are missing, a tensor in shards is unfilled.
struct CheckpointParts {
  std::vector<CheckpointFile> files;  // as the metadata names them: sorted, each once
  std::string unfilled = {};          // a tensor whose shards are fewer elements than it has; "": there is none
};
// `metadata`: the text of .metadata, or those of all ranks in their order. The texts are untrusted, and so are names
// and numbers. Errc::invalid, Errc::unsupported: weft cannot read one.
Result<CheckpointParts> parts_of_checkpoint(std::vector<std::string> metadata);

// Returns the names of the models that a version was made from, as a file declares them, each once: `base_model` (a
// text or a list of texts) in the YAML front matter of a README.md, `base_model_name_or_path` of an
// adapter_config.json. Other files declare none. Names that are malformed, longer than limits.h allows, or not plain
// text are left out. Names are UTF-8 without control characters, 1 to limits::kBaseNameMax bytes, at most
// limits::kParentsMax of them.
std::vector<std::string> named_bases(std::string_view file_name, ByteSource& source);

}  // namespace weft
