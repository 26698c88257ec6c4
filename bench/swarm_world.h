// Nodes that fetch one version at once, in virtual time: each has the daemon's own Downloads and Uploads, one host
// keeps the daemon's Introductions (src/swarm), and swarm_network.h is what joins them. A run is a function of its
// options.
//
// The nodes are as patient as daemons, by the constants of src/peers and src/fetch. A want ends after kWantPatience,
// and a partner that was silent twice is dropped. A slow read is given up. An upload ends after
// SwarmSender::kUploadMax. A reader that has waited for its swarm asks a node with the whole version, and a node leaves
// a swarm that gives nothing. A call to the directory node ends after kJoinPatience.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "swarm/swarm_types.h"
#include "swarm/units.h"
#include "swarm_joins.h"
#include "swarm_network.h"
#include "swarm_node.h"
#include "swarm_unit_reads.h"

namespace weft::sim {

struct WorldOptions {
  std::uint32_t nodes = 16;        // that fetch; one more has the version, one more keeps the directory
  std::uint64_t size = 1U << 30U;  // bytes
  NetworkOptions network;
  double spread = 0;       // seconds over which the nodes begin
  double slow = 0;         // share of the nodes whose links move a quarter
  double deaths = 0;       // share of the nodes that die at a random time while they fetch
  double silent = 0;       // seconds until the others know that a node is dead; 0: its connections are reset
  bool says_rack = false;  // each node's location is its rack
  bool readers = true;     // each node has a reader that waits for the units in order
  std::uint64_t hash_bytes_per_second = 2'000'000'000;
  std::uint64_t piece_max = 1U << 20U;  // bytes of one read of a window
  std::uint64_t in_flight = 2;          // pieces of one unit on the way
  std::uint64_t seed = 1;
  std::FILE* log = nullptr;  // a line for each unit that a node receives
};

struct WorldResult {
  std::vector<double> seconds;  // from its begin to its end, of each node that lived
  std::vector<double> slow_seconds;
  double last_end = 0;             // seconds from the first begin to the last end
  std::vector<double> first_unit;  // seconds until a node's reader has the first unit
  std::uint64_t source_bytes = 0;
  std::uint64_t core_bytes = 0;
  std::uint64_t messages = 0;
  std::uint64_t declined = 0;
  std::uint64_t units = 0;           // received
  std::uint64_t from_holders = 0;    // of these, by the ordinary way from a node with the whole version
  std::uint64_t silent_wants = 0;    // that were not answered in time
  std::uint64_t slow_reads = 0;      // that were given up
  std::uint64_t unread_uploads = 0;  // that ended after SwarmSender::kUploadMax
  std::uint64_t left = 0;            // nodes that left the swarm, because it gave nothing
  std::uint64_t events = 0;
  std::uint64_t digest = 0xCBF29CE484222325U;  // of the log
  std::uint32_t unfinished = 0;
};

class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();
  WorldResult run();

 private:
  struct Message;

  void handle(const Event& event);
  void start(Host host);
  void pump(Host host);
  void set_timer(Host host);
  void wake_at(Host host, std::optional<SwarmTime>& timer, SwarmTime due);
  void introduce();
  void call_directory(Host host);
  void meet_holders(Host host);

  void send(Message message, std::uint64_t bytes);
  void receive(Host host, Message message);
  void receive_call(const Message& call);
  void receive_partners(Host host, const Message& answer);

  void send_wants(Host host);
  void end_silent_wants(Host host);
  void receive_want(Host host, Message want);
  void answer_wants(Host host);
  void offered(Host host, const Message& offer);
  void send_end(Host host, Host sender, std::uint32_t unit, bool read);

  void begin_read(Host host, Host sender, std::uint32_t unit, bool by_swarm);
  void end_read(std::uint64_t read);
  void fail_read(std::uint64_t read, std::chrono::milliseconds pause);
  void give_up_slow_reads(Host host);
  std::optional<SwarmTime> slow_read_due(const SimNode& node);
  void unit_came(Host host, std::uint64_t read);
  void unit_verified(Host host, std::uint64_t read);
  void advance_reader(Host host);
  void finish(Host host);
  void leave_silent_swarm(Host host);
  void ask_holders(Host host);
  void ask_holder(Host host, std::uint32_t unit);

  void kill(Host host);
  void notice_death(Host host, Host dead);
  void record(Host host, std::uint32_t unit, Host from);
  SwarmTime time() const { return SwarmTime(std::chrono::nanoseconds(network_.now())); }
  Host source() const { return options_.nodes; }
  Host directory() const { return options_.nodes + 1; }
  bool is_slow(Host host) const;

  const WorldOptions options_;
  const Units units_;
  Network network_;
  SwarmRandom random_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  std::vector<std::uint8_t> dead_;  // by host, beside the nodes: each event looks at it
  std::vector<Host> whole_;         // nodes that have fetched all, in the order of their end
  DirectoryNode directory_;
  std::optional<SwarmTime> directory_timer_;
  Pool<Message> messages_;
  UnitReads reads_;
  std::uint64_t next_call_ = 0;
  std::uint32_t living_ = 0;  // nodes that fetch and have not ended
  WorldResult result_;
};

}  // namespace weft::sim
