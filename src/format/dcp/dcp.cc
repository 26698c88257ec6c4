// Distributed checkpoints of torch.distributed.checkpoint: a file .metadata, and .distcp files beside it, whose items
// are files of torch.save with one tensor each, one after the other. A tensor may have many shards.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "format/boxes.h"
#include "format/builtin.h"
#include "format/dcp/dcp_metadata.h"
#include "format/layout.h"
#include "format/other_files.h"
#include "format/parse_errors.h"
#include "format/slice.h"
#include "format/tensor_list.h"
#include "format/torch/torch_globals.h"
#include "format/torch/torch_zip.h"
#include "format/zip_directory.h"
#include "weft/model/manifest.h"

namespace weft {
namespace {

Error hidden_shard(std::string why) {
  return Error{Errc::unsupported, std::move(why)};
}

// Reads one checkpoint once.
class DcpCheckpoint {
 public:
  DcpCheckpoint(FormatInput& files, Layout& layout, std::vector<std::string>& globals)
      : layout_(layout),
        tensors_(layout),
        globals_(globals),
        known_globals_(globals.begin(), globals.end()),
        shard_files_(files, layout) {}

  // Errc::unsupported: as TensorList::add(). Other errors come from the source.
  Status add(const DcpItem& item);
  void finish() { tensors_.finish(); }

 private:
  // Errors of these that is_malformed() are reasons to hide the tensor. The others come from the source.
  Result<FoundTensor> tensor_of(const DcpItem& item);
  Error value_of(const DcpItem& item);
  Result<Layout> saved_in(SliceSource& slice);
  Result<FoundTensor> shard_of(const DcpPlace& place);

  Status cut(const DcpItem& item);
  Result<const OtherFiles::File*> file_of(const DcpPlace& place);

