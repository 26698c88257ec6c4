#include "peers/view.h"

#include <algorithm>
#include <utility>

#include "os/sys.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kKnownMax = 1024;  // manifests
constexpr std::size_t kLacksMax = 4096;
constexpr std::size_t kGaveMax = 8;
constexpr auto kLacksFor = std::chrono::seconds(2);
constexpr auto kLacksYoungFor = std::chrono::milliseconds(10);
constexpr auto kExpectedFor = std::chrono::seconds(30);

}  // namespace

// Returns the entry of a manifest. If there are too many, drops the one that was expected longest ago.
PeerView::Known& PeerView::entry(const Digest& manifest) {
  if (known_.size() >= kKnownMax && !known_.contains(manifest)) {
    const auto oldest = std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second.expected < b.second.expected;
    });
    known_.erase(oldest);
  }
  return known_[manifest];
}

// Finds, for blobs that another version had first, that version's manifest and publisher, and the publishers of parents
// that share bytes. The record of a parent is local even if its manifest is not.
Status PeerView::find_owners(const VersionRow& version, std::span<const ContentId> blobs, Known& known,
                             std::map<Digest, std::string>& others) {
  Renewed renewed(store_);
  for (const ParentRef& parent : version.parents) {
    if (parent.same_bytes == 0) continue;
    WEFT_TRY(Snapshot * now, renewed.get());
    if (const auto row = now->version(parent.id); row.ok()) known.kin.push_back(row->publisher);
  }
  for (const ContentId& id : blobs) {
    WEFT_TRY(Snapshot * now, renewed.get(2));
    WEFT_TRY(const auto owner, now->owner(id));
    if (!owner || owner->first == version.id) continue;
    WEFT_TRY(const VersionRow row, now->version(owner->first));
    known.inherited.emplace(id, row.manifest);
    others.emplace(row.manifest, row.publisher);
  }
  return {};
}

void PeerView::expect(const VersionRow& version, std::span<const ContentId> blobs) {
  Known fresh;
  std::map<Digest, std::string> others;
  // A failure here is harmless: directories may name the holders.
  static_cast<void>(find_owners(version, blobs, fresh, others));
  const auto now = time_.now();
  const MutexLock lock(mutex_);
  for (const auto& [other, publisher] : others) {
    Known& known = entry(other);
    known.publisher = publisher;
    known.expected = now;
  }
  Known& known = entry(version.manifest);
  known.publisher = version.publisher;
  known.inherited.merge(fresh.inherited);
  known.kin = std::move(fresh.kin);
  known.expected = now;
  known.young_until = now + youth_left(version, now_ns());
}

std::string PeerView::publisher(const Digest& manifest) const {
  const MutexLock lock(mutex_);
  const auto found = known_.find(manifest);
  return found == known_.end() ? "" : found->second.publisher;
}

// Adds a candidate, unless it is this node, has replied that it lacks `what`, or is in `out` already.
void PeerView::put(const std::string& node, const Digest& what, std::vector<std::string>& out) const {
  const auto lacking = lacking_.find({node, what});
  if (node.empty() || node == self_ || (lacking != lacking_.end() && lacking->second > time_.now())) return;
  if (std::ranges::find(out, node) == out.end()) out.push_back(node);
}

void PeerView::add(const Known& known, const Digest& what, std::vector<std::string>& out) const {
  for (const std::string& node : known.holders) put(node, what, out);
  put(known.publisher, what, out);
  for (const std::string& node : known.gave) put(node, what, out);
}

// Holders of the version that had the blob first hold it, and so do holders of the version's own manifest.
std::vector<std::string> PeerView::candidates(const Digest& manifest, const ChunkRun* run) {
  std::vector<std::string> out;
  const MutexLock lock(mutex_);
  const auto found = known_.find(manifest);
  if (found == known_.end()) return out;
  found->second.expected = time_.now();
  const Digest& what = run == nullptr ? manifest : run->id.root;
  if (run != nullptr) {
    const auto inherited = found->second.inherited.find(run->id);
    const auto other = inherited == found->second.inherited.end() ? known_.end() : known_.find(inherited->second);
    if (other != known_.end()) add(other->second, what, out);
  }
  add(found->second, what, out);
  return out;
}

std::vector<std::string> PeerView::kin(const Digest& manifest, const ChunkRun* run) const {
  std::vector<std::string> out;
  const Digest& what = run == nullptr ? manifest : run->id.root;
  const MutexLock lock(mutex_);
  if (const auto found = known_.find(manifest); found != known_.end())
    for (const std::string& node : found->second.kin) put(node, what, out);
  return out;
}

std::vector<std::string> PeerView::among(std::span<const std::string> nodes, const Digest& manifest,
                                         const ChunkRun* run) const {
  std::vector<std::string> out;
  const Digest& what = run == nullptr ? manifest : run->id.root;
  const MutexLock lock(mutex_);
  for (const std::string& node : nodes) put(node, what, out);
  return out;
}

void PeerView::gave(const Digest& manifest, const std::string& node) {
  const MutexLock lock(mutex_);
  const auto found = known_.find(manifest);
  if (found == known_.end()) return;
  std::vector<std::string>& gave = found->second.gave;
  if (std::ranges::find(gave, node) != gave.end()) return;
  if (gave.size() >= kGaveMax) gave.erase(gave.begin());
  gave.push_back(node);
}

// A node that is newly listed may have received the bytes that it lacked, so its lacks are dropped.
void PeerView::heard(const Digest& manifest, std::vector<std::string> holders) {
  const MutexLock lock(mutex_);
  const auto found = known_.find(manifest);
  if (found == known_.end()) return;
  const auto& before = found->second.holders;
  for (const std::string& node : holders) {
    if (std::ranges::find(before, node) != before.end()) continue;
    auto at = lacking_.lower_bound({node, Digest{}});
    while (at != lacking_.end() && at->first.first == node) at = lacking_.erase(at);
  }
  found->second.holders = std::move(holders);
}

bool PeerView::is_young(const Digest& manifest, const std::string& publisher) const {
  const auto known = known_.find(manifest);
  return known != known_.end() && known->second.publisher == publisher && time_.now() < known->second.young_until;
}

bool PeerView::may_come(const Digest& manifest, const std::string& node) const {
  const MutexLock lock(mutex_);
  return is_young(manifest, node);
}

void PeerView::lacks(const Digest& manifest, const ChunkRun* run, const std::string& node) {
  const MutexLock lock(mutex_);
  if (lacking_.size() >= kLacksMax) lacking_.clear();
  const auto lasts = is_young(manifest, node) ? kLacksYoungFor : kLacksFor;
  lacking_[{node, run == nullptr ? manifest : run->id.root}] = time_.now() + lasts;
}

std::vector<Digest> PeerView::to_ask(std::chrono::milliseconds age) {
  std::vector<Digest> out;
  const auto now = time_.now();
  const MutexLock lock(mutex_);
  for (auto& [manifest, known] : known_) {
    if (known.expected + kExpectedFor < now || known.asked + age > now) continue;
    known.asked = now;
    out.push_back(manifest);
  }
  return out;
}

}  // namespace weft
