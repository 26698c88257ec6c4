// Answers the requests of other daemons: manifests, digests, local verified bytes, announcements, holders of versions,
// bytes of pulls, which are not verified, orders about the cluster's key, and facts of this node's health. Requests of
// swarms go to a SwarmServer. Every other request is answered at once: the exchange bounds the calls in work and the
// windows of the answers (src/net/calls/incoming.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "blobs/local_bytes.h"
#include "peers/coded_cache.h"
#include "peers/directory.h"
#include "peers/messages.h"
#include "peers/swarm_server.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/key_change.h"
#include "weft/cluster/pulled.h"
#include "weft/store/store.h"

namespace weft {

// Keeps versions for other nodes. Any thread.
class VersionKeeper {
 public:
  virtual ~VersionKeeper() = default;
  // Begins to fetch the whole version and to pin it, and returns at once. Errc::busy: too many versions wait.
  virtual Status keep(const KeepVersion& version) = 0;
};

// Any thread.
class PeerAnswers final : public PeerServer {
 public:
  // The arguments outlive this. Without `pulls` there are none, without `keys` no order about keys is followed, and
  // without `keeper` no version is kept.
  PeerAnswers(Store& store, PeerDirectory& directory, PeerCoding& coding, PulledFiles* pulls = nullptr,
              KeyFollower* keys = nullptr, VersionKeeper* keeper = nullptr)
      : store_(store), directory_(directory), coding_(coding), pulls_(pulls), keys_(keys), keeper_(keeper) {}

  // Starts to answer. Before begin() and after end() every call fails with Errc::unreachable. Without `swarms`,
  // requests of swarms fail with Errc::unsupported.
  void begin(LocalBytes& bytes, SwarmServer* swarms = nullptr);
  void end();  // waits for answers in work, which use `bytes` and `swarms`

  void receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) override;
  void unwanted(std::string_view node) override;
  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override;

 private:
  Result<PeerReply> answer(std::string_view node, const PeerRequest& asked) WEFT_EXCLUDES(gate_);
  void pass_on(std::string_view node, PeerRequest asked, PendingReply reply) WEFT_EXCLUDES(gate_);
  Result<PeerReply> give(const AskManifest& ask);
  Result<PeerReply> give(const AskChunks& ask) WEFT_REQUIRES_SHARED(gate_);
  Result<PeerReply> give(const AskBytes& ask) WEFT_REQUIRES_SHARED(gate_);
  Result<std::vector<OpenPlace>> bases_of(const AskBytes& ask) const WEFT_REQUIRES_SHARED(gate_);

  Store& store_;
  PeerDirectory& directory_;
  PeerCoding& coding_;
  PulledFiles* const pulls_;
  KeyFollower* const keys_;
  VersionKeeper* const keeper_;
  SharedMutex gate_;
  LocalBytes* bytes_ WEFT_GUARDED_BY(gate_) = nullptr;
  SwarmServer* swarms_ WEFT_GUARDED_BY(gate_) = nullptr;
};

}  // namespace weft
