// A small swarm in virtual time: nodes with the three classes of src/swarm, joined by messages with random delays.
// Nodes begin late, die, come back, fall silent, fail to read, send wrong bytes and lose units. A run is a function of
// its seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "swarm/downloads.h"
#include "swarm/introductions.h"
#include "swarm/uploads.h"
#include "unit/swarm/swarm.h"

namespace weft::testing {

class World {
 public:
  explicit World(std::uint64_t seed);
  // Runs until each live node has all that it wants. Returns the first broken promise, or nothing.
  std::string run();
  std::uint64_t repeats() const { return repeats_; }  // units that the source sent again
  std::uint64_t deaths() const { return deaths_; }

 private:
  struct Sent {
    SwarmNode to = 0;
    SwarmTime at{};
    bool open = true, failed = false, gone = false;
  };
  struct Read {
    SwarmNode from = 0;
    std::uint32_t unit = 0;
    SwarmTime begun{};
  };
  struct Node {
    explicit Node(std::uint32_t units) : held(units), wanted(units), verified(units) {}
    UploadShare share;
    std::optional<Uploads> uploads;
    std::optional<Downloads> downloads;  // none: the source
    UnitSet held, wanted;
    std::vector<std::uint32_t> verified;  // how often, by unit
    std::map<std::uint64_t, SwarmNode> wants;
    std::map<std::uint64_t, Read> reads;
    std::map<std::uint32_t, std::vector<Sent>> sent;
    std::map<SwarmNode, UnitWant> asked;  // the last want of each asker
    std::set<SwarmNode> gone;             // nodes whose sessions have ended
    std::optional<SwarmTime> timer;
    SwarmTime silent_until{};
    std::string location;
    std::uint32_t slowness = 1;    // its reads take so many times as long
    std::uint64_t beginnings = 0;  // of the source, after its first
    std::uint32_t life = 0;
    bool alive = false, lies = false, done = false;
  };
  struct Event {
    SwarmTime at;
    std::uint64_t number = 0;
    SwarmNode node = 0;
    std::uint32_t life = 0;
    std::function<void()> act;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };
  using Delay = std::chrono::nanoseconds;

  void plan(SwarmNode number);
  void begin(SwarmNode number);
  void start_classes(SwarmNode number);
  void plan_trouble(SwarmNode number);
  void kill(SwarmNode number);
  void notice(SwarmNode number, SwarmNode dead);
  void evict(SwarmNode number);
  void live_on(SwarmNode number);

  void at(SwarmNode node, Delay delay, std::function<void()> act);
  void post(SwarmNode from, SwarmNode to, std::function<void()> act);
  void tell_directory(SwarmNode from, std::function<void()> act);
  void join(SwarmNode number);
  void introduce();
  void pump(SwarmNode number);
  void set_timer(SwarmNode number);
  void send_want(SwarmNode number, const NextWant& next);
  void receive_want(SwarmNode number, SwarmNode asker, std::uint64_t want, const UnitWant& units);
  void send_offer(SwarmNode number, const UnitAnswer& answer);
  void receive_offer(SwarmNode number, SwarmNode sender, std::uint64_t want, std::optional<std::uint32_t> unit);
  void end_read(SwarmNode number, std::uint64_t read);
  void verify(SwarmNode number, const Read& read);
  void note_beginning();
  void send_end(SwarmNode number, SwarmNode sender, std::uint32_t unit, bool read);

  bool held_without(SwarmNode without) const;
  bool may_repeat(const Node& source, std::uint32_t unit, SwarmNode to) const;
  void check_bounds(SwarmNode number);
  bool is_over() const;
  std::string unfinished() const;
  void expect(bool true_value, const std::string& promise);
  bool one_in(std::size_t many) { return random_.below(many) == 0; }
  Delay between(Delay least, Delay most);

  SwarmRandom random_;
  SwarmTime now_ = kStart;
  std::uint32_t units_;
  Introductions introductions_;
  std::vector<std::unique_ptr<Node>> nodes_;  // the first one is the source
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t events_made_ = 0, wants_made_ = 0, reads_made_ = 0, repeats_ = 0, deaths_ = 0;
  std::size_t begins_ = 0;  // nodes that have not begun
  std::string broken_;
};

}  // namespace weft::testing
