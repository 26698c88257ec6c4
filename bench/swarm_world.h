// Nodes that fetch one version at once, in virtual time: each has the daemon's own Downloads and Uploads, one host
// keeps the daemon's Introductions (src/swarm), and swarm_network.h is what joins them. A run is a function of its
// options.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "peers/read_window.h"
#include "swarm/downloads.h"
#include "swarm/introductions.h"
#include "swarm/units.h"
#include "swarm/uploads.h"
#include "swarm_network.h"

namespace weft::sim {

struct WorldOptions {
  std::uint32_t nodes = 16;        // that fetch; one more has the version, one more keeps the directory
  std::uint64_t size = 1U << 30U;  // bytes
  NetworkOptions network;
  double spread = 0;       // seconds over which the nodes begin
  double slow = 0;         // share of the nodes whose links move a quarter
  double deaths = 0;       // share of the nodes that die at a random time while they fetch
  double silent = 0;       // seconds until the death of a node is noticed; 0: its connections are reset
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
  std::uint64_t units = 0;  // received
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
  struct Node;
  struct Message;
  struct Read;
  struct Piece;
  enum Kind : std::uint16_t { kBegin, kMessage, kTimer, kPieceAsked, kPieceCame, kVerified, kDie, kNoticed };

  void handle(const Event& event);
  void start(Host host);
  void pump(Host host);
  void set_timer(Host host);
  void send(Message message, std::uint64_t bytes);
  void receive(Host host, Message message);
  void offered(Host host, const Message& offer);
  void ask_pieces(Host host, std::uint64_t read);
  void piece_there(Host host, std::uint64_t piece);
  void unit_there(Host host, std::uint64_t read);
  void end_read(std::uint64_t read);
  void introduce();
  void kill(Host host);
  void notice_death(Host host, Host dead);
  void record(Host host, std::uint32_t unit, Host from);
  SwarmTime time() const { return SwarmTime(std::chrono::nanoseconds(network_.now())); }
  Host source() const { return options_.nodes; }
  Host directory() const { return options_.nodes + 1; }
  std::uint64_t unit_bytes(std::uint32_t unit) const;
  bool is_slow(Host host) const;

  const WorldOptions options_;
  const Units units_;
  Network network_;
  SwarmRandom random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::uint8_t> dead_;  // by host, beside the nodes: each event looks at it
  Introductions introductions_;
  Pool<Message> messages_;
  Pool<Read> reads_;
  Pool<Piece> pieces_;
  std::uint64_t next_want_ = 0;
  std::uint32_t living_ = 0;  // nodes that fetch and have not ended
  WorldResult result_;
};

}  // namespace weft::sim
