#include "peers/news.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kTick = milliseconds(30);      // between turns while chunks arrive
constexpr auto kAskedMin = milliseconds(60);  // between two questions about one manifest
constexpr auto kAskedMax = milliseconds(1'000);
constexpr int kPerChunk = 8;               // questions to the directory while one chunk arrives
constexpr std::size_t kHoldersAtOnce = 8;  // more in an answer lengthen the pause
constexpr auto kActive = seconds(5);       // after the last chunk, of any manifest
constexpr auto kBackup = seconds(1);       // between two announcements to the second directory node
constexpr auto kSayAgain = seconds(10);    // before directories drop an announcement
constexpr auto kQuiet = seconds(30);       // after the last chunk, local chunks may have been evicted
constexpr auto kPatience = milliseconds(500);
constexpr auto kSilentRest = seconds(2);   // pause after a node did not answer
constexpr std::size_t kDirectories = 2;    // directory nodes of one manifest
constexpr std::size_t kManifestsMax = 64;  // announced manifests

}  // namespace

PeerNews::PeerNews(PeerNewsParts parts) : parts_(std::move(parts)) {
  worker_.start([this] { return round(); });
}

// A pause between turns is not cut short: the next turn follows soon.
void PeerNews::wake() {
  if (sleeps_) worker_.wake();
}

// Drops the manifest whose last chunk is the oldest.
void PeerNews::drop_one() {
  const auto oldest = std::min_element(
      had_.begin(), had_.end(), [](const auto& a, const auto& b) { return a.second.changed < b.second.changed; });
  had_.erase(oldest);
}

void PeerNews::expect(const Digest& manifest) {
  const auto map = parts_.view.chunks(manifest);
  const MutexLock lock(mutex_);
  active_ = Clock::now();
  arrived_at_ = {};
  gap_ = {};
  if (map) {
    if (!had_.contains(manifest) && had_.size() >= kManifestsMax) drop_one();
    Had& had = had_[manifest];
    had.map = map;
    had.dirty = true;
  }
  wake();
}

void PeerNews::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  const MutexLock lock(mutex_);
  active_ = Clock::now();
  const auto found = had_.find(manifest);
  if (found == had_.end()) return;
  Had& had = found->second;
  if (arrived_at_ != Clock::time_point{}) gap_ = active_ - arrived_at_;
  arrived_at_ = active_;
  had.changed = active_;
  if (!had.chunks) had.chunks.emplace(*had.map);
  for (const ChunkRun& run : runs)
    if (const auto number = had.map->number_of(run.id)) had.chunks->add(*number + run.first, run.count);
  had.dirty = true;
  wake();
}

