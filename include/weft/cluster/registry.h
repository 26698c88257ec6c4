// The registry of models, versions and tags. On one node it is the store itself (registry/local_registry.cc). In a
// cluster it is etcd (registry/cluster_registry.cc), and the store of every node mirrors it. So a lookup needs no
// message, and mirrored versions stay usable without etcd. In weftd, publishes, tags and removals go through this
// interface; reads go to the store (weft-registry.7).
//
// Threads: every call from any thread; calls may run at once. Destroyed after all calls are over; that ends its threads
// within a second or two.
// Errors, besides those of Store: Errc::unreachable: no endpoint answers, and nothing was changed. Errc::timed_out: it
// is not known in time whether the change was made, or this node does not show it in time (the message says which).
// Errc::permission: etcd refuses the user. Errc::busy: others win a race again and again. Errc::corrupt: a value of the
// registry does not verify; the message names its key.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/publish.h"
#include "weft/store/store.h"

namespace weft {

// A weftd as the other nodes see it, while its lease lives.
struct Member {
  std::string node;      // uuid of its store in the cluster
  std::string name;      // host name, for people
  std::string address;   // addresses of its transports, as their providers write them, separated by commas; or empty
  std::string provider;  // providers of these addresses; or empty
  std::uint64_t since_ns = 0;
  std::string key_proof =
      {};                    // proves the accepted keys of the cluster to their holders (Exchange::key_proof); or empty
  std::string process = {};  // random, of this start of the weftd
  std::string place = {};    // where its store is: differs for a copy of the store on any running machine
  bool operator==(const Member&) const = default;
};

// A node that the cluster knows: present while it is a member, and absent until it comes back or is forgotten.
struct KnownNode {
  std::string node;  // as Member::node
  std::string name;  // as Member::name
  std::string address = {};
  std::uint64_t first_ns = 0;  // when it first joined, by its clock
  std::uint64_t last_ns = 0;   // when it was last seen, some minutes late if it did not end by itself; by its clock
  bool present = false;
  std::uint64_t drained_ns = 0;  // when a drain of it began; 0: none did since its weftd started
  bool operator==(const KnownNode&) const = default;
};

struct RegistryStatus {
  bool shared = false;                // true: etcd; false: the store alone, and the members below keep these values
  bool connected = true;              // the mirror receives changes of other nodes
  bool complete = true;               // the store has all changes that were made before this daemon started
  std::string endpoint;               // the endpoint that answered last
  std::string trouble;                // why it is not connected, one line; "" if it is
  std::uint64_t since_ns = 0;         // time of the last change of `connected`
  std::uint64_t revision = 0;         // the store mirrors the registry up to this revision
  std::uint64_t requests = 0;         // requests to etcd since start
  std::uint64_t failed_requests = 0;  // of these, requests without a good answer
  std::uint64_t request_ns = 0;       // time of all these requests together
  std::uint64_t changes = 0;          // changes mirrored since start
  std::uint64_t lists = 0;            // reads of the full list: at first, and after a compaction
  std::uint64_t watches = 0;          // watches begun: one, and one after each loss
  std::uint64_t refused = 0;          // values that did not verify
  std::vector<std::string> refusals;  // the latest ones: key and reason
  // Says which node found that the registry has lost history: then no node changes names until a reconciliation, and
  // reads go on. "": the registry has all history that this node knows of.
  std::string lost = {};
  std::uint64_t generation = 0;  // of the registry, whose reconciliation this node has completed; 0: none
};

// A node in the line for a claim.
struct ClaimHolder {
  std::string node = {};       // its id; "" if there is none
  std::string name = {};       // for people
  std::uint64_t since_ns = 0;  // when it got this place, by its clock
  bool operator==(const ClaimHolder&) const = default;
};
struct ClaimStanding {
  bool held = false;        // this node has the claim
  ClaimHolder holder = {};  // the other node that has the claim now or gets it next; none if `held`
  // The node that this one copies from while both wait or that one has the claim; none if `held`, for the first one in
  // line of a free claim, and without a place. Each node has kClaimFollowersMax such followers at most.
  ClaimHolder ahead = {};
  ClaimHolder last = {};  // if `held`: the node that had the claim before, if that is known
};

inline constexpr std::size_t kClaimFollowersMax = 2;
inline constexpr std::size_t kClaimLineMax = 64;  // places in line; further nodes wait for a place

// A right that one node of the cluster has at a time, and its line: the nodes that wait, in the order in which they
// came. One thread. Its end gives up the right and the place; if the node dies, they end some seconds later.
class Claim {
 public:
  virtual ~Claim() = default;
  // Keeps the place of this node, and moves up if the one before is free. Call it every half second. Errc::changed: the
  // node had the claim and has lost it, and another node may have it. Then, and after other errors, drop the claim.
  virtual Result<ClaimStanding> stand() = 0;
};

// The latest collection of an origin (origin/collect.h).
struct OriginCollection {
  std::string origin = {};       // id of the origin; "": there was no collection
  std::uint64_t sequence = 0;    // of its list of freed files, which a node must know before it writes there
  std::uint64_t horizon_ns = 0;  // time; the origin may lack versions that were removed earlier
  bool operator==(const OriginCollection&) const = default;
};

// A version that was purged. Its name may be another version's meanwhile.
struct PurgedVersion {
  VersionName name;
  Uuid uid;
  std::uint64_t time_ns = 0;
  Author by = {};
};

// A version that got another number, because a registry that had lost history gave its number to another version too.
struct Renumbered {
  std::string model = {};
  std::uint64_t from = 0, to = 0;
  bool operator==(const Renumbered&) const = default;
};
struct ReconcileRequest {
  bool dry_run = false;
  std::span<const MirrorChange> at_origin = {};  // what the origin has: versions, then tags
  std::chrono::milliseconds wait{60'000};  // longest wait for this node's mirror, and then for those of other nodes
  std::function<bool()> cancelled = [] { return false; };
};
struct ReconcileReport {
  std::uint64_t generation = 0;            // of the registry
  std::vector<std::string> returned = {};  // versions that it lacked: "bert@2", or "tag best of bert" in a dry run
  std::vector<Renumbered> renumbered = {};
  std::vector<std::string> waits_for = {};  // names of live nodes that have not brought back theirs yet
  std::vector<std::string> problems = {};   // what the registry cannot have, one line each
};

// True if the origin has all bytes of this manifest. May wait for the origin.
using IsAtOrigin = std::function<bool(const Digest& manifest)>;

class Registry : public FlushRecords {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes the import durable, assigns a number and publishes it: all nodes see it, or none does. Returns when this
  // node's store shows it. In addition to the guarantees of Import::publish: if two nodes publish one model at once,
  // they get two numbers, but content equal to the newest version makes no version (its tags are set). Every declared
  // parent, and every version from which it inherits bytes that this node lacks, exists at that instant, else
  // Errc::not_found.
  virtual Result<PublishOutcome> publish(Import& import, const PublishRequest& request) = 0;
  // As Store::set_tag, Store::protect_tag, Store::describe and Store::remove_versions. When they return, this node's
  // store shows the change. The registry fills in Author::node.
  virtual Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                         const Author& by = {}) = 0;
  virtual Status protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by = {}) = 0;
  virtual Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& change) = 0;
  // As Store::rename_model. Errc::unsupported in a cluster: the keys in etcd have the names of models.
  virtual Status rename_model(std::string_view model, std::string_view to, const Author& by = {}) = 0;
  // `uid`, with a single name, is the identity of that version; zeros: of the version that has the name. If another
  // version has the name, nothing is removed: Errc::changed, or Errc::exists if this node does not show that yet.
  virtual Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged,
                                              const Author& by = {}, const Uuid& uid = {}) = 0;
  // As Store::undelete. In a cluster the content must be complete at the origin, or on this node, and this node must
  // have published the version: only its publisher keeps a version. Errc::absent: neither is so.
  virtual Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number,
                                            const IsAtOrigin& is_at_origin, const Author& by = {}) = 0;

  // Restores a version, live or removed, or a tag in a registry that was lost or set back. If the registry has the live
  // version with an earlier message and metrics, restores only those. Returns true if the change was restored, false if
  // the registry has this change or a later one. `check_only`: only checks. Errc::exists: the registry has another
  // version of this number, or a name that would hide it. Errc::unsupported: there is no such registry.
  virtual Result<bool> bring_back(const MirrorChange& change, bool check_only) = 0;

  // Merges what the nodes, the origin and the registry know. Every node brings back what the registry lacks, when it
  // sees that a reconciliation has begun: live nodes at once, the others when they return. A version whose number
  // another one has gets a new number, and its tags follow it. Of two settings of a tag the one with the larger stamp
  // counts. If it is interrupted, the nodes go on, and a further call reports all that was done since the registry lost
  // history. In an empty etcd makes the registry again. Errc::unsupported: there is no such registry.
  virtual Result<ReconcileReport> reconcile(const ReconcileRequest& request) = 0;

  // Waits until the store has all changes that any node committed in the registry before this call. Returns the
  // revision of that state. Call it before deciding what gc may free.
  virtual Result<std::uint64_t> catch_up(Clock::time_point deadline) = 0;

  // Lines up for the claim of a key of limits::kClaimDigits hexadecimal digits. Two claims of one node are two places
  // in the line, but not in a store without a cluster: there each has the claim. When stand() says that this node has
  // it, this node's store shows what earlier holders have published. The claim must end before the registry.
  virtual Result<std::unique_ptr<Claim>> claim(std::string_view key) = 0;

  // Returns the latest collection that was announced. If this node's store shows a version that was published after an
  // announcement, the result is that announcement or a later one. Before etcd has answered there is none.
  virtual OriginCollection origin_collection() const { return {}; }
  // Announces a collection. From then on no node undeletes a version from content at the origin that `horizon_ns` says
  // may be gone. Errc::changed: an announcement with this sequence, or a later one, was first.
  virtual Status announce(const OriginCollection& /*next*/) {
    return Error{Errc::unsupported, "this node belongs to no cluster: it has no origin to collect"};
  }

  // Records that a removed version is purged: no node undeletes it, and each node frees its content when it knows. When
  // it returns, this node's store has the record. The registry fills in the time and Author::node. A repeated purge has
  // no effect. Errc::exists: the version is live. Errc::not_found: there is no such version.
  virtual Status purge(const PurgedVersion& /*version*/) {
    return Error{Errc::unsupported, "this node belongs to no cluster: it has no registry for purges"};
  }
  // Returns the purged versions that this node's store has, without their authors. A new one is announced by
  // ClusterOptions::changed.
  virtual std::vector<PurgedVersion> purged() const { return {}; }

  // Members by node, from the watch, so the call needs no message. Without a cluster there are none.
  virtual std::vector<Member> members() const = 0;
  virtual RegistryStatus status() const = 0;

  // Reads one key of etcd, and returns how long that took. 0 without a cluster. Does not wait for the mirror.
  virtual Result<std::chrono::nanoseconds> probe() { return std::chrono::nanoseconds(0); }
  // Present and absent nodes, by node, from the watch, so the call needs no message. Without a cluster there are none.
  virtual std::vector<KnownNode> nodes() const { return {}; }
  // Records that the node is drained, until its weftd starts again. Afterwards nodes() of this node shows all earlier
  // records of this kind. Errc::not_found: there is no such node.
  virtual Status mark_drained(const std::string& /*node*/) {
    return Error{Errc::unsupported, "this node belongs to no cluster"};
  }
  // Deletes the record of an absent node, or of this one, which leaves the cluster. Errc::busy: the node is present.
  // Errc::not_found: there is no such node.
  virtual Status forget_node(const std::string& node);
  // Announces another Member::key_proof of this node. Returns at once: the other nodes see it when etcd has it, and
  // without a cluster nobody does.
  virtual void set_key_proof(std::string /*proof*/) {}
};

