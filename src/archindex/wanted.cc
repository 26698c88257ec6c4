#include "archindex/wanted.h"

#include <bit>
#include <cstring>

#include "archindex/class.h"
#include "archindex/common.h"

namespace weft {

WantedItems::WantedItems(std::span<const ArchItem> items) : slots_(std::bit_ceil(items.size() * 2 + 1)) {
  for (const ArchItem& item : items) slot_of(arch_key(item)) = arch_key(item);
}

// Ids are digests: any bytes of them are as good as a hash.
Bytes& WantedItems::slot_of(Bytes key) {
  std::uint32_t hash = 0;
  std::memcpy(&hash, key.data() + 1, sizeof hash);
  std::size_t at = hash & (slots_.size() - 1);
  while (!slots_[at].empty() && slots_[at] != key) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

// What is shared has an input on the level before that is shared: where a whole level has none, nothing follows.
Result<SharedItems> shared_with(Txn& txn, const WantedItems& wanted, Bytes class_key) {
  SharedItems found;
  WEFT_CHECK(each_part(txn, class_key, [&](const ArchPart& part) -> Result<bool> {
    const std::uint64_t before = found.shared;
    for (std::size_t at = 0; at < part.ids.size(); at += kArchKeyBytes)
      found.shared += wanted.has(part.ids.substr(at, kArchKeyBytes)) ? 1U : 0U;
    found.compared += part.ids.size() / kArchKeyBytes;
    return found.shared > before || part.level_last < part.level_first + 2;
  }));
  return found;
}

}  // namespace weft