void PeerNews::survey_again() {
  const MutexLock lock(mutex_);
  for (auto& [manifest, had] : had_) {
    had.chunks.reset();
    had.said = {};
    had.dirty = true;
  }
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

// Adds the manifests of chunks that an earlier run of this daemon fetched: directories have dropped them.
void PeerNews::recall() {
  const auto digests = manifests_of_others();
  if (!digests.ok()) return log_warning("local content cannot be announced to peers: {}", digests.error().message);
  for (const Digest& digest : *digests) {
    const auto bytes = parts_.store.open_manifest(digest);
    if (!bytes.ok()) continue;
    const auto manifest = decode_manifest((*bytes)->bytes());
    if (!manifest.ok()) continue;
    auto map = std::make_shared<const ChunkMap>(*manifest);
    const MutexLock lock(mutex_);
    if (worker_.ending() || had_.size() >= kManifestsMax) return;
    if (Had& had = had_[digest]; !had.map) had.map = std::move(map);
  }
}

Worker::Pause PeerNews::round() {
  if (!std::exchange(recalled_, true)) recall();
  {
    const MutexLock lock(mutex_);
    sleeps_ = false;
  }
  const Turn done = turn();
  const MutexLock lock(mutex_);
  sleeps_ = done != Turn::moving && active_ + kActive <= Clock::now();
  if (!sleeps_) return kTick;
  return done == Turn::untold ? kSilentRest : kSayAgain;
}

// Returns the pause between two questions about one manifest. News need not be fresher than a part of the time that a
// chunk takes to arrive, and news of many holders are long: on a slow link both would take bandwidth from chunks.
PeerNews::Clock::duration PeerNews::pace(Clock::time_point now) const {
  const MutexLock lock(mutex_);
  const bool began = arrived_at_ != Clock::time_point{};
  const auto chunk = began ? std::max(gap_, now - arrived_at_) / kPerChunk : Clock::duration{};
  const auto many = kAskedMin * static_cast<int>(holders_) / static_cast<int>(kHoldersAtOnce);
  return std::clamp<Clock::duration>(std::max<Clock::duration>(chunk, many), kAskedMin, kAskedMax);
}

PeerNews::Turn PeerNews::turn() {
  const auto now = Clock::now();
  const auto pace = this->pace(now);
  bool all_replicated = true;
  auto to_ask = parts_.view.to_ask(std::chrono::ceil<milliseconds>(pace));
  for (const Digest& manifest : due(now, pace / 2)) {
    const Told told = tell(manifest);
    all_replicated = all_replicated && told.all;
    if (told.heard) std::erase(to_ask, manifest);
  }
  {
    const MutexLock lock(mutex_);
    if (active_ + kActive <= now) return all_replicated ? Turn::still : Turn::untold;
  }
  for (const Digest& manifest : to_ask) ask_some(manifest);
  return Turn::moving;
}

// Returns the manifests to announce now. `pause`: between two announcements of one manifest.
std::vector<Digest> PeerNews::due(Clock::time_point now, Clock::duration pause) {
  std::vector<Digest> out;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, had] : had_)
    if ((had.dirty && had.said + pause <= now) || had.said + kSayAgain <= now ||
        (had.backup_waits && had.backup_said + kBackup <= now))
      out.push_back(manifest);
  return out;
}

// Returns the chunks of all blobs in the index.
ChunkSet PeerNews::survey(const ChunkMap& map) const {
  ChunkSet chunks(map);
  Renewed renewed(parts_.store);
  for (const auto& [id, first] : map.blobs()) {
    const auto now = renewed.get();
    if (!now.ok()) return chunks;
    if ((*now)->find_blob(id).ok()) chunks.add(first, chunk_count(id.length));
  }
  return chunks;
}

// Returns the announcement of a manifest. Nothing if no chunk is local and none was announced, or if the entry was
// dropped.
std::optional<HadChunks> PeerNews::news_of(const Digest& manifest) {
  std::shared_ptr<const ChunkMap> map;
  bool look = false;
  bool quiet = false;
  {
    const MutexLock lock(mutex_);
    const auto known = had_.find(manifest);
    if (known == had_.end()) return {};
    const Had& had = known->second;
    map = had.map;
    quiet = had.changed + kQuiet < Clock::now();
    look = quiet || had.said == Clock::time_point{};
  }
  std::optional<ChunkSet> here = look ? std::optional(survey(*map)) : std::nullopt;
  const MutexLock lock(mutex_);
  const auto known = had_.find(manifest);
  if (known == had_.end()) return {};
  Had& had = known->second;
  if (!here && !had.chunks) return {};  // survey_again() reset it, and it is due again
  if (here && had.chunks && !quiet) here->add(*had.chunks);
  if (here) had.chunks = std::move(here);
  had.dirty = false;
  had.said = Clock::now();
  const bool was_told = std::exchange(had.told, !had.chunks->none());
  if (!was_told && !had.told) return {};
  return had.chunks->told(manifest, *map);
}

// Announces a manifest to its directory nodes. The second one gets news less often, because it is asked only if the
// first is silent.
PeerNews::Told PeerNews::tell(const Digest& manifest) {
  const auto news = news_of(manifest);
  if (!news) return {};
  const auto nodes = directories(manifest);
  Told told{!nodes.empty(), false};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0 && told.all && !backup_is_due(manifest)) break;
    told.all = tell(nodes[i], *news, told.heard) && told.all;
  }
  if (told.all) return told;
  const MutexLock lock(mutex_);
  if (const auto had = had_.find(manifest); had != had_.end()) had->second.dirty = true;
  return told;
}

