// Who says which models, versions and tags there are. One node: the store itself. A cluster: etcd, and every node's
// store is its mirror, so that looking needs no message and what is mirrored goes on without etcd. Publishing, tagging
// and removing go through here in weftd; reading goes to the store (weft-registry.7).
//
// Threads: every call from any thread; calls may run at once. Destroyed after all calls are over; that ends its
// threads within a second or two.
// Errors, besides those of Store: Errc::unreachable when no endpoint answers (nothing was changed), Errc::timed_out
// when it is not known in time whether or when it happened (the message says which), Errc::permission when etcd refuses
// the user, Errc::busy when others win a race again and again, Errc::corrupt for a value of the registry that does not
// verify, named by its key.
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

#include "weft/cluster_store.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

// A weftd as the others see it, while its lease lives.
struct Member {
  std::string node;      // the uuid that its store has in the cluster
  std::string name;      // for people: the host
  std::string address;   // where its transports listen, each as its provider writes it, with commas; may be empty
  std::string provider;  // of its transports, as many; may be empty
  std::uint64_t since_ns = 0;
  bool operator==(const Member&) const = default;
};

struct RegistryStatus {
  bool shared = false;                // etcd; else the store alone, and all below are as they stand here
  bool connected = true;              // what others commit arrives here
  std::string endpoint;               // the one that answered last
  std::string trouble;                // why it is not connected, one line; "" when it is
  std::uint64_t since_ns = 0;         // connected or not, since then
  std::uint64_t revision = 0;         // the store mirrors the registry up to here
  std::uint64_t requests = 0;         // to etcd, since start
  std::uint64_t changes = 0;          // mirrored since start
  std::uint64_t lists = 0;            // whole lists that were read: at first, and after a compaction
  std::uint64_t watches = 0;          // begun: once, and after each loss
  std::uint64_t refused = 0;          // values that did not verify
  std::vector<std::string> refusals;  // the last few: key, and why
};

class Registry {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~Registry() = default;

  // Makes the import durable, gives it a number and publishes it: all nodes see it, or none does. Returns when this
  // node's store shows it. Beside what Import::publish promises: two nodes that publish one model at once get two
  // numbers, but equal content over the newest makes no version (its tags are set); every declared parent and every
  // version that it inherits bytes of which are not on this node still exist at that instant, else Errc::not_found.
  virtual Result<PublishOutcome> publish(Import& import, const PublishRequest& request) = 0;
  // As Store::set_tag and Store::remove_version; when they return, this node's store shows it.
  virtual Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number) = 0;
  virtual Status remove_version(std::string_view model, std::uint64_t number) = 0;
  // Of a version that is in memory (ClusterStore::settle_version()): all of it is on a disk now. Or it is removed, and
  // its record says why.
  virtual Status keep_version(std::string_view model, std::uint64_t number) = 0;
  virtual Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) = 0;
  // As Store::remove_versions.
  virtual Result<std::size_t> remove_versions(std::span<const VersionName> versions) = 0;

  // For a registry that was lost and begins anew: this version, live or removed, or this tag, as it was once. True: it
  // was brought back; false: the registry has it, or has heard more of it since. `look`: only tells. Errc::exists: the
  // registry has another of this number, or a name that would hide it; Errc::unsupported: there is no such registry.
  virtual Result<bool> bring_back(const MirrorChange& change, bool look) = 0;

  // Waits until the store has all that was committed in the registry before this call, by anyone; the revision of that
  // state. What gc may free is judged after this.
  virtual Result<std::uint64_t> catch_up(Clock::time_point deadline) = 0;

  // By node; kept up to date by the watch, so it costs no message. Of one node alone: nobody.
  virtual std::vector<Member> members() const = 0;
  virtual RegistryStatus status() const = 0;
};

// Over a store that belongs to no cluster. `store` is open for writing and outlives it.
std::unique_ptr<Registry> local_registry(ClusterStore& store);

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://host:2379" or "https://…"; the next is tried when one does not answer
  std::string cluster = "default";     // its keys are below PREFIX/CLUSTER/
  std::string prefix = "/weft";
  std::string user, password;  // none: etcd without authentication
  std::string ca;              // PEM files: who may sign the servers' certificates ("": the system's list),
  std::string cert, key;       // and who we are ("": nobody)
  std::chrono::milliseconds connect_max{1'000};  // for one endpoint
  std::chrono::milliseconds answer_max{5'000};   // for one request, over all endpoints
};

struct ClusterOptions {
  EtcdOptions etcd;
  Member self;                     // `node` and `since_ns` are filled in
  std::chrono::seconds lease{10};  // a node that is silent for so long is no member any more
  std::function<void()> changed;   // after a commit of the mirror, a change of members or of `connected`; any thread;
                                   // must be short and not call the registry
};

// Begins to mirror, and to be a member. An etcd that does not answer is no error: the store's last state is served and
// the mirror goes on trying. Errc::invalid: options; a store that belongs to no cluster and has versions (a cluster's
// nodes begin with empty stores) or no digests. When etcd first answers the store joins its cluster; that it belongs to
// another one then shows as `trouble`, and every change fails with it. `store` outlives this.
Result<std::unique_ptr<Registry>> cluster_registry(ClusterStore& store, ClusterOptions options);

}  // namespace weft
