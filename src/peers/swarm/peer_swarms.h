// This node's part in swarms: directory, sender, clerk and receiver, with the threads that answer and make their calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/worker.h"
#include "blobs/local_bytes.h"
#include "peers/swarm/swarm_calls.h"
#include "peers/swarm/swarm_directory.h"
#include "peers/swarm/swarm_receiver.h"
#include "peers/swarm/swarm_sender.h"
#include "peers/swarm/version_units.h"
#include "peers/swarm_server.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"
#include "weft/store/store.h"

namespace weft {

struct PeerSwarmsParts {
  Store& store;  // outlives PeerSwarms, as what the functions use
  std::unique_ptr<SwarmCalls> calls;
  std::string self;                       // this node's id
  std::function<std::string()> location;  // as SwarmReceiver::Parts
  SwarmReceiver::Nodes directories;       // the directory nodes of a manifest, this node as well
  SwarmReceiver::Nodes holders;           // nodes that probably have the whole version
  SwarmDirectory::Source source;          // as SwarmDirectory
  // This node's origin, whose clerk it can be; null if it has none. It then reads no units that clerks name.
  std::shared_ptr<BlobSource> origin = nullptr;
};

// Sums of all swarms. Counters never fall.
struct SwarmFigures {
  std::uint64_t sent = 0, named = 0;  // units; named: as the clerk of the origin, and read there
  ReceivedUnits received;
  std::uint64_t declined = 0;          // offers
  std::size_t swarms = 0, hungry = 0;  // versions that this node fetches or sends by a swarm now
  std::size_t partners = 0;            // of this node now; one of two versions counts twice
  std::size_t held = 0;                // units that this node has of these versions
  std::size_t introduced = 0;          // members of the swarms that this node introduces; counted in the same way
};

// Any thread. A node that has units of a version sends them, whether or not it fetches by swarms itself.
class PeerSwarms final : public VersionSwarms, public SwarmServer {
 public:
  explicit PeerSwarms(PeerSwarmsParts parts);
  ~PeerSwarms() override { end(); }

  // Starts to answer and to call, once.
  void begin(LocalBytes& bytes);
  void end();  // waits for work that uses `bytes`; drops all replies and offers

  Status want(const Digest& manifest, std::span<const ChunkRun> runs, bool coded) override;
  void leave(const Digest& manifest) override;
  void wait_for(const Digest& manifest, const ChunkRun& run) override;
  void stop_waiting(const Digest& manifest, const ChunkRun& run) override;
  std::shared_ptr<OfferedUnit> take() override;
  bool has_partners(const Digest& manifest) const override;
  void on_change(std::function<void()> call) override;

  void receive(std::string_view node, Join join, PendingReply reply) override;
  void receive(std::string_view node, Want want, PendingReply reply) override;
  void unwanted(std::string_view node) override;
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs) override;
  void evicted() override;

  void left(std::string_view node);  // the node has left the cluster. Calls nobody

  std::vector<FetchedVersion> fetched() const { return receiver_->versions(); }
  std::vector<SentVersion> sent() const { return sender_->versions(); }
  std::vector<SentVersion> named() const;  // units that this node has offered as the clerk of the origin
  std::vector<IntroducedVersion> introduced() const { return directory_.versions(); }
  SwarmFigures figures() const;

 private:
  class Calls;
  static Worker::Pause pause_until(std::optional<SwarmTime> due);
  std::shared_ptr<SwarmSender> make_clerk();
  void gone(std::string_view node);  // nobody reads what the node was offered. Takes no lock of the receiver

  const std::string self_;
  const std::shared_ptr<BlobSource> origin_;
  LocalVersionUnits units_;
  SwarmDirectory directory_;
  const std::unique_ptr<SwarmCalls> calls_;
  const std::shared_ptr<SwarmReceiver> receiver_;
  const std::shared_ptr<SwarmSender> sender_;
  const std::shared_ptr<SwarmSender> clerk_;  // null without an origin
  Worker introductions_{"swarm directory"}, uploads_{"swarm sender"}, names_{"swarm clerk"},
      downloads_{"swarm receiver"};
};

}  // namespace weft
