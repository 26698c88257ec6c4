// The registry of a node in a cluster. A change goes to etcd, and is complete once the mirror has applied it to the
// local store.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>

#include "diskformat/uuid.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "registry/cluster_check.h"
#include "registry/collections.h"
#include "registry/etcd/etcd_client.h"
#include "registry/etcd_claim.h"
#include "registry/etcd_names.h"
#include "registry/etcd_restore.h"
#include "registry/members.h"
#include "registry/mirror.h"
#include "registry/node_records.h"
#include "registry/own_registry.h"
#include "registry/purges.h"
#include "registry/reconciliation.h"
#include "registry/registry_keys.h"
#include "weft/cluster/registry.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr auto kLeaveMax = std::chrono::milliseconds(500);  // for requests in flight at shutdown
constexpr auto kFirstTryMax = std::chrono::seconds(5);
constexpr auto kMirrorMax = std::chrono::seconds(20);  // until a change committed in etcd is in the local store

std::vector<VersionName> relied_on(const PreparedPublish& prepared) {
  std::vector<VersionName> out;
  for (const auto& [model, number] : prepared.relies_on()) out.push_back({model, number});
  for (const ParentRef& parent : prepared.record().version.parents)
    if (parent.declared) out.push_back({parent.model, parent.number});
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Errc::absent: another node than `own` published the removed version.
Status check_kept_here(const Registry& registry, const VersionRow& row, const std::string& own) {
  if (!row.removed || row.publisher == own) return {};
  return Error{Errc::absent,
               fmt::format("{}: only the node that published it may still have its content; run this command on {}",
                           spec_of(row), name_of_node(registry, row.publisher))};
}

// Returns the model's next number in the local store; 0 if the store does not have the model.
Result<std::uint64_t> next_number_of(Store& store, const std::string& model) {
  WEFT_TRY(const std::unique_ptr<Snapshot> snapshot, store.snapshot());
  auto row = snapshot->model(model);
  if (row.ok()) return row->next_number;
  return row.error().code == Errc::not_found ? Result<std::uint64_t>(0) : std::move(row).error();
}

// The directory of a store by its inode, on one boot of one machine: a copy of the store differs, also on a machine
// whose disk is a copy.
std::string place_of(const std::string& path) {
  const auto st = stat_file(path);
  return fmt::format("{} {} {}", boot_id(), st.ok() ? st->st_dev : 0, st.ok() ? st->st_ino : 0);
}

class ClusterRegistry final : public Registry {
 public:
  ClusterRegistry(Store& store, RegistryMirror& store_mirror, ClusterOptions options)
      : store_(store),
        store_mirror_(store_mirror),
        options_(std::move(options)),
        keys_(options_.etcd.prefix, options_.etcd.cluster),
        client_(options_.etcd),
        own_(client_, keys_),
        names_(own_, options_.etcd.answer_max),
        restore_(own_, names_, options_.etcd.answer_max),
        collections_(own_),
        purges_(own_),
        membership_(client_, keys_, options_.lease,
                    {[this](bool answers) { mirror_.hear(answers); }, options_.refused}),
        mirror_({store_, store_mirror_, client_, keys_, own_, restore_, collections_, purges_, options_.self.name,
                 [this] { join(); }, [this] { changed(); }}) {}
  ~ClusterRegistry() override {
    client_.stop(kLeaveMax);
    membership_.end();
    mirror_.end();
  }

  void begin() { mirror_.begin(); }

  Result<PublishOutcome> publish(Import& import, const PublishRequest& request) override {
    WEFT_CHECK(check_connected());
    if (request.given && request.given->removed) return publish_removed(*request.given);
    std::future<Facts> asked;
    Facts ahead = recall(request.model);
    if (!ahead) asked = std::async(std::launch::async, [&] { return names_.foresee(request.model); });
    WEFT_TRY(std::unique_ptr<PreparedPublish> prepared, import.prepare(request));
    PublishWish wish;
    wish.version = prepared->record();
    wish.version.version.publisher = store_.cluster()->node;
    wish.tags = request.tags;
    wish.by = wish.version.version.by = at_this_node(request.by);
    std::sort(wish.tags.begin(), wish.tags.end());
    wish.tags.erase(std::unique(wish.tags.begin(), wish.tags.end()), wish.tags.end());
    wish.relies = relied_on(*prepared);
    WEFT_TRY(wish.number_min, next_number_of(store_, request.model));
    if (asked.valid()) ahead = asked.get();
    auto decision = names_.publish(wish, std::move(ahead));
    // Without an answer the version may still get published: keep its content, for the mirror or for gc.
    if (!decision.ok() && decision.error().code == Errc::timed_out) prepared->keep();
    if (!decision.ok()) return std::move(decision).error();
    if (decision->made) prepared->keep();
    WEFT_CHECK(shown(spec_of(request.model, decision->number), decision->revision));
    return outcome_of(*decision, *prepared, request.model);
  }

  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                 const Author& by) override {
    return change(fmt::format("{}@{}", model, tag), [&] {
      return names_.set_tag(model, tag, number, at_this_node(by), uid_of(model, number.value_or(0)));
    });
  }
  Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& wish) override {
    return change(spec_of(model, number), [&] { return names_.describe(model, number, wish, uid_of(model, number)); });
  }
  Status protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by) override {
    return change(fmt::format("{}@{}", model, tag),
                  [&] { return names_.protect_tag(model, tag, on, at_this_node(by)); });
  }
  Status rename_model(std::string_view model, std::string_view /*to*/, const Author& /*by*/) override {
    return Error{Errc::unsupported, fmt::format("{}: renaming a model of a cluster is not supported", model)};
  }
  // While `prepared` lives, gc of this node leaves the content, and after that the mirror has made the version live.
  Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number, const IsAtOrigin& is_at_origin,
                                    const Author& by) override {
    WEFT_CHECK(catch_up(Clock::now() + kMirrorMax));
    WEFT_TRY(const VersionRow row, version(std::string(model), number));
    WEFT_CHECK(names_.check_unpurged(row));
    UndeleteWish wish;
    wish.by = at_this_node(by);
    wish.uid = row.uid;
    std::unique_ptr<PreparedUndelete> prepared;
    wish.from_origin = row.removed && row.lost.empty() && row.removed_ns > collections_.latest().horizon_ns &&
                       is_at_origin(row.manifest);
    if (!wish.from_origin) {
      WEFT_CHECK(check_kept_here(*this, row, store_.cluster()->node));
      WEFT_TRY(prepared, store_mirror_.prepare_undelete(model, number));
      wish.relies = prepared->relies_on();
      wish.in_memory = prepared->in_memory();
    }
    auto decision = names_.undelete(row.model_name, number, wish);
    const Status status = decision.ok() ? shown(spec_of(model, number), decision->revision) : decision.error();
    if (decision.ok() || status.error().code == Errc::timed_out) {
      if (prepared) prepared->keep();
      if (!status.ok()) hold_until_end(std::move(prepared));
    }
    if (!status.ok()) return status.error();
    return std::move(decision->done);
  }
  Status keep_version(std::string_view model, std::uint64_t number) override {
    return change(spec_of(model, number), [&] { return names_.keep_version(model, number, uid_of(model, number)); });
  }
  Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) override {
    return remove(model, number, {Tagged::removed, why, at_this_node({}), uid_of(model, number)});
  }
  // Removes one version per call: each removal is an etcd transaction.
  Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged, const Author& by,
                                      const Uuid& uid) override {
    if (versions.empty()) return std::size_t{0};
    const auto& [model, number] = versions.front();
    const Uuid shown = uid_of(model, number);
    if (!uid.empty() && !shown.empty() && shown != uid)
      return Error{Errc::changed,
                   fmt::format("{}: another version has this number now; nothing is removed", spec_of(model, number))};
    WEFT_CHECK(remove(model, number, {tagged, {}, at_this_node(by), uid.empty() ? shown : uid}));
    return std::size_t{1};
  }
  Result<bool> bring_back(const MirrorChange& change, bool check_only) override {
    WEFT_CHECK(check_connected());
    return restore_.bring_back(change, check_only);
  }
  Result<ReconcileReport> reconcile(const ReconcileRequest& request) override {
    Reconciliation work{store_, own_, restore_, mirror_, request};
    return work.run();
  }
  Result<std::uint64_t> catch_up(Clock::time_point deadline) override {
    WEFT_CHECK(check_connected());
    WEFT_TRY(std::uint64_t revision, own_.barrier(store_.cluster()->node, random_uuid()));
    WEFT_CHECK(mirror_.wait_for(revision, deadline));
    return revision;
  }
  Result<std::unique_ptr<Claim>> claim(std::string_view key) override {
    WEFT_CHECK(check_connected());
    const auto show = [this]() -> Status {
      WEFT_CHECK(catch_up(Clock::now() + kMirrorMax));
      return {};
    };
    return claim_in_etcd(own_, {store_.cluster()->node, options_.self.name}, key, options_.lease, show);
  }
  OriginCollection origin_collection() const override { return collections_.latest(); }
  Status announce(const OriginCollection& next) override {
    WEFT_CHECK(check_connected());
    return collections_.announce(next);
  }
  Status purge(const PurgedVersion& version) override {
    PurgedVersion purge = version;
    purge.time_ns = 0;
    purge.by = at_this_node(version.by);
    return change(spec_of(purge.name.model, purge.name.number), [&] { return purges_.put(purge); });
  }
  std::vector<PurgedVersion> purged() const override {
    auto all = purged_in(store_);
    return all.ok() ? std::move(all).value() : std::vector<PurgedVersion>();
  }
  std::vector<Member> members() const override { return mirror_.members(); }
  Result<std::chrono::nanoseconds> probe() override {
    const auto begun = Clock::now();
    WEFT_CHECK(client_.range({{keys_.meta(), {}}, 0, 0, false, false}));
    return Clock::now() - begun;
  }
  std::vector<KnownNode> nodes() const override { return mirror_.nodes(); }
  Status mark_drained(const std::string& node) override {
    WEFT_CHECK(check_connected());
    WEFT_CHECK(record_drain(own_, node));
    WEFT_CHECK(catch_up(Clock::now() + kMirrorMax));
    return {};
  }
  Status forget_node(const std::string& node) override {
    const bool again = left_ && node == store_.cluster()->node;  // after a failure
    if (!again) WEFT_CHECK(check_connected());
    if (node != store_.cluster()->node) return delete_node_record(own_, nodes(), node);
    left_ = true;
    membership_.end();
    return delete_own_records(own_, node);
  }
  void set_key_proof(std::string proof) override { membership_.set_key_proof(std::move(proof)); }
  RegistryStatus status() const override {
    RegistryStatus status;
    mirror_.fill(status);
    return status;
  }

 private:
  // Keeps the record of a version that another store has removed.
  Result<PublishOutcome> publish_removed(const VersionRow& given) {
    MirroredVersion removed;
    removed.version = given;
    removed.version.publisher = store_.cluster()->node;
    removed.tree_nodes = 1;  // a registry requires one; it stays unused
    removed.tags = given.removed_tags;
    PublishOutcome outcome;
    outcome.version = given;
    WEFT_TRY(outcome.made, restore_.bring_back(removed, false));
    WEFT_CHECK(catch_up(Clock::now() + kMirrorMax));
    return outcome;
  }

  Author at_this_node(Author by) const {
    by.node = options_.self.name;
    return by;
  }
  void join() {
    Member self = options_.self;
    self.node = store_.cluster()->node;
    self.process = process_;
    self.place = place_of(store_.path());
    membership_.begin(std::move(self));
  }
  void changed() const {
    if (options_.changed) options_.changed();
  }

  // Errc::exists: another weftd is this node. Errc::unreachable if this node has left: the cluster does not know it any
  // more, and must not rely on its bytes. Errc::unreachable also if the mirror is not connected: a change would not
  // show on this node, so none is made. Waits for the mirror's first try to connect after a start or the end of a
  // watch: until then the state is unknown.
  Status check_connected() const {
    if (left_)
      return Error{Errc::unreachable,
                   "this node has left the cluster; complete this with `weft cluster leave`, or restart weftd to join "
                   "again"};
    mirror_.wait_until_tried(Clock::now() + kFirstTryMax);
    RegistryStatus status;
    mirror_.fill(status);
    if (!status.lost.empty()) return lost_history(status.lost);
    if (status.connected) return membership_.check_sole(Clock::now() + options_.lease + kFirstTryMax);
    return Error{Errc::unreachable,
                 fmt::format("the registry cannot be changed now, reading goes on: {}", status.trouble)};
  }

  Result<VersionRow> version(const std::string& model, std::uint64_t number) {
    WEFT_TRY(std::unique_ptr<Snapshot> snapshot, store_.snapshot());
    WEFT_TRY(const ModelRow row, snapshot->model(model));
    return snapshot->version(row.id, number);
  }

  // Returns the identity of the version that this node shows under this name; zeros if it shows none.
  Uuid uid_of(std::string_view model, std::uint64_t number) {
    const auto row = version(std::string(model), number);
    return row.ok() ? row->uid : Uuid{};
  }

  // Holds the content of a version that the registry has undeleted, or may have, and this node does not show. A gc that
  // runs already would free it.
  void hold_until_end(std::unique_ptr<PreparedUndelete> prepared) {
    const std::lock_guard lock(mutex_);
    if (prepared) unsure_.push_back(std::move(prepared));
  }

  // Makes a change, and waits until this node's store shows it.
  template <class Make>
  Status change(std::string_view what, const Make& make) {
    WEFT_CHECK(check_connected());
    WEFT_TRY(const std::uint64_t revision, make());
    return shown(what, revision);
  }

  Status remove(std::string_view model, std::uint64_t number, const EtcdRemoval& removal) {
    return change(spec_of(model, number), [&] { return names_.remove_version(model, number, removal); });
  }

  Status shown(std::string_view what, std::uint64_t revision) {
    Status status = mirror_.wait_for(revision, Clock::now() + kMirrorMax);
    if (status.ok()) return {};
    return Error{status.error().code, fmt::format("{}: the cluster has it, this node does not show it yet: {}", what,
                                                  status.error().message)};
  }

  using Facts = std::shared_ptr<const EtcdNames::Facts>;

  // Returns the facts for a publish from the local store and cached heads; null if they must be read from etcd.
  Facts recall(const std::string& model) {
    auto snapshot = store_.snapshot();
    if (!snapshot.ok()) return nullptr;
    auto row = (*snapshot)->model(model);
    if (!row.ok()) return nullptr;
    if (row->latest == 0) return names_.recall(model, row->next_number, {});
    auto newest = (*snapshot)->version(row->id, row->latest);
    return newest.ok() ? names_.recall(model, row->next_number, *newest) : nullptr;
  }

  Result<PublishOutcome> outcome_of(const PublishDecision& decision, const PreparedPublish& prepared,
                                    const std::string& model) {
    WEFT_TRY(std::unique_ptr<Snapshot> snapshot, store_.snapshot());
    WEFT_TRY(ModelRow row, snapshot->model(model));
    PublishOutcome outcome;
    WEFT_TRY(outcome.version, snapshot->version(row.id, decision.number));
    const VersionRow& wanted = prepared.record().version;
    if (decision.made ? outcome.version.uid != wanted.uid : outcome.version.manifest != wanted.manifest)
      return Error{Errc::exists, fmt::format("{}: the cluster has it, and this node has another version of this number",
                                             spec_of(model, decision.number))};
    outcome.made = decision.made;
    if (decision.made) outcome.new_bytes = prepared.new_bytes();
    outcome.shared_bytes = outcome.version.logical_bytes - std::min(outcome.new_bytes, outcome.version.logical_bytes);
    return outcome;
  }

  Store& store_;
  RegistryMirror& store_mirror_;
  const ClusterOptions options_;
  const std::string process_ = random_uuid();
  const RegistryKeys keys_;
  etcd::Client client_;
  OwnRegistry own_;
  EtcdNames names_;
  EtcdRestore restore_;
  Collections collections_;
  Purges purges_;
  Membership membership_;
  Mirror mirror_;
  std::atomic<bool> left_ = false;  // this node has left its cluster
  std::mutex mutex_;
  std::vector<std::unique_ptr<PreparedUndelete>> unsure_;  // guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<Registry>> cluster_registry(Store& store, RegistryMirror& store_mirror, ClusterOptions options) {
  WEFT_CHECK(check_options(options.etcd));
  if (options.lease < std::chrono::seconds(2))
    return Error{Errc::invalid, fmt::format("lease: expected at least 2 s, got {}", options.lease.count())};
  WEFT_CHECK(check_may_join(store));
  auto registry = std::make_unique<ClusterRegistry>(store, store_mirror, std::move(options));
  registry->begin();
  return std::unique_ptr<Registry>(std::move(registry));
}

}  // namespace weft
