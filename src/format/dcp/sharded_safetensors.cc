// Shards of tensors in safetensors files, as HuggingFaceStorageWriter of torch.distributed.checkpoint writes them: each
// file has the shards of one process under the tensors' names.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/boxes.h"
#include "format/layout.h"
#include "weft/model/format.h"

namespace weft {
namespace {

// The shards of one set of files. Tensors leave their files for the first one.
class ShardJoin {
 public:
  explicit ShardJoin(std::span<const ShardedFile> files) : files_(files), moved_(files.size()) {}

  void run() {
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      moved_[i].resize(files_[i].layout->tensors.size());
      for (std::size_t k = 0; k < moved_[i].size(); ++k) by_name_[files_[i].layout->tensors[k].name].emplace_back(i, k);
    }
    std::vector<FoundTensor> joined;
    for (const auto& [name, shards] : by_name_)
      if (!is_whole(shards)) add(name, shards, joined);
    by_name_.clear();
    for (std::size_t i = 0; i < files_.size(); ++i) leave(i);
    Layout& first = *files_.front().layout;
    for (const ShardedFile& file : files_.subspan(1)) first.others.push_back(file.name);
    std::ranges::move(joined, std::back_inserter(first.tensors));
    sort_by_place(first.tensors);
  }

 private:
  using Shards = std::vector<std::pair<std::uint32_t, std::size_t>>;  // file, and tensor of its layout

  const FoundTensor& tensor(const std::pair<std::uint32_t, std::size_t>& shard) const {
    return files_[shard.first].layout->tensors[shard.second];
  }

  // A tensor that one process has written alone stays in its file.
  bool is_whole(const Shards& shards) const {
    return shards.size() == 1 && std::ranges::all_of(tensor(shards.front()).begin, [](auto at) { return at == 0; });
  }

  void add(std::string_view name, const Shards& shards, std::vector<FoundTensor>& joined) {
    std::uint64_t bytes = 0;
    for (const auto& shard : shards) {
      moved_[shard.first][shard.second] = true;
      for (const TensorPart& part : tensor(shard).parts) bytes += part.length;
    }
    auto whole = join(shards);
    Layout& first = *files_.front().layout;
    if (whole.ok())
      if (Status named = check_tensor_name(name, first.tensors.size() + joined.size()); !named.ok())
        whole = named.error();
    if (!whole.ok()) return hide(first, {std::string(name), bytes, whole.error().message, {}, {}});
    whole->name = name;
    joined.push_back(*std::move(whole));
  }

  // The shape is where the last shards end, because no file has it. The loss of the last shards leaves no trace.
  Result<FoundTensor> join(const Shards& shards) const {
    FoundTensor whole;
    whole.dtype = tensor(shards.front()).dtype;
    whole.shape.resize(tensor(shards.front()).shape.size());
    std::vector<TensorBox> boxes;
    Shape first = tensor(shards.front()).begin;
    for (const auto& shard : shards) {
      const FoundTensor& one = tensor(shard);
      if (one.dtype != whole.dtype || one.shape.size() != whole.shape.size())
        return Error{Errc::unsupported, "shards of several types, or numbers of dimensions"};
      std::uint64_t end = 0;
      for (std::size_t i = 0; i < whole.shape.size(); ++i) {
        if (__builtin_add_overflow(one.begin[i], one.shape[i], &end))
          return Error{Errc::unsupported, "a shard beyond 2^64 elements"};
        whole.shape[i] = std::max(whole.shape[i], end);
        first[i] = std::min(first[i], one.begin[i]);
      }
      if (!one.parts.empty()) boxes.push_back({shard.first, one.parts.front().offset, one.begin, one.shape});
    }
    if (std::ranges::any_of(first, [](std::uint64_t at) { return at > 0; }))
      return Error{Errc::unsupported, fmt::format("its first shards are missing: it begins at {}", shape_text(first))};
    WEFT_CHECK(place_boxes(whole, std::move(boxes)));
    return whole;
  }

  void leave(std::size_t file) {
    std::vector<FoundTensor>& tensors = files_[file].layout->tensors;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < tensors.size(); ++k)
      if (!moved_[file][k]) {
        if (kept != k) tensors[kept] = std::move(tensors[k]);
        ++kept;
      }
    tensors.resize(kept);
  }

  const std::span<const ShardedFile> files_;
  std::vector<std::vector<bool>> moved_;  // by file and tensor
  std::map<std::string, Shards, std::less<>> by_name_;
};

}  // namespace

Status join_shards(std::span<const ShardedFile> files) {
  if (files.empty()) return {};
  ShardJoin(files).run();
  return check_layout(*files.front().layout);
}

}  // namespace weft
