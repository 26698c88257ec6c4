#include "format/dcp/dcp_ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "weft/model/format.h"

namespace weft {
namespace {

constexpr std::string_view kRankPrefix = "__";
constexpr std::size_t kRankDigitsMax = 9;

struct ByPlace {
  using Place = std::pair<const Shape*, const Shape*>;  // begin and size of a shard
  bool operator()(const Place& a, const Place& b) const {
    return std::tie(*a.first, *a.second) < std::tie(*b.first, *b.second);
  }
};

// Returns nothing for more than 2^64 elements.
std::optional<std::uint64_t> elements_in(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape)
    if (__builtin_mul_overflow(count, dimension, &count)) return std::nullopt;
  return count;
}

class RankJoin {
 public:
  void add(const DcpItem& item) {
    const auto [known, fresh] = by_name_.try_emplace(item.name, Known{joined_.items.size(), {}, {}});
    if (fresh) joined_.items.push_back({item.name, item.shape, {}, item.why});
    DcpItem& first = joined_.items[known->second.item];
    const bool tensor = first.why.empty() && item.why.empty() && *first.shape == *item.shape;
    for (const DcpShard& shard : item.shards) {
      const bool new_place = tensor ? known->second.places.emplace(shard.begin, shard.size).second : fresh;
      if (tensor && !new_place && elements_in(*shard.size) == 0) continue;  // of a tensor with fewer rows than ranks
      (new_place ? first : copy_of(known->second, item)).shards.push_back(shard);
    }
  }

  DcpJoined take() {
    std::ranges::sort(joined_.items, {}, &DcpItem::name);
    std::ranges::sort(joined_.copies, {}, &DcpItem::name);
    return std::move(joined_);
  }

 private:
  struct Known {
    std::size_t item = 0;             // into items
    std::optional<std::size_t> copy;  // into copies
    std::set<ByPlace::Place, ByPlace> places;
  };

  DcpItem& copy_of(Known& known, const DcpItem& item) {
    if (!known.copy) {
      known.copy = joined_.copies.size();
      joined_.copies.push_back({item.name, item.shape, {}, item.why});
    }
    return joined_.copies[*known.copy];
  }

  std::map<std::string_view, Known> by_name_;
  DcpJoined joined_;
};

// True if the shards may be all elements of the tensor, as PyTorch counts them before it writes .metadata.
bool is_filled(const DcpItem& item) {
  if (!item.why.empty()) return true;
  std::uint64_t count = 0;
  for (const DcpShard& shard : item.shards)
    if (__builtin_add_overflow(count, elements_in(*shard.size).value_or(UINT64_MAX), &count)) return true;
  return count == elements_in(*item.shape).value_or(count);
}

}  // namespace

DcpJoined join_ranks(const std::deque<DcpMetadata>& all) {
  if (all.size() == 1) return {all.front().items, {}};
  RankJoin join;
  for (const DcpMetadata& metadata : all)
    for (const DcpItem& item : metadata.items) join.add(item);
  return join.take();
}

std::optional<std::uint32_t> checkpoint_rank(std::string_view name) {
  if (!name.starts_with(kRankPrefix)) return std::nullopt;
  name.remove_prefix(kRankPrefix.size());
  const std::string_view digits = name.substr(0, std::min(name.find_first_not_of("0123456789"), name.size()));
  const std::string_view rest = name.substr(digits.size());
  if (digits.empty() || digits.size() > kRankDigitsMax || (digits[0] == '0' && digits.size() > 1)) return std::nullopt;
  if (rest != kCheckpointMetadata && !(rest.starts_with('_') && rest.ends_with(kCheckpointShardSuffix)))
    return std::nullopt;
  std::uint32_t rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank;
}

std::string rank_metadata(std::uint32_t rank) {
  return fmt::format("{}{}{}", kRankPrefix, rank, kCheckpointMetadata);
}

Result<CheckpointParts> parts_of_checkpoint(std::vector<std::string> metadata) {
  std::deque<DcpMetadata> all;
  std::map<std::string_view, std::uint64_t> bytes;
  for (std::string& text : metadata) {
    WEFT_CHECK(read_dcp_metadata(std::move(text), all.emplace_back()));
    for (const auto& [name, least] : all.back().files) bytes[name] = std::max(bytes[name], least);
  }
  CheckpointParts parts;
  parts.files.reserve(bytes.size());
  for (const auto& [name, least] : bytes) parts.files.push_back({std::string(name), least});
  const DcpJoined joined = join_ranks(all);
  const auto unfilled = std::ranges::find_if_not(joined.items, is_filled);
  if (unfilled != joined.items.end()) parts.unfilled = unfilled->name;
  return parts;
}

}  // namespace weft
