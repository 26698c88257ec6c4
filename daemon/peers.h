// The daemons of other nodes: serves their reads, and reads from them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/worker.h"
#include "daemon/config.h"
#include "daemon/figures.h"
#include "peers/answers.h"
#include "peers/directory.h"
#include "peers/links.h"
#include "peers/news.h"
#include "peers/peer_pulls.h"
#include "peers/source.h"
#include "peers/swarm/exchange_calls.h"
#include "peers/swarm/peer_swarms.h"
#include "peers/swarm/version_source.h"
#include "peers/view.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/key_change.h"
#include "weft/cluster/registry.h"
#include "weft/store/store.h"

namespace weft {

class Peers : public KeyFollower {
 public:
  // Listens, and rejects every call until begin(). Null for the provider "none". Errc::invalid,
  // Errc::permission: no usable key file, or other users can read it. Errc::unsupported: no such provider on this host.
  // All arguments outlive this. The location is read again from `live` for each swarm that the node joins.
  // `own_pulls`: what other nodes may ask for. `keeper` keeps versions for them.
  // `gate` paces the reads.
  static Result<std::unique_ptr<Peers>> open(Store& store, const LiveConfig& live, PulledFiles& own_pulls,
                                             VersionKeeper& keeper, std::shared_ptr<PaceGate> gate);
  ~Peers() override;

  Exchange& exchange() const { return *exchange_; }
  // Starts to answer other nodes, once.
  void begin(LocalBytes& bytes);
  void end();  // waits for answers in work, which use `bytes`
  VersionSwarms& swarms() { return *swarms_; }
  const PeerSwarms& peer_swarms() const { return *swarms_; }
  std::shared_ptr<BlobSource> source() const { return source_; }
  PeerPulls& pulls() { return *pulls_; }
  CodedCache::Figures coded() const { return coding_.cache.figures(); }
  // Sets the registry whose members are the peers. Call it once; `registry` outlives this.
  void join(Registry& registry);
  std::string own_key_proof() const { return exchange_->key_proof(self_); }
  // Reads the cluster's keys again, as Exchange::reload_keys(), and announces this node's proofs of them.
  Status reload_keys();
  // Does a step of a change of the key on this node, and announces this node's proofs. Before it forgets a key, this
  // node receives all that the registry has: proofs of the other members that it lacks.
  Status follow(const KeyOrder& order) override;
  // Orders the step from another node, and waits until it is done there. Errors as follow(), and Exchange::call().
  Status order(const std::string& node, const KeyOrder& order);
  // Sends a small request to another node, and returns the head of its reply. Errc::unreachable: it is no member that
  // this node can call. Others as Exchange::call().
  Result<std::vector<std::byte>> ask(const std::string& node, const PeerRequest& request, Deadline deadline);
  // Waits for members whose proofs show only a key that is to be forgotten, some seconds at most. Call it once, before
  // the first node forgets the key.
  void wait_for_proofs(const std::string& forgotten);
  bool is_self(const Member& member) const { return member.node == self_; }
  // False if the daemon of this member has another key of the cluster, or none: this node and it refuse each other.
  // Compares the proofs, and sends no message. A member without an address makes and answers no calls, so true.
  bool holds_key(const Member& member) const;

 private:
  Peers(Store& store, PulledFiles& own_pulls, VersionKeeper& keeper);
  std::vector<Member> reachable();
  void announce_keys(const std::vector<std::string>& before);
  void tell_left(const Registry& registry, const std::vector<Member>& members);
  std::vector<std::string> holders(const Digest& manifest);
  PeerSwarmsParts swarms_parts(Store& store, const LiveConfig& live);
  const std::string self_;
  std::mutex mutex_;
  std::set<std::string> members_;  // as last seen; guarded by mutex_
  std::set<std::string> unlike_;   // logged nodes without a common provider; guarded by mutex_
  std::atomic<Registry*> registry_ = nullptr;
  PeerDirectory directory_;
  PeerCoding coding_;
  PeerAnswers answers_;
  std::unique_ptr<Exchange> exchange_;
  PeerView view_;
  PeerLinks links_;
  VersionSource version_source_;
  std::unique_ptr<PeerNews> news_;
  std::unique_ptr<PeerSwarms> swarms_;
  std::shared_ptr<PeerSource> source_;
  std::unique_ptr<PeerPulls> pulls_;
  RareLines key_lines_;
  Worker members_poll_{"members"};  // so that an idle node logs the members too; from join() on
};

void add_peer_figures(Figures& figures, const Peers& peers);
// Adds members to the open object.
void write_peers_status(JsonWriter& json, Store& store, const Peers& peers);

}  // namespace weft
