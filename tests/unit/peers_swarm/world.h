// Nodes of a swarm in one thread and in virtual time: the owners of each node, joined by messages that take a moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/manual_time.h"
#include "peers/swarm/swarm_calls.h"
#include "peers/swarm/swarm_directory.h"
#include "peers/swarm/swarm_receiver.h"
#include "peers/swarm/swarm_sender.h"
#include "unit/peers_swarm/test_version.h"

namespace weft::testing {

class World {
 public:
  struct Node {
    Node(std::string named, TestVersion& version) : name(std::move(named)), bytes(version) {}
    std::string name;
    UnitBytes bytes;
    bool alive = true;  // false: it answers nothing
    bool woken = false;
    std::optional<SwarmTime> due;
    std::unique_ptr<SwarmCalls> calls;
    std::unique_ptr<SwarmDirectory> directory;
    std::shared_ptr<SwarmReceiver> receiver;
    std::shared_ptr<SwarmSender> sender, clerk;
    std::map<std::string, std::size_t> from;  // units that were read, by the node that sent them; "": the origin
    std::size_t wrong = 0;                    // units with wrong bytes
    // Set for a hostile node: they get its requests in place of its owners. The caller of a request that is not
    // answered in time gets an error.
    std::function<void(const std::string& from, const Want& want, PendingReply reply)> on_want;
    std::function<void(const std::string& from, const Join& join, PendingReply reply)> on_join;
  };

  // `origin`: all nodes read from an origin, and each can be its clerk.
  explicit World(std::uint32_t units, bool origin = false) : version(units), has_origin(origin) {}
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Node& add(const std::string& name);
  void want_all(Node& node);
  bool has_all(const Node& node) const { return node.bytes.count() == version.units()->count(); }
  // Runs until `done`. False: the time is over, or no node has work.
  bool run_until(const std::function<bool()>& done, std::chrono::seconds time_max = std::chrono::seconds(60));
  SentVersion sent(const Node& node) const;

  TestVersion version;
  const bool has_origin;
  bool coded = false;  // the receivers ask for names, and get the bytes by another way
  ManualTime time;
  std::vector<std::string> directories, holders;
  std::string source;
  std::size_t requests = 0;  // of all nodes
  // Called for each unit before it is read. False: the read fails.
  std::function<bool(Node& node, PeerOffer& offer)> reads = [](Node&, PeerOffer&) { return true; };

 private:
  class Calls;
  class Reply;
  using Event = std::function<void()>;

  void later(std::chrono::nanoseconds delay, Event event);
  void deliver(const std::string& from, const std::string& to, const std::vector<std::byte>& request,
               std::chrono::milliseconds patience, const CallDone& done);
  bool step();
  void run(Node& node);
  void read(Node& node, PeerOffer& offer);
  std::optional<SwarmTime> next() const;

  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::multimap<SwarmTime, Event> events_;
};

}  // namespace weft::testing
