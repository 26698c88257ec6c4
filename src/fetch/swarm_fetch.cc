#include "fetch/swarm_fetch.h"

#include <algorithm>

namespace weft {

bool SwarmFetch::may_bring(const Transfer& transfer, std::uint64_t version_bytes) {
  return transfer.file && version_bytes > kSwarmBytesMin && transfer.pack->id() != kPassingPack;
}

bool SwarmFetch::takes(const Transfer& transfer, std::size_t unit) const {
  return !transfer.is_same(unit) && has_swarm(transfer);
}

bool SwarmFetch::has_swarm(const Transfer& transfer) const {
  const bool may_begin = !transfer.is_straight || has_joined(transfer.manifest);
  return transfer.may_swarm && may_begin && !rests(transfer.manifest);
}

bool SwarmFetch::rests(const Digest& manifest) const {
  const auto at = versions_.find(manifest);
  return at != versions_.end() && at->second.rests_until > Clock::now();
}

void SwarmFetch::add(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  Version& version = versions_[transfer->manifest];
  drop_past(version);
  if (version.units.empty()) version.moved = Clock::now();
  version.units[transfer].insert(unit);
  transfer->queue(unit, UnitState::in_swarm);
  call(Call::Kind::want, *transfer, unit);
}

// Consecutive chunks of one call are one run.
void SwarmFetch::call(Call::Kind kind, const Transfer& transfer, std::size_t unit) {
  const Digest& manifest = transfer.manifest;
  const ChunkRun& run = transfer.plan.units[unit].run;
  const bool joins =
      kind == Call::Kind::want && !calls_.empty() && calls_.back().kind == kind && calls_.back().manifest == manifest;
  if (!joins) calls_.push_back({kind, manifest, {}});
  if (transfer.bases) calls_.back().coded = true;
  std::vector<ChunkRun>& runs = calls_.back().runs;
  if (!runs.empty() && runs.back().id == run.id && runs.back().first + runs.back().count == run.first)
    runs.back().count += run.count;
  else
    runs.push_back(run);
  if (calls_.size() == 1) wake_();
}

void SwarmFetch::drop_past() {
  for (auto& [manifest, version] : versions_) drop_past(version);
}

// Drops units from the front of each transfer that neither wait for the swarm nor run, and then empty transfers.
void SwarmFetch::drop_past(Version& version) {
  for (auto& [transfer, units] : version.units) {
    const auto is_past = [&of = *transfer](std::size_t unit) {
      return of.state(unit) != UnitState::in_swarm && of.state(unit) != UnitState::running;
    };
    while (!units.empty() && is_past(*units.begin())) units.erase(units.begin());
  }
  std::erase_if(version.units, [](const auto& one) { return one.second.empty(); });
}

bool SwarmFetch::has(const Transfer& transfer) const {
  const auto at = versions_.find(transfer.manifest);
  return at != versions_.end() && std::ranges::any_of(at->second.units, [&](const auto& one) {
           return one.first.get() == &transfer && lacks_some(transfer, one.second);
         });
}

bool SwarmFetch::lacks_some(const Transfer& transfer, const std::set<std::size_t>& units) {
  return std::ranges::any_of(units, [&](std::size_t unit) { return transfer.state(unit) == UnitState::in_swarm; });
}

// Returns how many of these units wait for the swarm.
std::size_t SwarmFetch::lacks(const Transfer& transfer, const std::set<std::size_t>& units) {
  return static_cast<std::size_t>(
      std::ranges::count_if(units, [&](std::size_t unit) { return transfer.state(unit) == UnitState::in_swarm; }));
}

std::size_t SwarmFetch::transfers(const Digest& manifest) {
  const auto at = versions_.find(manifest);
  if (at == versions_.end()) return 0;
  drop_past(at->second);
  return at->second.units.size();
}

std::size_t SwarmFetch::units() const {
  std::size_t count = 0;
  for (const auto& [manifest, version] : versions_)
    for (const auto& [transfer, units] : version.units) count += lacks(*transfer, units);
  return count;
}

std::vector<Digest> SwarmFetch::manifests() const {
  std::vector<Digest> out;
  for (const auto& [manifest, version] : versions_) out.push_back(manifest);
  return out;
}

std::vector<Digest> SwarmFetch::silent() {
  const auto now = Clock::now();
  std::vector<Digest> out;
  for (auto& [manifest, version] : versions_) {
    drop_past(version);
    const bool gives =
        version.reads > 0 || now < version.moved + silence_max(patience_);  // a read has its own patience
    const auto lacks_some = [](const auto& of) { return SwarmFetch::lacks_some(*of.first, of.second); };
    if (!gives && std::ranges::any_of(version.units, lacks_some)) out.push_back(manifest);
  }
  std::erase_if(versions_, [&](const auto& one) {
    const Version& version = one.second;
    return version.units.empty() && version.reads == 0 && version.rests_until <= now;
  });
  return out;
}

std::vector<SwarmFetch::Unit> SwarmFetch::leave(const Digest& manifest) {
  std::vector<Unit> out;
  Version& version = versions_[manifest];
  version.rests_until = Clock::now() + patience_;
  for (const auto& [transfer, units] : std::exchange(version.units, {}))
    for (const std::size_t unit : units) {
      if (transfer->state(unit) != UnitState::in_swarm) continue;
      transfer->queue(unit, transfer->is_read ? UnitState::queued : UnitState::idle);
      if (transfer->is_read) out.push_back({transfer, unit});
    }
  calls_.push_back({Call::Kind::leave, manifest, {}});
  if (calls_.size() == 1) wake_();
  return out;
}

bool SwarmFetch::put_back(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  transfer->put_back(unit);
  if (!takes(*transfer, unit)) return false;
  transfer->queue(unit, UnitState::in_swarm);
  versions_[transfer->manifest].units[transfer].insert(unit);
  return true;
}

std::shared_ptr<OfferedUnit> SwarmFetch::take_offer() {
  if (!has_offer()) return nullptr;
  auto unit = std::move(offers_.front());
  offers_.pop_front();
  ++reads_;
  ++versions_[unit->manifest()].reads;
  return unit;
}

void SwarmFetch::ended(const Digest& manifest, bool gave) {
  --reads_;
  Version& version = versions_[manifest];
  --version.reads;
  if (gave) version.moved = Clock::now();
}

bool SwarmFetch::Reader::waits_for(const std::shared_ptr<Transfer>& transfer, std::size_t unit) {
  if (any_order_) return true;
  if (!swarm_.takes(*transfer, unit)) return false;
  const auto now = Clock::now();
  const auto [at, first] = since_.try_emplace({transfer, unit}, now);
  if (first) swarm_.call(Call::Kind::wait_for, *transfer, unit);
  return now < at->second + reader_wait(swarm_.patience_);
}

SwarmFetch::Reader::~Reader() {
  for (const auto& [waited, since] : since_) swarm_.call(Call::Kind::stop_waiting, *waited.first, waited.second);
}

}  // namespace weft