  Layout& layout_;
  TensorList tensors_;
  std::vector<std::string>& globals_;
  std::unordered_set<std::string> known_globals_;
  OtherFiles shard_files_;
  std::map<std::uint32_t, std::uint64_t> taken_;  // by number of the file: the bytes of its shards so far
};

bool is_whole(const DcpShard& shard, const Shape& shape) {
  return *shard.size == shape && std::ranges::all_of(*shard.begin, [](std::uint64_t index) { return index == 0; });
}

bool lies_in(const DcpPlace& place, const OtherFiles::File& file) {
  const std::uint64_t size = file.source->size();
  return place.offset <= size && place.length <= size - place.offset;
}

std::uint64_t bytes_of(const DcpItem& item) {
  std::uint64_t bytes = 0;
  for (const DcpShard& shard : item.shards)
    if (shard.place && __builtin_add_overflow(bytes, shard.place->length, &bytes)) return UINT64_MAX;
  return bytes;
}

Status DcpCheckpoint::add(const DcpItem& item) {
  auto tensor = tensor_of(item);
  if (!tensor.ok() && !is_malformed(tensor.error())) return std::move(tensor).error();
  if (!tensor.ok()) WEFT_CHECK(cut(item));
  return tensors_.add(std::move(tensor), {item.name, bytes_of(item), "", {}, {}});
}

// Makes cuts of an item that is not shown, so that another version with equal shards shares them.
Status DcpCheckpoint::cut(const DcpItem& item) {
  for (const DcpShard& shard : item.shards) {
    if (!shard.place || shard.place->length < limits::kCutMin) continue;
    WEFT_TRY(const OtherFiles::File* const file, file_of(*shard.place));
    if (file != nullptr && lies_in(*shard.place, *file))
      layout_.cuts.push_back({file->number, shard.place->offset, shard.place->length});
  }
  return {};
}

// DCP writes the files into the directory of .metadata. Null: there is no such file.
Result<const OtherFiles::File*> DcpCheckpoint::file_of(const DcpPlace& place) {
  if (place.file->find('/') != std::string::npos) return nullptr;
  return shard_files_.find(*place.file);
}

// Notes the globals of a value, and returns why it is no tensor.
Error DcpCheckpoint::value_of(const DcpItem& item) {
  for (const DcpShard& shard : item.shards) {
    if (!shard.place) continue;
    const auto saved = shard_of(*shard.place);
    if (!saved.ok() && !is_malformed(saved.error())) return saved.error();
  }
  return hidden_shard(std::string(item.why));
}

// A tensor of one shard may have strides, as one that was transposed.
Result<FoundTensor> DcpCheckpoint::tensor_of(const DcpItem& item) {
  if (!item.why.empty()) return value_of(item);
  std::vector<TensorBox> boxes;
  FoundTensor whole;
  whole.shape = *item.shape;
  for (const DcpShard& shard : item.shards) {
    if (!shard.place) return hidden_shard(".metadata has no place for a shard");
    WEFT_TRY(FoundTensor one, shard_of(*shard.place));
    if (one.shape != *shard.size) return hidden_shard("a shard of another shape than .metadata says");
    if (&shard != &item.shards.front() && one.dtype != whole.dtype) return hidden_shard("shards of several types");
    if (item.shards.size() == 1 && is_whole(shard, whole.shape)) return one;
    if (!one.strides.empty()) return hidden_shard("a shard whose elements are not in C order");
    whole.dtype = one.dtype;
    if (!one.parts.empty()) boxes.push_back({one.parts[0].file, one.parts[0].offset, *shard.begin, *shard.size});
  }
  if (item.shards.empty()) return hidden_shard("it has no shards");
  WEFT_CHECK(place_boxes(whole, std::move(boxes)));
  return whole;
}

// Returns the tensor with its place in the file. No byte belongs to two shards, so all of them together take no more
// time than the files are long.
Result<FoundTensor> DcpCheckpoint::shard_of(const DcpPlace& place) {
  if (place.transformed) return hidden_shard("its shards are compressed, or transformed otherwise");
  WEFT_TRY(const OtherFiles::File* const file, file_of(place));
  if (file == nullptr) return hidden_shard(fmt::format("no file {} is beside .metadata", printable(*place.file)));
  if (!lies_in(place, *file)) return hidden_shard(fmt::format("a shard that ends after {}", printable(*place.file)));
  std::uint64_t& taken = taken_[file->number];
  if (place.length > file->source->size() - taken) return hidden_shard("its shards overlap others");
  taken += place.length;
  SliceSource slice(*file->source, {place.offset, place.length});
  WEFT_TRY(Layout saved, saved_in(slice));
  if (saved.tensors.size() != 1) return hidden_shard("a shard that is not one tensor of PyTorch");
  FoundTensor tensor = std::move(saved.tensors.front());
  for (TensorPart& part : tensor.parts) {
    part.file = file->number;
    part.offset += place.offset;
  }
  return tensor;
}

// Reads a file of torch.save, and notes the globals that it names.
Result<Layout> DcpCheckpoint::saved_in(SliceSource& slice) {
  WEFT_TRY(const ZipDirectory members, ZipDirectory::read(slice));
  WEFT_TRY(Layout saved, read_torch_zip(slice, members));
  for (const auto& [key, value] : saved.metadata) {
    if (key != kGlobals) continue;
    for (const std::string_view name : split(value, ' '))
      if (globals_.size() < limits::kPickleGlobalsMax && known_globals_.emplace(name).second)
        globals_.emplace_back(name);
  }
  return saved;
}

Status read_metadata(ByteSource& source, DcpMetadata& metadata) {
  if (source.size() > limits::kPickleMax)
    return Error{Errc::unsupported, fmt::format("expected at most {} bytes of {}, got {}", limits::kPickleMax,
                                                kCheckpointMetadata, source.size())};
  std::string bytes(static_cast<std::size_t>(source.size()), '\0');
  WEFT_CHECK(source.read(0, std::as_writable_bytes(std::span(bytes))));
  return read_dcp_metadata(std::move(bytes), metadata);
}

// Nothing is refused: a file .metadata may be another program's.
class Dcp final : public Format {
 public:
  std::string_view name() const override { return "dcp"; }

  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name == kCheckpointMetadata || file_name.ends_with(kCheckpointShardSuffix);
  }

  // The tensors of shards belong to .metadata.
  Result<Layout> parse(FormatInput& files) const override {
    if (files.name() != kCheckpointMetadata) return Layout{};
    Layout layout;
    layout.format = name();
    DcpMetadata metadata;
    Status read = read_metadata(files.main(), metadata);
    if (read.ok()) {
      DcpCheckpoint checkpoint(files, layout, metadata.globals);
      for (const DcpItem& item : metadata.items) WEFT_CHECK(checkpoint.add(item));
      checkpoint.finish();
    } else {
      if (!is_malformed(read.error())) return read.error();
      layout = unread_layout(read.error());
    }
    keep_globals(layout, metadata.globals);
    return layout;
  }
};

}  // namespace

const Format& dcp_format() {
  static const Dcp format;
  return format;
}

}  // namespace weft
