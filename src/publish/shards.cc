#include "publish/shards.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace weft {
namespace {

using Names = std::unordered_set<std::string_view>;

// Returns nothing for a shard that is kept without its tensors.
std::optional<Names> tensor_names(const File& file) {
  if (!why_no_tensors(file).empty()) return std::nullopt;
  Names names;
  for (const Tensor& tensor : file.tensors) names.insert(tensor.name);
  return names;
}

}  // namespace

bool is_shard_index(std::string_view path) {
  return must_be_sound(path) || path.ends_with(".bin.index.json");
}

bool must_be_sound(std::string_view path) {
  return path.ends_with(".safetensors.index.json");
}

Result<std::string> check_shards(std::string_view where, std::string_view path,
                                 const std::map<std::string, std::string>& index, const Manifest& manifest) {
  std::string directory(path.substr(0, path.rfind('/') + 1));  // npos + 1 is 0: no directory
  std::unordered_map<std::string_view, std::optional<Names>> shards;
  std::string first;
  std::uint64_t misplaced = 0;
  for (const auto& [tensor, shard] : index) {
    auto known = shards.find(shard);
    if (known == shards.end()) {
      const File* file = find_file(manifest, FileRole::published, directory + shard);
      if (file == nullptr)
        return Error{Errc::invalid, fmt::format("{}: expected the shard {} in its directory, got no such file", where,
                                                printable(shard))};
      known = shards.emplace(shard, tensor_names(*file)).first;
    }
    if (!known->second || known->second->contains(tensor)) continue;
    ++misplaced;
    if (misplaced == 1)
      first = fmt::format("expected tensor {} in {}, got none of that name", printable(tensor), printable(shard));
  }
  if (misplaced > 1) first += fmt::format("; {} tensors in all are not in their shard", misplaced);
  return first;
}

}  // namespace weft
