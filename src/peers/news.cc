#include "peers/news.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"
#include "peers/health_facts.h"
#include "placement/rendezvous.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(30);  // between turns while versions are read
constexpr auto kActive = seconds(5);      // after the last chunk, of any version
// Between two questions about one manifest. A node becomes a holder a second after its last chunk at the earliest, so
// more questions would find little. On a slow link long answers take bandwidth from chunks.
constexpr auto kAskAgain = seconds(1);
constexpr auto kQuiet = seconds(1);          // after the last chunk of a version, until it is surveyed
constexpr auto kIndexedAfter = seconds(60);  // after the last chunk of a version, until its blobs are in the index
constexpr auto kSayAgain = seconds(10);      // before directories drop an announcement
constexpr auto kPatience = milliseconds(500);
constexpr auto kSilentRest = seconds(2);   // pause after a node did not answer
constexpr std::size_t kDirectories = 2;    // directory nodes of one manifest
constexpr std::size_t kManifestsMax = 64;  // announced manifests

}  // namespace

// True if the version is neither whole nor announced, and will not become whole by itself.
bool PeerNews::Version::is_over(Clock::time_point now) const {
  return !whole && !told && changed + kIndexedAfter <= now;
}

PeerNews::PeerNews(PeerNewsParts parts) : parts_(std::move(parts)) {
  worker_.start([this] { return round(); });
}

// A pause between turns is not cut short: the next turn follows soon.
void PeerNews::wake() {
  if (sleeps_) worker_.wake();
}

// Drops the version that is not whole, or else any, whose last chunk is the oldest.
void PeerNews::drop_one() {
  versions_.erase(std::ranges::min_element(
      versions_, {}, [](const auto& one) { return std::pair(one.second.whole, one.second.changed); }));
}

void PeerNews::touch(const Digest& manifest) {
  active_ = parts_.time.now();
  if (!versions_.contains(manifest) && versions_.size() >= kManifestsMax) drop_one();
  Version& version = versions_[manifest];
  version.changed = active_;
  version.survey_at = active_ + kQuiet;
  wake();
}

void PeerNews::expect(const Digest& manifest) {
  const MutexLock lock(mutex_);
  touch(manifest);
}

void PeerNews::arrived(const Digest& manifest) {
  const MutexLock lock(mutex_);
  touch(manifest);
}

void PeerNews::survey_again() {
  const MutexLock lock(mutex_);
  const auto soon = parts_.time.now() + kQuiet;  // one survey after several evictions
  for (auto& [manifest, version] : versions_) version.survey_at = std::min(version.survey_at, soon);
  wake();
}

// Returns the local manifests that other nodes published, newest first, kManifestsMax at most. Versions of this node
// need no announcement, because their records name the publisher.
Result<std::vector<Digest>> PeerNews::manifests_of_others() const {
  std::vector<std::pair<VersionId, Digest>> found;
  Renewed renewed(parts_.store);
  const auto add = [&](const VersionRow& row) -> Status {
    if (row.removed || row.publisher == parts_.self) return {};
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(const bool bare, now->is_bare(row.id));
    if (!bare) found.emplace_back(row.id, row.manifest);
    return {};
  };
  WEFT_CHECK(each_row(parts_.store, list_models(),
                      [&](const ModelRow& model) { return each_row(parts_.store, list_versions(model.id), add); }));
  renewed.end();
  std::ranges::sort(found, std::greater<>(), &std::pair<VersionId, Digest>::first);
  std::vector<Digest> out;
  for (std::size_t i = 0; i < std::min(found.size(), kManifestsMax); ++i) out.push_back(found[i].second);
  return out;
}

// Adds the versions that an earlier run of this daemon fetched: directories have dropped them.
void PeerNews::recall() {
  const auto manifests = manifests_of_others();
  if (!manifests.ok()) return log_warning("local content cannot be announced to peers: {}", manifests.error().message);
  const MutexLock lock(mutex_);
  for (const Digest& manifest : *manifests)
    if (versions_.size() < kManifestsMax) versions_.try_emplace(manifest);
}

Worker::Pause PeerNews::round() {
  if (!std::exchange(recalled_, true)) recall();
  for (const Digest& manifest : due(&Version::survey_at)) survey(manifest);
  for (const Digest& manifest : due(&Version::say_at)) tell(manifest);
  if (is_active())
    for (const Digest& manifest : parts_.view.to_ask(kAskAgain)) ask_some(manifest);
  return pause();
}

bool PeerNews::is_active() const {
  const MutexLock lock(mutex_);
  return active_ + kActive > parts_.time.now();
}

Worker::Pause PeerNews::pause() {
  const MutexLock lock(mutex_);
  const auto now = parts_.time.now();
  sleeps_ = active_ + kActive <= now;
  if (!sleeps_) return kTick;
  auto next = now + kSayAgain;
  for (const auto& [manifest, version] : versions_) next = std::min({next, version.survey_at, version.say_at});
  return std::max<Worker::Pause>(next - now, kTick);
}

