#include "placement/rendezvous.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/sha256.h"

namespace weft {
namespace {

std::uint64_t first_number(const Digest& digest) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8U | digest.bytes[i];
  return number;
}

}  // namespace

std::vector<std::string> rendezvous_nodes(const Digest& key, std::span<const std::string> nodes,
                                          std::size_t count_max) {
  std::vector<std::pair<std::uint64_t, std::string>> weighed;
  for (const std::string& node : nodes) {
    const std::uint64_t hash = first_number(sha256(std::as_bytes(std::span(node))));
    weighed.emplace_back(rendezvous_weight(first_number(key), hash), node);
  }
  const std::size_t count = std::min(count_max, weighed.size());
  std::partial_sort(weighed.begin(), weighed.begin() + static_cast<std::ptrdiff_t>(count), weighed.end(),
                    std::greater<>());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::move(weighed[i].second));
  return out;
}

}  // namespace weft
