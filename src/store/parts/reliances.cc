#include "store/parts/reliances.h"

namespace weft {
namespace {

constexpr auto kUnsureFor = std::chrono::seconds(60);  // more than the registry's decision and the mirror take

}  // namespace

std::uint64_t Reliances::add(const Promotion& promotion) {
  const MutexLock lock(mutex_);
  ++count_;
  const auto begin = [number = count_](Use& use) {
    use.last = number;
    ++use.open;
  };
  for (const PackId pack : promotion.held) begin(uses_[pack]);
  for (const PackId pack : promotion.brought) begin(uses_[pack]);
  begin(manifest_uses_[promotion.manifest]);
  return count_;
}

template <class Uses, class Key>
void Reliances::end_use(Uses& uses, const Key& key, bool sure) {
  const auto at = uses.find(key);
  if (at == uses.end()) return;
  Use& use = at->second;
  if (!sure) use.unsure_until = Clock::now() + kUnsureFor;
  --use.open;
  if (!use.is_needed()) uses.erase(at);
}

void Reliances::end(const Promotion& promotion, bool sure) {
  if (promotion.number == 0) return;
  const MutexLock lock(mutex_);
  for (const PackId pack : promotion.held) end_use(uses_, pack, sure);
  for (const PackId pack : promotion.brought) end_use(uses_, pack, sure);
  end_use(manifest_uses_, promotion.manifest, sure);
}

bool Reliances::is_last(PackId pack, std::uint64_t number) const {
  const MutexLock lock(mutex_);
  const auto at = uses_.find(pack);
  return at != uses_.end() && at->second.last == number;
}

std::vector<PackId> Reliances::packs() const {
  const MutexLock lock(mutex_);
  std::vector<PackId> packs;
  for (const auto& [pack, use] : uses_) packs.push_back(pack);
  return packs;
}

bool Reliances::is_needed(PackId pack) const {
  const MutexLock lock(mutex_);
  const auto at = uses_.find(pack);
  return at != uses_.end() && at->second.is_needed();
}

bool Reliances::is_needed(const Digest& manifest) const {
  const MutexLock lock(mutex_);
  const auto at = manifest_uses_.find(manifest);
  return at != manifest_uses_.end() && at->second.is_needed();
}

}  // namespace weft