std::vector<Digest> PeerNews::due(Clock::time_point Version::*at) {
  std::vector<Digest> out;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, version] : versions_)
    if (version.*at <= parts_.time.now()) out.push_back(manifest);
  return out;
}

// Fetched blobs enter the index some seconds after their last chunk, and a manifest may be on its way. So a version is
// surveyed again when twice the time since its last change has passed.
void PeerNews::survey(const Digest& manifest) {
  const auto begun = parts_.time.now();
  {
    const MutexLock lock(mutex_);
    const auto found = versions_.find(manifest);
    if (found == versions_.end()) return;
    found->second.survey_at = begun + (begun - found->second.changed);
  }
  const bool whole = holds_whole(parts_.store, manifest, [this] { return worker_.ending(); });
  if (worker_.ending()) return;
  const MutexLock lock(mutex_);
  const auto found = versions_.find(manifest);
  if (found == versions_.end()) return;
  Version& version = found->second;
  version.whole = whole;
  if (whole != version.told) version.say_at = begun;
  if (version.is_over(begun)) versions_.erase(found);
}

// Announces a version to its directory nodes, or withdraws the announcement.
void PeerNews::tell(const Digest& manifest) {
  Announce news{manifest, false};
  {
    const MutexLock lock(mutex_);
    const auto found = versions_.find(manifest);
    if (found == versions_.end()) return;
    news.whole = found->second.whole;
    found->second.told = true;
  }
  const auto nodes = directories(manifest);
  bool all = !nodes.empty();
  for (const std::string& node : nodes) all = tell(node, news) && all;
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  const auto found = versions_.find(manifest);
  if (found == versions_.end()) return;
  Version& version = found->second;
  version.told = news.whole || !all;
  const auto next = news.whole ? now + kSayAgain : Clock::time_point::max();
  version.say_at = all ? next : now + kSilentRest;
  if (version.is_over(now)) versions_.erase(found);
}

bool PeerNews::tell(const std::string& node, const Announce& news) {
  if (node != parts_.self) return call(node, news, deadline_in(kPatience)).has_value();
  parts_.directory.put(node, news);
  return true;
}

void PeerNews::ask(const Digest& manifest, Deadline deadline) {
  std::optional<std::vector<std::string>> all;
  for (const std::string& node : directories(manifest)) {
    auto found = holders(node, manifest, std::min(deadline, deadline_in(kPatience)));
    if (!found) continue;
    if (!all) all.emplace();
    std::ranges::move(*found, std::back_inserter(*all));
  }
  if (all) parts_.view.heard(manifest, *std::move(all));
}

// Asks the directory nodes of a manifest, until one lists holders.
void PeerNews::ask_some(const Digest& manifest) {
  bool nobody = false;
  for (const std::string& node : directories(manifest)) {
    auto found = holders(node, manifest, deadline_in(kPatience));
    if (found && !found->empty()) return parts_.view.heard(manifest, *std::move(found));
    nobody = nobody || found;
  }
  if (nobody) parts_.view.heard(manifest, {});
}

// Returns the other holders that one directory node lists; nothing if it does not answer.
std::optional<std::vector<std::string>> PeerNews::holders(const std::string& node, const Digest& manifest,
                                                          Deadline deadline) {
  std::vector<std::string> found;
  if (node == parts_.self) {
    found = parts_.directory.find(manifest);
  } else {
    const auto answer = call(node, AskHolders{manifest}, deadline);
    if (!answer) return {};
    auto decoded = decode_holders(*answer);
    if (!decoded.ok()) return {};
    found = *std::move(decoded);
  }
  std::erase(found, parts_.self);
  return found;
}

std::vector<std::string> PeerNews::directories(const Digest& manifest) const {
  auto nodes = parts_.links.nodes();
  if (nodes.size() > kDirectories) std::erase(nodes, parts_.view.publisher(manifest));
  return rendezvous_nodes(manifest, nodes, kDirectories);
}

// Returns nothing if the node does not answer. A node that did not answer within kPatience is left alone for
// kSilentRest.
std::optional<std::vector<std::byte>> PeerNews::call(const std::string& node, const PeerRequest& request,
                                                     Deadline deadline) {
  const auto address = parts_.links.address(node);
  if (!address || worker_.ending()) return {};
  {
    const MutexLock lock(mutex_);
    if (const auto silent = silent_.find(node); silent != silent_.end() && silent->second > parts_.time.now())
      return {};
  }
  const auto asked = Clock::now();
  auto answer = parts_.exchange.call(*address, encode_request(request), deadline);
  if (answer.ok()) {
    const auto head = (*answer)->head();
    return std::vector<std::byte>(head.begin(), head.end());
  }
  const bool had_no_time = answer.error().code == Errc::timed_out && Clock::now() < asked + kPatience;
  const bool has_full_link = parts_.links.gave_since(node, asked);
  if (had_no_time || has_full_link) return {};
  const MutexLock lock(mutex_);
  silent_[node] = parts_.time.now() + kSilentRest;
  return {};
}

}  // namespace weft
