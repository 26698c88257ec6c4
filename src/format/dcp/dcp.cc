// Distributed checkpoints of torch.distributed.checkpoint: a file .metadata, or `__N.metadata` of each rank N, and
// .distcp files beside it, whose items are files of torch.save with one tensor each, one after the other. A tensor may
// have many shards.
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <iterator>
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
#include "format/dcp/dcp_ranks.h"
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
  Status add_copy(const DcpItem& item);
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

// A tensor that several ranks have whole, or a tensor of each rank under one name: no file says which. The bytes of
// equal copies are cuts of equal bytes, so they are stored once.
Status DcpCheckpoint::add_copy(const DcpItem& item) {
  for (const DcpShard& shard : item.shards) {
    auto tensor = shard.place ? shard_of(*shard.place) : Result<FoundTensor>(hidden_shard(""));
    if (!tensor.ok() && !is_malformed(tensor.error())) return std::move(tensor).error();
    if (!tensor.ok()) WEFT_CHECK(cut({item.name, nullptr, {shard}}));
    if (tensor.ok()) std::ranges::move(tensor->parts, std::back_inserter(layout_.cuts));
  }
  if (!item.why.empty()) return {};  // the value of the first rank is listed
  return tensors_.add(hidden_shard("several ranks have it; that of the first of them is shown"),
                      {item.name, bytes_of(item), "", {}, {}});
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

// Reads the metadata of a checkpoint, of all ranks together not more than one file may have. Adds what it has read even
// if it fails.
class MetadataReader {
 public:
  explicit MetadataReader(std::deque<DcpMetadata>& all) : all_(all) {}

  Status add(ByteSource& source) {
    if (source.size() > left_)
      return Error{Errc::unsupported, fmt::format("expected at most {} bytes of {}, got {} more", limits::kPickleMax,
                                                  kCheckpointMetadata, source.size() - left_)};
    left_ -= source.size();
    std::string bytes(static_cast<std::size_t>(source.size()), '\0');
    WEFT_CHECK(source.read(0, std::as_writable_bytes(std::span(bytes))));
    return read_dcp_metadata(std::move(bytes), all_.emplace_back());
  }

 private:
  std::deque<DcpMetadata>& all_;
  std::uint64_t left_ = limits::kPickleMax;
};

// Reads .metadata, or that of all ranks.
Status read_all(FormatInput& files, std::deque<DcpMetadata>& all) {
  MetadataReader reader(all);
  WEFT_CHECK(reader.add(files.main()));
  if (files.name() == kCheckpointMetadata) return {};
  for (std::uint32_t rank = 1;; ++rank) {
    WEFT_TRY(const auto next, if_there(files.beside(rank_metadata(rank))));
    if (!next) return {};
    WEFT_CHECK(reader.add(**next));
  }
}

std::vector<std::string> globals_of(const std::deque<DcpMetadata>& all) {
  std::vector<std::string> globals;
  std::unordered_set<std::string_view> known;
  for (const DcpMetadata& metadata : all)
    for (const std::string& name : metadata.globals)
      if (globals.size() < limits::kPickleGlobalsMax && known.insert(name).second) globals.push_back(name);
  return globals;
}

// Nothing is refused: a file .metadata may be another program's.
class Dcp final : public Format {
 public:
  std::string_view name() const override { return "dcp"; }

  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name == kCheckpointMetadata || file_name.ends_with(kCheckpointShardSuffix) ||
           checkpoint_rank(file_name);
  }

  // The tensors of shards belong to .metadata, or to that of the first rank. The library reads .metadata if there are
  // both.
  Result<Layout> parse(FormatInput& files) const override {
    if (files.name() == kCheckpointMetadata) return checkpoint(files);
    if (files.name().ends_with(kCheckpointShardSuffix)) return Layout{};
    WEFT_TRY(const auto whole, if_there(files.beside(kCheckpointMetadata)));
    if (whole) return Layout{};
    const std::uint32_t rank = *checkpoint_rank(files.name());
    if (rank == 0) return checkpoint(files);
    WEFT_TRY(const auto before, if_there(files.beside(rank_metadata(rank - 1))));
    if (before) return Layout{};
    return unread_layout(
        {Errc::unsupported, fmt::format("no {} of the rank before is beside it", rank_metadata(rank - 1))});
  }

 private:
  Result<Layout> checkpoint(FormatInput& files) const {
    Layout layout;
    layout.format = name();
    std::deque<DcpMetadata> all;
    const Status read = read_all(files, all);
    std::vector<std::string> globals = globals_of(all);
    if (read.ok()) {
      DcpCheckpoint checkpoint(files, layout, globals);
      const DcpJoined joined = join_ranks(all);
      for (const DcpItem& item : joined.items) WEFT_CHECK(checkpoint.add(item));
      for (const DcpItem& item : joined.copies) WEFT_CHECK(checkpoint.add_copy(item));
      checkpoint.finish();
    } else {
      if (!is_malformed(read.error())) return read.error();
      layout = unread_layout(read.error());
    }
    keep_globals(layout, globals);
    return layout;
  }
};

}  // namespace

const Format& dcp_format() {
  static const Dcp format;
  return format;
}

}  // namespace weft