// Returns the name of a node for people: "node UUID" if the cluster does not know it.
std::string name_of_node(const Registry& registry, const std::string& node);

// Returns the registry of a store without a cluster. `memory` records flushes in this store (ClusterStore::memory()).
// The store is open for writing. Both outlive the registry.
std::unique_ptr<Registry> local_registry(Store& store, FlushRecords& memory);

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://host:2379" or "https://…"; if one does not answer, the next is tried
  std::string cluster = "default";     // its keys are below PREFIX/CLUSTER/
  std::string prefix = "/weft";
  std::string user, password;  // empty: etcd without authentication
  std::string ca;              // PEM file: authorities for the servers' certificates ("": the system's list)
  std::string cert, key;       // PEM files: this client's certificate and key ("": none)
  std::chrono::milliseconds connect_max{1'000};  // to connect to one endpoint
  std::chrono::milliseconds answer_max{5'000};   // for one request, over all endpoints
};

struct ClusterOptions {
  EtcdOptions etcd;
  Member self;                     // the registry fills in `node`, `since_ns`, `process` and `place`
  std::chrono::seconds lease{10};  // a node that is silent for so long is not a member
  // Called after a commit of the mirror, and after a change of members or of `connected`. Any thread. Must
  // be short and not call the registry.
  std::function<void()> changed;
  // Called once if another weftd runs with a copy of the store, as the same node. Changes of the registry fail from
  // then on, with this error (Errc::exists). As for `changed`.
  std::function<void(const Error&)> refused = {};
};

// Checks what cluster_registry() and its mirror need, and changes nothing: the options, that the store belongs to this
// cluster or may join it, and that each endpoint answers and lets the user read and write the cluster's keys. Returns
// all that is wrong. `store`: null if there is none to check.
std::vector<Error> check_cluster(Store* store, const EtcdOptions& options);

// Returns the registry of a cluster, which starts to mirror etcd and joins as a member. If etcd does not answer, that
// is no error: the store's last state is served, and the mirror keeps trying. Errc::invalid: the options; or the store
// belongs to no cluster and has versions (nodes of a cluster begin with empty stores). The store joins its cluster when
// etcd first answers. If it belongs to another cluster, `trouble` says so, and every change fails. `store_mirror`
// writes to this store (ClusterStore::mirror()). Both outlive the registry.
Result<std::unique_ptr<Registry>> cluster_registry(Store& store, RegistryMirror& store_mirror, ClusterOptions options);

}  // namespace weft
