#include "registry/mirror.h"

#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>

#include "base/limits.h"
#include "base/log.h"
#include "base/sha256.h"
#include "diskformat/uuid.h"
#include "os/sys.h"
#include "registry/registry_records.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

// Changes per commit. The index keeps the memory of the largest commit, about 12 KiB per change. Other writers wait for
// the commit.
constexpr std::size_t kChangesAtOnce = limits::kBatchItems;
constexpr std::size_t kChangesUntrimmed = 1'024;
constexpr auto kFirstPause = std::chrono::milliseconds(100);
constexpr auto kLongestPause = std::chrono::milliseconds(2'000);
constexpr int kRoundsMax = 100;  // lists of one reconciliation: each follows a change of another node
constexpr auto kWatchWait = std::chrono::seconds(60);

}  // namespace

Mirror::Mirror(Parts parts)
    : parts_(std::move(parts)), mark_file_(parts_.store.directory() / "registry"), retry_(kFirstPause, kLongestPause) {
  status_.shared = true;
  status_.connected = false;
  status_.complete = false;
  status_.trouble = "etcd has not answered yet";
  status_.since_ns = now_ns();
  mark_ = mark_file_.read();
  status_.generation = mark_.generation;
}

void Mirror::end() {
  {
    std::lock_guard lock(mutex_);
    worker_.ask_to_end();
    if (watch_ != nullptr) watch_->wake();
  }
  wake_.notify_all();
  worker_.end();
}

void Mirror::begin() {
  worker_.start([this] { return round(); });
}

void Mirror::suspect(std::string why) {
  suspicion_ = std::move(why);
  if (watch_ != nullptr) watch_->wake();
}

void Mirror::hear(bool answers) {
  std::lock_guard lock(mutex_);
  if (!answers) return suspect("etcd does not answer");
  if (watch_ != nullptr && parts_.client.has_left(*watch_))
    suspect("etcd does not answer where changes come from, and does elsewhere");
}

// Runs a session until it fails. Returns the pause before the next one, which a session that lasted makes short.
Result<Worker::Pause> Mirror::round() {
  const auto begun = Clock::now();
  const Status ended = session();
  if (worker_.ending()) return Worker::kUntilWoken;
  refusal_.note(ended.error());
  set_connected(false, ended.error().message);
  if (Clock::now() - begun > kLongestPause) retry_.reset();
  return retry_.failed();
}

Status Mirror::session() {
  {
    std::lock_guard lock(mutex_);
    suspicion_.clear();
  }
  etcd::Header header;
  WEFT_CHECK(agree(header));
  WEFT_TRY(std::unique_ptr<Snapshot> snapshot, parts_.store.snapshot());
  const std::uint64_t known = snapshot->registry_revision();
  snapshot.reset();
  WEFT_TRY(const bool same, goes_on(known, header));
  Status status;
  if (same) {
    set_applied(known);
    WEFT_CHECK(aim());
    whole_ = true;
    status = follow(mark_.revision + 1);
  } else {
    status = begin_anew();
  }
  if (!status.ok() && status.error().code == Errc::changed) {
    log_info("registry: {}; reading it whole", status.error().message);
    status = begin_anew();
  }
  return status;
}

// True if the mirror can follow etcd from its mark, without a list: etcd's history contains the mark. Revisions between
// the mark and `known` did not change this cluster.
Result<bool> Mirror::goes_on(std::uint64_t known, const etcd::Header& header) {
  if (mark_.generation != meta_.generation) return false;
  if (mark_.revision == 0 || mark_.known != known || known == 0 || known > header.revision) return false;
  WEFT_TRY(const bool same, is_of(parts_.client, parts_.keys, mark_));
  if (!same) log_info("registry: etcd's history is not the one that is known here; reading it whole");
  return same;
}

// Reads the whole registry, then follows it. If it has lost history, the mirror follows without a mark: so the next
// session finds the loss again.
Status Mirror::begin_anew() {
  keep_mark(std::nullopt, 0);
  RegistryList list(parts_.keys, [this](const Error& error) { refuse(error); });
  WEFT_TRY(whole_, settle(list));
  WEFT_CHECK(apply_list(list));
  malloc_trim(0);  // a list of 100,000 versions takes about 50 MB, once
  if (whole_ && mark_.generation != meta_.generation) WEFT_CHECK(complete());
  std::optional<MirrorMark> mark;
  if (whole_ && list.history()) keep_newest(mark, *list.history());
  keep_mark(std::move(mark), list.revision());
  aim_at(list.revision());
  return follow(list.revision() + 1);
}

