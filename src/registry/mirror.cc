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
constexpr auto kWatchWait = std::chrono::seconds(60);

// True if etcd refuses a change and would refuse it again. After other errors etcd may still have made the change.
bool is_refused(const Error& error) {
  return error.code == Errc::no_space || error.code == Errc::permission;
}

}  // namespace

Mirror::Mirror(Parts parts)
    : parts_(std::move(parts)), mark_file_(parts_.store.directory() / "registry"), retry_(kFirstPause, kLongestPause) {
  status_.shared = true;
  status_.connected = false;
  status_.complete = false;
  status_.trouble = "etcd has not answered yet";
  status_.since_ns = now_ns();
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
  etcd_ = header.cluster;
  WEFT_TRY(const bool same, goes_on(known, header));
  Status status;
  if (same) {
    set_applied(known);
    WEFT_CHECK(aim());
    status = follow(mark_->revision + 1);
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
  mark_ = mark_file_.read();
  if (!mark_ || mark_->known != known || known == 0 || known > header.revision) return false;
  if (mark_->etcd == header.cluster) {
    WEFT_TRY(const bool same, is_of(parts_.client, *mark_));
    if (same) return true;
  }
  log_info("registry: etcd's history is not the one that is known here; reading it whole");
  return false;
}

// Reads the whole registry, then follows it. A barrier put before becomes the mark. If etcd refuses the barrier, the
// mirror follows without a mark.
Status Mirror::begin_anew() {
  keep_mark(std::nullopt, 0);
  std::optional<MirrorMark> mark;
  const std::string value = random_uuid();
  const auto revision = parts_.own.barrier(node_, value);
  if (revision.ok())
    mark = MirrorMark{0, 0, *revision, parts_.keys.barrier(node_), sha256(std::as_bytes(std::span(value)))};
  else if (!is_refused(revision.error()))
    return revision.error();
  WEFT_TRY(const std::uint64_t listed, read_list());
  malloc_trim(0);  // a list of 100,000 versions takes about 50 MB, once
  keep_mark(std::move(mark), listed);
  aim_at(listed);
  return follow(listed + 1);
}

// Stores the mark. If that fails, the node reads the whole registry at its next start.
void Mirror::keep_mark(std::optional<MirrorMark> mark, std::uint64_t known) {
  mark_ = std::move(mark);
  if (mark_) {
    mark_->known = known;
    mark_->etcd = etcd_;
  }
  if (const Status status = mark_file_.write(mark_); !status.ok()) log_warning("registry: {}", status.error().message);
}

Status Mirror::agree(etcd::Header& header) {
  const auto& of = parts_.store.cluster();
  WEFT_TRY(RegistryMeta meta, parts_.own.agree(of ? of->cluster : "", header));
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

// Gives a registry that was set back what it has lost and this store has: the next numbers of models, which other nodes
// would use again, and later messages and metrics, which other nodes would not have. If etcd refuses, for lack of space
// for instance, it refuses changes of the other nodes too, so the mirror goes on.
Status Mirror::bring_back(const RegistryList& list) {
  const auto made = [this](const Status& status) -> Status {
    if (worker_.ending()) return Error{Errc::cancelled, "stopped"};
    if (status.ok()) return {};
    if (const Errc code = status.error().code; code == Errc::unreachable || code == Errc::timed_out) return status;
    refuse(status.error());
    return {};
  };
  for (const auto& [model, next_number] : list.ahead()) WEFT_CHECK(made(parts_.restore.raise(model, next_number)));
  for (const MirroredVersion& version : list.described()) {
    const auto told = parts_.restore.bring_back(version, false);
    WEFT_CHECK(made(told.ok() ? Status{} : told.error()));
  }
  return {};
}

// Reads the whole registry and applies the differences. The store keeps its revision until the last commit, so that the
// list is read again after an interruption.
Result<std::uint64_t> Mirror::read_list() {
  RegistryList list(parts_.keys, [this](const Error& error) { refuse(error); });
  WEFT_CHECK(list.read(parts_.client));
  {
    std::lock_guard lock(mutex_);
    ++status_.lists;
  }
  std::uint64_t before = 0;
  {
    WEFT_TRY(std::unique_ptr<Snapshot> snapshot, parts_.store.snapshot());
    before = snapshot->registry_revision();
  }
  WEFT_CHECK(list.compare(parts_.store));
  WEFT_CHECK(bring_back(list));
  for (std::vector<MirrorChange> some = list.take(kChangesAtOnce); !some.empty();) {
    if (worker_.ending()) return Error{Errc::cancelled, "stopped"};
    std::vector<MirrorChange> next = list.take(kChangesAtOnce);
    WEFT_CHECK(apply(some, next.empty() ? list.revision() : before));
    some = std::move(next);
  }
  WEFT_CHECK(apply({}, list.revision()));
  return list.revision();
}

// Watches the registry from revision `from` on. Reads the members at that revision or later: the watch would never
// report a member that joined in between.
Status Mirror::follow(std::uint64_t from) {
  WEFT_CHECK(read_members());
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
    untrimmed += batch.changes.size();
    if (batch.revision != 0) WEFT_CHECK(apply(batch));
    std::lock_guard lock(mutex_);
    if (!suspicion_.empty()) return Error{Errc::unreachable, suspicion_};
  }
}

void Mirror::read_event(const etcd::Event& event, Batch& batch) {
  auto key = parts_.keys.parse(event.item.key);
  if (!key.ok()) return refuse(key.error());
  // A head and a use of a token are no marks: two histories may contain equal ones. Members and claims come and go with
  // their leases.
  const bool is_mark = key->kind != KeyKind::head && key->kind != KeyKind::member && key->kind != KeyKind::claim &&
                       key->kind != KeyKind::join;
  if (is_mark) keep_newest(batch.mark, event);
  switch (key->kind) {
    case KeyKind::version:
    case KeyKind::tombstone:
      if (event.deleted) return;  // its tombstone reports the removal
      break;
    case KeyKind::tag:
      if (!event.deleted) break;
      batch.add(MirroredTag{key->model, key->name, 0, 0, event.item.mod_revision}, event.item.mod_revision);
      return;
    case KeyKind::memory:
      if (!event.deleted) break;
      batch.add(MirroredMemory{key->model, key->number, false}, event.item.mod_revision);
      return;
    case KeyKind::member:
      return read_member(event, *key, batch);
    case KeyKind::head:
      return parts_.own.saw_head(key->model, event);
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
    keep_mark(std::move(batch.mark), batch.revision);
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
  status.requests = parts_.client.requests();
}

}  // namespace weft