// Announces to one directory node. Its answer lists other holders, unless an earlier node has listed some.
bool PeerNews::tell(const std::string& node, const HadChunks& news, bool& heard) {
  std::vector<HadChunks> had;
  if (node == parts_.self) {
    parts_.directory.put(node, news);
    had = others_of(parts_.directory.find(news.manifest));
  } else {
    const auto answer = call(node, Announce{{news}, !heard}, deadline_in(kPatience));
    if (!answer) return false;
    if (auto said = decode_holders(*answer); !heard && said.ok()) had = others_of(std::move(said).value());
  }
  if (heard || had.empty()) return true;
  heard = true;
  parts_.view.heard(news.manifest, std::move(had));
  return true;
}

std::vector<HadChunks> PeerNews::others_of(std::vector<HadChunks> had) {
  {
    const MutexLock lock(mutex_);
    holders_ = had.size();
  }
  std::erase_if(had, [this](const HadChunks& one) { return one.node == parts_.self; });
  return had;
}

bool PeerNews::backup_is_due(const Digest& manifest) {
  const MutexLock lock(mutex_);
  const auto found = had_.find(manifest);
  if (found == had_.end()) return true;
  Had& had = found->second;
  const auto now = Clock::now();
  had.backup_waits = had.backup_said + kBackup > now;
  if (!had.backup_waits) had.backup_said = now;
  return !had.backup_waits;
}

void PeerNews::ask(const Digest& manifest, Deadline deadline) {
  std::optional<std::vector<HadChunks>> all;
  for (const std::string& node : directories(manifest)) {
    auto had = holders(node, manifest, std::min(deadline, deadline_in(kPatience)));
    if (!had) continue;
    if (!all) all.emplace();
    std::ranges::move(*had, std::back_inserter(*all));
  }
  if (all) parts_.view.heard(manifest, *std::move(all));
}

// Asks the directory nodes of a manifest, until one lists holders.
void PeerNews::ask_some(const Digest& manifest) {
  bool nobody = false;
  for (const std::string& node : directories(manifest)) {
    auto had = holders(node, manifest, deadline_in(kPatience));
    if (had && !had->empty()) return parts_.view.heard(manifest, *std::move(had));
    nobody = nobody || had;
  }
  if (nobody) parts_.view.heard(manifest, {});
}

// Returns the holders that one directory node lists; nothing if it does not answer.
std::optional<std::vector<HadChunks>> PeerNews::holders(const std::string& node, const Digest& manifest,
                                                        Deadline deadline) {
  if (node == parts_.self) return others_of(parts_.directory.find(manifest));
  const auto answer = call(node, AskHolders{manifest}, deadline);
  if (!answer) return {};
  auto had = decode_holders(*answer);
  return had.ok() ? std::optional(others_of(std::move(had).value())) : std::nullopt;
}

std::vector<std::string> PeerNews::directories(const Digest& manifest) const {
  auto nodes = parts_.links.nodes();
  if (nodes.size() > kDirectories) std::erase(nodes, parts_.view.publisher(manifest));
  return directory_nodes(manifest, nodes, kDirectories);
}

// Returns nothing if the node does not answer. A node that did not answer within kPatience is left alone for
// kSilentRest.
std::optional<std::vector<std::byte>> PeerNews::call(const std::string& node, const PeerRequest& request,
                                                     Deadline deadline) {
  const auto address = parts_.links.address(node);
  if (!address) return {};
  {
    const MutexLock lock(mutex_);
    if (const auto silent = silent_.find(node); silent != silent_.end() && silent->second > Clock::now()) return {};
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
  silent_[node] = Clock::now() + kSilentRest;
  return {};
}

}  // namespace weft