// Brings back also the collection of the origin, which no store has. If etcd refuses that, for lack of space for
// instance, the node goes on, and its next session tries again.
Status Mirror::complete() {
  RegistryShare share{meta_.generation};
  impossible_.list(share);
  const auto unless_refused = [this](const Status& status) {
    if (!status.ok()) refusal_.note(status.error());
    return !status.ok() && is_refused(status.error()) ? Status{} : status;
  };
  if (const Status back = parts_.collections.bring_back(); !back.ok()) return unless_refused(back);
  const Status recorded = parts_.own.complete_generation(node_, share);
  if (!recorded.ok()) return unless_refused(recorded);
  set_generation(meta_.generation);
  return {};
}

// Reads and compares lists, and brings back what they lack if a reconciliation asks for it. Returns false if the
// registry has lost history. `list` is the last one.
Result<bool> Mirror::settle(RegistryList& list) {
  for (int round = 0; round < kRoundsMax; ++round) {
    if (worker_.ending()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(list.read(parts_.client));
    read_collection();
    WEFT_CHECK(read_impossible());
    {
      std::lock_guard lock(mutex_);
      ++status_.lists;
    }
    WEFT_TRY(Lacking lacking, RegistryCompare(list).compare(parts_.store));
    const bool merges = meta_.lost.empty() && meta_.generation > mark_.generation;
    if (merges)
      for (const auto& [key, purge] : lost_purges_) lacking.purges.push_back(purge);
    lacking.leave_out(impossible_);
    if (lacking.empty()) return true;
    if (merges) {
      log_info("registry: bringing back {}", lacking.text());
      const auto refused = [this](const Error& error) { refuse(error); };
      WEFT_CHECK(parts_.restore.reconcile(lacking, list.revision(), impossible_, refused));
      WEFT_CHECK(parts_.purges.bring_back(lacking.purges, impossible_, refused));
      lost_purges_.clear();
      continue;
    }
    const std::string what = fmt::format("node {} has {}, and etcd lacks {}", parts_.name, lacking.text(),
                                         lacking.count() == 1 ? "it" : "them");
    const Status reported = parts_.own.report_loss(what);
    if (!reported.ok() && !is_refused(reported.error())) return reported.error();
    set_lost(reported.ok() ? parts_.own.lost() : what);
    for (const PurgedVersion& purge : lacking.purges)
      lost_purges_.emplace(VersionKey(purge.name.model, purge.uid), purge);
    return false;
  }
  return Error{Errc::busy, "other nodes change the registry all the time"};
}

// After a start, the node's share in the last reconciliation says what the registry cannot have. Otherwise the mirror
// would take these changes for lost again.
Status Mirror::read_impossible() {
  if (!impossible_.empty() || mark_.generation != meta_.generation) return {};
  WEFT_TRY(auto share, parts_.own.share(node_));
  if (!share || share->generation != meta_.generation) return {};
  impossible_.add(*share);
  return {};
}

// Applies the differences. The store keeps its revision until the last commit, so that the list is read again after an
// interruption.
Status Mirror::apply_list(RegistryList& list) {
  std::uint64_t before = 0;
  {
    WEFT_TRY(std::unique_ptr<Snapshot> snapshot, parts_.store.snapshot());
    before = snapshot->registry_revision();
  }
  list.order();
  for (std::vector<MirrorChange> some = list.take(kChangesAtOnce); !some.empty();) {
    if (worker_.ending()) return Error{Errc::cancelled, "stopped"};
    std::vector<MirrorChange> next = list.take(kChangesAtOnce);
    WEFT_CHECK(apply(some, next.empty() ? list.revision() : before));
    some = std::move(next);
  }
  return apply({}, list.revision());
}

// Stores the mark. If that fails, the node reads the whole registry at its next start.
void Mirror::keep_mark(std::optional<MirrorMark> mark, std::uint64_t known) {
  const std::uint64_t generation = mark_.generation;
  mark_ = mark.value_or(MirrorMark{});
  mark_.generation = generation;
  mark_.known = known;
  if (const Status status = mark_file_.write(mark_); !status.ok()) log_warning("registry: {}", status.error().message);
}

void Mirror::set_generation(std::uint64_t generation) {
  mark_.generation = generation;
  std::lock_guard lock(mutex_);
  status_.generation = generation;
  wake_.notify_all();
}

// Shows what the registry says about its history.
void Mirror::set_lost(const std::string& lost) {
  std::lock_guard lock(mutex_);
  if (!lost.empty() && status_.lost != lost) log_warning("registry: {}", lost_history(lost).message);
  status_.lost = lost;
}

Status Mirror::agree(etcd::Header& header) {
  const auto& of = parts_.store.cluster();
  WEFT_TRY(RegistryMeta meta, parts_.own.agree(of ? of->cluster : "", header));
  if (meta.generation != meta_.generation) impossible_ = {};
  meta_ = meta;
  if (!of || of->cluster == meta.cluster) set_lost(meta.lost);
  if (joined_) {
    if (of->cluster == meta.cluster) return parts_.agreed(), Status{};
    return Error{Errc::invalid,
                 fmt::format("this store belongs to the cluster {}, and etcd has {}", of->cluster, meta.cluster)};
  }
  node_ = of ? of->node : parts_.store.info().uuid;
  WEFT_CHECK(parts_.mirror.join({meta.cluster, node_}));
  joined_ = true;
  parts_.agreed();
  return {};
}

Status Mirror::read_members() {
  WEFT_TRY(etcd::RangeAnswer answer, parts_.client.range({parts_.keys.all(KeyKind::member), 0, 0, false, false}));
  std::vector<std::pair<std::uint64_t, Member>> members;
  for (const etcd::KeyValue& item : answer.items) {
    auto key = parts_.keys.parse(item.key);
    auto member = open_member(item.value, parts_.keys.bound(item.key));
    if (!key.ok() || !member.ok()) {
      refuse(key.ok() ? member.error() : key.error());
      continue;
    }
    member->node = key->name;
    members.emplace_back(item.mod_revision, std::move(member).value());
  }
  members_.reset(members);
  return {};
}

Status Mirror::read_nodes() {
  WEFT_TRY(etcd::RangeAnswer answer, parts_.client.range({parts_.keys.all(KeyKind::node), 0, 0, false, false}));
  std::vector<KnownNode> nodes;
  for (const etcd::KeyValue& item : answer.items) {
    auto key = parts_.keys.parse(item.key);
    auto node = open_node(item.value, parts_.keys.bound(item.key));
    if (!key.ok() || !node.ok()) {
      refuse(key.ok() ? node.error() : key.error());
      continue;
    }
    node->node = key->name;
    nodes.push_back(std::move(node).value());
  }
  members_.reset_nodes(std::move(nodes));
  return {};
}

// A value that does not verify counts as none.
void Mirror::read_collection() {
  if (const Status read = parts_.collections.read(); !read.ok() && read.error().code == Errc::corrupt)
    refuse(read.error());
}

// Watches the registry from revision `from` on. Reads the members at that revision or later: the watch would never
// report a member that joined in between.
Status Mirror::follow(std::uint64_t from) {
  WEFT_CHECK(read_members());
  WEFT_CHECK(read_nodes());
  read_collection();
  {
    std::lock_guard lock(mutex_);
    ++status_.watches;
  }
  WEFT_TRY(std::unique_ptr<etcd::WatchStream> watch, parts_.client.watch(parts_.keys.all(), from));
  set_connected(true, {});
  {
    std::lock_guard lock(mutex_);
    if (worker_.ending()) return Error{Errc::cancelled, "stopped"};  // end() had no watch to wake
    watch_ = watch.get();
    suspicion_.clear();  // etcd has just answered
  }
  Status status = receive(*watch);
  std::lock_guard lock(mutex_);
  watch_ = nullptr;
  return status;
}

Status Mirror::receive(etcd::WatchStream& watch) {
  for (std::size_t untrimmed = 0;;) {
    // A node that was offline receives all missed changes at once: returns the memory that they took.
    if (untrimmed >= kChangesUntrimmed) {
      malloc_trim(0);
      untrimmed = 0;
    }
    Batch batch;
    auto wait = Clock::now() + kWatchWait;
    // Collects everything that has arrived for one commit. During its sync more arrives.
    while (batch.changes.size() < kChangesAtOnce) {
      WEFT_TRY(std::optional<etcd::WatchAnswer> answer, watch.next(wait));
      if (!answer) break;
      for (const etcd::Event& event : answer->events) read_event(event, batch);
      batch.revision = std::max(batch.revision, answer->header.revision);
      wait = Clock::now();
    }
    {
      std::lock_guard lock(mutex_);
      if (worker_.ending()) return Error{Errc::cancelled, "stopped"};
    }
    // Other nodes may bring back earlier settings than those of this store, so the next session compares first.
    if (batch.generation) return Error{Errc::unreachable, "the registry's state has changed"};
    untrimmed += batch.changes.size();
    if (batch.revision != 0) WEFT_CHECK(apply(batch));
    std::lock_guard lock(mutex_);
    if (!suspicion_.empty()) return Error{Errc::unreachable, suspicion_};
  }
}

void Mirror::read_event(const etcd::Event& event, Batch& batch) {
  auto key = parts_.keys.parse(event.item.key);
  if (!key.ok()) return refuse(key.error());
  switch (key->kind) {
    case KeyKind::version:
    case KeyKind::tombstone:
      if (event.deleted) return;  // its tombstone reports the removal
      break;
    case KeyKind::tag:
      if (!event.deleted) break;
      batch.add(MirroredTag{key->model, key->name, 0, 0, event.item.mod_revision, {}, {}, meta_.generation},
                event.item.mod_revision);
      return;
    case KeyKind::memory:
      if (!event.deleted) break;
      batch.add(MirroredMemory{key->model, key->number, false}, event.item.mod_revision);
      return;
    case KeyKind::member:
      return read_member(event, *key, batch);
    case KeyKind::node:
      return read_node(event, *key);
    case KeyKind::head:
      return parts_.own.saw_head(key->model, event);
    case KeyKind::history:
      if (event.deleted) return;
      keep_newest(batch.mark, event.item);
      return parts_.own.saw_history(event.item.mod_revision);
    case KeyKind::meta:
      batch.generation = batch.generation || !parts_.own.has_identity(event.item.value);
      return;
    case KeyKind::purge:
      if (event.deleted) return;
      break;
    case KeyKind::collection:
      if (const Status seen = parts_.collections.saw(event); !seen.ok()) refuse(seen.error());
      return;
    case KeyKind::barrier:
      batch.barrier = batch.barrier || key->name == node_;
      return;
    default:
      return;
  }
  auto change = decode_change(parts_.keys, event.item.key, event.item.value, event.item.mod_revision);
  if (!change.ok()) return refuse(change.error());
  batch.add(std::move(change).value(), event.item.mod_revision);
}

void Mirror::read_member(const etcd::Event& event, const RegistryKey& key, Batch& batch) {
  if (event.deleted) {
    batch.members = members_.set(event.item.mod_revision, key.name, std::nullopt) || batch.members;
    return;
  }
  auto member = open_member(event.item.value, parts_.keys.bound(event.item.key));
  if (!member.ok()) return refuse(member.error());
  member->node = key.name;
  batch.members = members_.set(event.item.mod_revision, key.name, std::move(member).value()) || batch.members;
}

void Mirror::read_node(const etcd::Event& event, const RegistryKey& key) {
  if (event.deleted) return members_.set_node(key.name, std::nullopt);
  auto node = open_node(event.item.value, parts_.keys.bound(event.item.key));
  if (!node.ok()) return refuse(node.error());
  node->node = key.name;
  members_.set_node(key.name, std::move(node).value());
}

// Commits all but the last part of a large batch, and returns the number of changes committed. Changes of one etcd
// transaction stay in one commit.
Result<std::size_t> Mirror::apply_all_but_last(const Batch& batch) {
  const std::span<const MirrorChange> changes(batch.changes);
  std::size_t from = 0;
  for (std::size_t at = kChangesAtOnce; at < changes.size(); ++at) {
    if (at - from < kChangesAtOnce || batch.revisions[at] == batch.revisions[at - 1]) continue;
    WEFT_CHECK(apply(changes.subspan(from, at - from), batch.revisions[at - 1]));
    from = at;
  }
  return from;
}

Status Mirror::apply(Batch& batch) {
  if (!batch.changes.empty() || batch.barrier) {
    WEFT_TRY(const std::size_t applied, apply_all_but_last(batch));
    WEFT_CHECK(apply(std::span<const MirrorChange>(batch.changes).subspan(applied), batch.revision));
    if (whole_) keep_mark(batch.mark ? std::move(batch.mark) : mark_, batch.revision);
  } else {
    set_applied(batch.revision);
  }
  if (batch.members) parts_.changed();
  return {};
}

namespace {

struct Described {
  std::string operator()(const MirroredVersion& change) const {
    const VersionRow& version = change.version;
    return fmt::format("{}@{} {}{}{}published by {}", version.model_name, version.number,
                       version.removed ? "removed, " : "", version.described_ns == 0 ? "" : "described, ",
                       version.undeleted_ns == 0 ? "" : "undeleted, ", version.publisher);
  }
  std::string operator()(const MirroredTag& change) const {
    return fmt::format("tag {} of {} {}", change.name, change.model,
                       change.number == 0 ? "deleted" : fmt::format("set to {}", change.number));
  }
  std::string operator()(const MirroredMemory& change) const {
    return fmt::format("{}@{} is {}", change.model, change.number, change.in_memory ? "in memory" : "on a disk");
  }
  std::string operator()(const MirroredPurge& change) const {
    return fmt::format("{}@{} is purged", change.model, change.number);
  }
};

}  // namespace

Status Mirror::apply(std::span<const MirrorChange> changes, std::uint64_t revision) {
  const LogWork work("up to revision", revision);
  if (log_debugs(LogCategory::registry))
    for (const MirrorChange& change : changes) log_debug(LogCategory::registry, "{}", std::visit(Described(), change));
  WEFT_TRY(MirrorOutcome outcome, parts_.mirror.apply(changes, revision));
  for (const std::string& problem : outcome.problems) refuse(Error{Errc::invalid, problem});
  {
    std::lock_guard lock(mutex_);
    status_.changes += outcome.applied;
  }
  set_applied(revision);
  if (!changes.empty()) parts_.changed();
  return {};
}

// Puts a barrier, once after the start of the daemon. The watch brings the barrier after all earlier changes. If etcd
// refuses the barrier, the store counts as complete, because nothing tells what is missing.
Status Mirror::aim() {
  {
    std::lock_guard lock(mutex_);
    if (status_.complete) return {};
  }
  const auto revision = parts_.own.barrier(node_, random_uuid());
  if (!revision.ok() && !is_refused(revision.error())) return revision.error();
  aim_at(revision.ok() ? *revision : 0);
  return {};
}

void Mirror::aim_at(std::uint64_t revision) {
  std::lock_guard lock(mutex_);
  complete_at_ = revision;
  status_.complete = status_.complete || applied_ >= complete_at_;
}

void Mirror::set_applied(std::uint64_t revision) {
  std::lock_guard lock(mutex_);
  applied_ = revision;
  status_.revision = revision;
  status_.complete = status_.complete || applied_ >= complete_at_;
  wake_.notify_all();
}

void Mirror::set_connected(bool connected, const std::string& trouble) {
  {
    std::lock_guard lock(mutex_);
    tried_ = connected || !status_.connected;  // after the end of a watch, the next try shows whether etcd answers
    wake_.notify_all();
    bool same = status_.connected == connected && status_.trouble == trouble;
    if (same) return;
    if (status_.connected != connected) status_.since_ns = now_ns();
    status_.connected = connected;
    status_.trouble = trouble;
  }
  if (connected)
    log_info("registry: follows {}", parts_.client.endpoint());
  else
    log_warning("registry: {}", trouble);
  parts_.changed();
}

void Mirror::refuse(const Error& error) {
  std::lock_guard lock(mutex_);
  // A registry full of bad values must not fill the log.
  if (++status_.refused <= limits::kRegistryRefusalsMax) log_warning("registry: refused: {}", error.message);
  auto& refusals = status_.refusals;
  if (refusals.size() == limits::kRegistryRefusalsMax) refusals.erase(refusals.begin());
  refusals.push_back(error.message);
}

Status Mirror::wait_for(std::uint64_t revision, Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const std::uint64_t before = applied_;
  if (wake_.wait_until(lock, deadline, [&] { return applied_ >= revision || worker_.ending(); }) && !worker_.ending())
    return {};
  if (applied_ == before) suspect("a change that etcd accepted does not arrive");
  return Error{Errc::timed_out, fmt::format("the registry is at revision {}, and this node only at {}{}{}", revision,
                                            applied_, status_.trouble.empty() ? "" : ": ", status_.trouble)};
}

void Mirror::wait_until_tried(Clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  wake_.wait_until(lock, deadline, [this] { return tried_ || worker_.ending(); });
}

void Mirror::fill(RegistryStatus& status) const {
  std::lock_guard lock(mutex_);
  status = status_;
  status.endpoint = parts_.client.endpoint();
  const etcd::RequestTimes times = parts_.client.times();
  status.requests = times.requests;
  status.failed_requests = times.failed;
  status.request_ns = times.nanoseconds;
}

}  // namespace weft
