// The input is the .metadata of a distributed checkpoint with two files beside it, of two and of one shard. The target
// torch fuzzes what is in a shard.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuzzing.h"
#include "weft/grid.h"

namespace weft::fuzzing {
namespace {

std::string number(std::uint64_t value, unsigned bytes) {
  std::string out;
  for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8U * i));
  return out;
}

// A member of an archive, and its entry in the directory. Flags, method, time and checksum are 0.
void add_member(std::string& members, std::string& entries, const std::string& name, const std::string& bytes) {
  const std::string sizes = number(bytes.size(), 4) + number(bytes.size(), 4) + number(name.size(), 2);
  const std::string common = std::string(12, '\0') + sizes + number(0, 2);
  entries +=
      "PK\1\2" + number(20, 2) + number(20, 2) + common + std::string(10, '\0') + number(members.size(), 4) + name;
  members += "PK\3\4" + number(20, 2) + common + name + bytes;
}

// A file of torch.save with one tensor of 2 x 2 floats. All have the same length, which the seeds name.
std::string shard() {
  const std::string storage =
      "(X" + number(7, 4) + "storagectorch\nFloatStorage\nX" + number(1, 4) + "0X" + number(3, 4) + "cpuK\4tQ";
  const std::string pickle = "\x80\2" + std::string("ctorch._utils\n_rebuild_tensor_v2\n(") + storage + "K" +
                             number(0, 1) + "(K\2K\2t(K\2K\1t\x89" + "ccollections\nOrderedDict\n)RtR.";
  std::string members, entries;
  add_member(members, entries, "m/data.pkl", pickle);
  add_member(members, entries, "m/data/0", std::string(16, '0'));
  return members + entries + "PK\5\6" + number(0, 4) + number(2, 2) + number(2, 2) + number(entries.size(), 4) +
         number(members.size(), 4) + number(0, 2);
}

class Group final : public FormatInput {
 public:
  Group(std::string_view name, const std::uint8_t* data, std::size_t size) : name_(name), main_(data, size) {
    files_ = {{"a.distcp", shard() + shard()}, {"b.distcp", shard()}};
    if (name != kCheckpointMetadata) files_[rank_metadata(1)] = std::string(reinterpret_cast<const char*>(data), size);
    for (const auto& [path, text] : files_)
      inputs_[path] = std::make_unique<Input>(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  }
  std::string_view name() const override { return name_; }
  ByteSource& main() override { return main_; }
  Result<ByteSource*> beside(std::string_view path) override {
    const auto found = inputs_.find(std::string(path));
    if (found == inputs_.end()) return Error{Errc::not_found, "no such file"};
    return found->second.get();
  }

 private:
  const std::string name_;
  Input main_;
  std::map<std::string, std::string> files_;
  std::map<std::string, std::unique_ptr<Input>> inputs_;
};

void require_in_shard(const Layout& layout, Group& group, const TensorPart& part) {
  require(part.file > 0 && part.file <= layout.others.size(), "parts and cuts lie in shards");
  const std::uint64_t size = (*group.beside(layout.others[part.file - 1]))->size();
  require(part.offset <= size && part.length <= size - part.offset, "parts and cuts lie in their files");
}

void require_placed(const Layout& layout, Group& group, const FoundTensor& tensor) {
  std::uint64_t bytes = 0;
  for (const TensorPart& part : tensor.parts) {
    require_in_shard(layout, group, part);
    bytes += part.length;
  }
  if (tensor.grid.empty()) return;
  const auto grid = Grid::of(tensor.dtype, tensor.shape, tensor.grid);
  require(grid.ok() && grid->memory_bytes() == bytes, "parts are the memory of a grid");
}

// A checkpoint that is complete by its names and lengths has all bytes of its tensors.
void require_named(const Layout& layout, const std::vector<CheckpointFile>& files, const FoundTensor& tensor) {
  for (const TensorPart& part : tensor.parts) {
    const auto file = std::ranges::find(files, layout.others[part.file - 1], &CheckpointFile::name);
    require(file != files.end(), "the files of tensors are named");
    require(part.offset + part.length <= file->bytes, "parts lie in the bytes that a file must have");
  }
}

// The input is the metadata of the checkpoint, or that of each of two ranks.
void fuzz_dcp(const std::uint8_t* data, std::size_t size, std::string_view name) {
  Group group(name, data, size);
  const auto layout = parse_file("place", group);
  require(layout.ok(), "no .metadata is refused");
  for (const FoundTensor& tensor : layout->tensors) require_placed(*layout, group, tensor);
  for (const TensorPart& cut : layout->cuts) require_in_shard(*layout, group, cut);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto parts = parts_of_checkpoint(std::vector<std::string>(name == kCheckpointMetadata ? 1 : 2, text));
  require(parts.ok() == (layout->format == "dcp"), "a checkpoint names its files");
  for (const FoundTensor& tensor : layout->tensors) require_named(*layout, parts->files, tensor);
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const std::string& name : {std::string(weft::kCheckpointMetadata), weft::rank_metadata(0)})
    weft::fuzzing::fuzz_dcp(data, size, name);
  return 0;
}
