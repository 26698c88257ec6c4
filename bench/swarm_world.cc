#include "swarm_world.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "weft/content.h"

namespace weft::sim {
namespace {

// Bytes of the messages of peers.fbs, with the frame of a session and the headers of TCP.
constexpr std::uint64_t kSmallMessage = 150;
constexpr std::uint64_t kPieceRequest = 80;
constexpr std::uint64_t kPieceHead = 60;
constexpr std::uint64_t kPartnerBytes = 40;
constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kReset = 20'000'000;  // until the end of a connection is noticed

Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(seconds * 1e9);
}

}  // namespace

struct World::Message {
  enum class Type : std::uint8_t { join, partners, want, offer, ended, whole };
  Type type = Type::join;
  Host from = 0, to = 0;
  std::uint64_t want = 0;
  UnitWant units = {UnitSet()};         // want
  std::optional<std::uint32_t> unit{};  // offer, ended
  bool flag = false;                    // partners: may ask the source; ended: read
  std::vector<SwarmNode> partners{};
};

struct World::Read {
  Host receiver = 0, sender = 0;
  std::uint32_t unit = 0;
  std::uint32_t generation = 0;       // of this place in reads_
  std::uint64_t asked = 0, came = 0;  // bytes
  ReadWindow* window = nullptr;       // the receiver's, of the sender
  bool live = false;
};

struct World::Piece {
  std::uint64_t read = 0;
  std::uint32_t generation = 0;
  Host receiver = 0;
  ReadWindow::Piece window;
};

struct World::Node {
  Node(std::uint32_t units, std::uint64_t seed, SwarmTime now)
      : downloads(UnitSet(units), UnitSet::full(units), seed, now), uploads(units, share) {}
  UploadShare share;
  Downloads downloads;
  Uploads uploads;
  bool fetches = false, done = false;
  Nanoseconds begun = 0;
  std::optional<SwarmTime> timer;
  Nanoseconds hashed = 0;  // when the thread that verifies is free
  std::map<Host, ReadWindow> windows;
  std::vector<std::pair<std::uint64_t, Host>> wants;  // open ones: number and partner
  std::vector<std::uint64_t> reads;                   // live ones
  std::uint32_t reader = 0;                           // the unit that the reader waits for
};

World::World(const WorldOptions& options)
    : options_(options),
      units_((options.size + kDigestChunk - 1) / kDigestChunk),
      network_(options.nodes + 2, options.network),
      random_(options.seed),
      introductions_(options.seed, options.says_rack ? std::to_string(network_.rack(options.nodes)) : std::string()) {}

World::~World() = default;

std::uint64_t World::unit_bytes(std::uint32_t unit) const {
  const std::uint64_t from = units_.first_chunk(unit) * kDigestChunk;
  return std::min(options_.size, from + units_.chunks_in(unit) * kDigestChunk) - from;
}

bool World::is_slow(Host host) const {
  return host >= options_.nodes - static_cast<std::uint32_t>(std::llround(options_.slow * options_.nodes));
}

WorldResult World::run() {
  nodes_.resize(options_.nodes + 1);
  dead_.resize(options_.nodes + 2);
  nodes_[source()] = std::make_unique<Node>(units_.count(), random_.next(), time());
  nodes_[source()]->uploads.add_all();
  nodes_[source()]->uploads.become_source();
  const Nanoseconds alone =
      static_cast<Nanoseconds>(options_.size * 8'000 / (options_.network.bits_per_second / 1'000'000));
  const auto dying = static_cast<std::uint32_t>(std::llround(options_.deaths * options_.nodes));
  for (Host host = 0; host < options_.nodes; ++host) {
    const Nanoseconds at =
        nanoseconds(options_.spread) * static_cast<Nanoseconds>(random_.below(1'000'000)) / 1'000'000;
    network_.at(at, host, kBegin, 0);
    // The first ones die and the last ones are slow: partners are drawn at random.
    if (host < dying) network_.at(at + alone * static_cast<Nanoseconds>(random_.below(1'000)) / 1'000, host, kDie, 0);
    if (is_slow(host)) network_.slow_down(host, 4);
  }
  living_ = options_.nodes;
  Event event;
  while (living_ != 0 && network_.next(event)) handle(event);
  result_.source_bytes = network_.sent(source());
  result_.core_bytes = network_.core_bytes();
  result_.events = network_.events();
  result_.unfinished = living_;
  for (const auto& node : nodes_) result_.declined += node ? node->downloads.declined() : 0;
  return result_;
}

void World::handle(const Event& event) {
  const bool gone = dead_[event.host];
  switch (event.kind) {
    case kBegin:
      return start(event.host);
    case kMessage: {
      Message heard = std::move(messages_[event.what]);
      messages_.give_back(event.what);
      if (!gone) receive(event.host, std::move(heard));
      return;
    }
    case kTimer: {
      if (event.host == directory()) return introduce();
      if (gone) return;
      Node& node = *nodes_[event.host];
      if (node.timer && *node.timer <= time()) node.timer.reset();
      return pump(event.host);
    }
    case kPieceAsked: {
      const Piece& piece = pieces_[event.what];
      if (gone) return pieces_.give_back(event.what);
      return network_.send(event.host, piece.receiver, piece.window.length + kPieceHead, false, kPieceCame, event.what);
    }
    case kPieceCame:
      return piece_there(event.host, event.what);
    case kVerified:
      return unit_there(event.host, event.what);
    case kDie:
      return kill(event.host);
    default:
      return notice_death(event.host, static_cast<Host>(event.what));
  }
}

void World::start(Host host) {
  nodes_[host] = std::make_unique<Node>(units_.count(), random_.next(), time());
  Node& node = *nodes_[host];
  node.fetches = true;
  node.begun = network_.now();
  if (options_.readers) node.downloads.wait_for(0);
  send({.type = Message::Type::join, .from = host, .to = directory()}, kSmallMessage);
  pump(host);
}

// A node sends the wants and offers that are due after each event.
void World::pump(Host host) {
  Node& node = *nodes_[host];
  const SwarmTime now = time();
  if (node.fetches && !node.done) {
    while (const auto want = node.downloads.next(now)) {
      node.wants.emplace_back(++next_want_, want->node);
      send({.type = Message::Type::want,
            .from = host,
            .to = want->node,
            .want = next_want_,
            .units = {node.downloads.taken(), want->first, want->hungry}},
           kSmallMessage + units_.count() / 8);
    }
    if (node.downloads.joins_again(now))
      send({.type = Message::Type::join, .from = host, .to = directory()}, kSmallMessage);
  }
  while (const auto answer = node.uploads.next(now))
    send({.type = Message::Type::offer, .from = host, .to = answer->node, .want = answer->want, .unit = answer->unit},
         kSmallMessage);
  set_timer(host);
}

void World::set_timer(Host host) {
  Node& node = *nodes_[host];
  std::optional<SwarmTime> due = node.uploads.due();
  if (node.fetches && !node.done)
    if (const auto other = node.downloads.due(time()); other && (!due || *other < *due)) due = other;
  if (!due || (node.timer && *node.timer <= *due)) return;
  node.timer = due;
  network_.at(due->time_since_epoch().count(), host, kTimer, 0);
}

void World::send(Message message, std::uint64_t bytes) {
  const std::uint64_t number = messages_.take();
  const Host from = message.from, to = message.to;
  messages_[number] = std::move(message);
  ++result_.messages;
  network_.send(from, to, bytes, true, kMessage, number);
}

void World::receive(Host host, Message message) {
  using Type = Message::Type;
  if (host == directory()) {
    if (message.type == Type::whole) return introductions_.finish(message.from);
    const std::string location = options_.says_rack ? std::to_string(network_.rack(message.from)) : std::string();
    introductions_.join(message.from, location, time());
    if (const auto due = introductions_.due()) network_.at(due->time_since_epoch().count(), directory(), kTimer, 0);
    return;
  }
  Node& node = *nodes_[host];
  switch (message.type) {
    case Type::partners:
      for (const SwarmNode partner : message.partners) node.downloads.meet(partner, time());
      if (message.flag) node.downloads.meet_source(source(), time());
      break;
    case Type::want:
      if (node.fetches) node.downloads.meet(message.from, time());
      if (!node.uploads.want(message.from, message.want, std::move(message.units), time()))
        send({.type = Type::offer, .from = host, .to = message.from, .want = message.want}, kSmallMessage);
      break;
    case Type::offer:
      offered(host, message);
      break;
    case Type::ended:
      node.uploads.ended(message.from, *message.unit, message.flag);
      break;
    default:
      break;
  }
  pump(host);
}

void World::offered(Host host, const Message& offer) {
  Node& node = *nodes_[host];
  if (std::erase_if(node.wants, [&](const auto& want) { return want.first == offer.want; }) == 0) return;
  if (!node.downloads.offered(offer.from, offer.unit, time())) {
    if (offer.unit)
      send({.type = Message::Type::ended, .from = host, .to = offer.from, .unit = offer.unit, .flag = false},
           kSmallMessage);
    return;
  }
  const std::uint64_t number = reads_.take();
  node.reads.push_back(number);
  Read& read = reads_[number];
  read = {host, offer.from, *offer.unit, read.generation + 1, 0, 0, &node.windows[offer.from], true};
  ask_pieces(host, number);
}

// Requests pieces of a read while the window of its sender has room; one piece at least.
void World::ask_pieces(Host host, std::uint64_t number) {
  Read& read = reads_[number];
  ReadWindow& window = *read.window;
  const std::uint64_t length = unit_bytes(read.unit);
  while (read.asked < length) {
    const std::size_t piece = std::min<std::size_t>({window.piece(), options_.piece_max, length - read.asked});
    if (read.asked != read.came && (!window.has_room(piece) || read.asked - read.came >= options_.in_flight * piece))
      return;
    const std::uint64_t which = pieces_.take();
    pieces_[which] = {number, read.generation, host, window.ask(piece, time())};
    read.asked += piece;
    network_.send(host, read.sender, kPieceRequest, false, kPieceAsked, which);
  }
}

void World::piece_there(Host host, std::uint64_t which) {
  const Piece piece = pieces_[which];
  pieces_.give_back(which);
  Read& read = reads_[piece.read];
  if (dead_[host] || !read.live || read.generation != piece.generation) return;
  read.window->came(piece.window, time());
  read.came += piece.window.length;
  const std::uint64_t length = unit_bytes(read.unit);
  if (read.came < length) return ask_pieces(host, piece.read);
  Node& node = *nodes_[host];
  const auto hashing = static_cast<Nanoseconds>(length * 1'000'000'000 / options_.hash_bytes_per_second);
  node.hashed = std::max(node.hashed, network_.now()) + hashing;
  network_.at(node.hashed, host, kVerified, piece.read);
}

void World::unit_there(Host host, std::uint64_t number) {
  Node& node = *nodes_[host];
  Read& read = reads_[number];
  if (dead_[host] || !read.live) return;
  end_read(number);
  record(host, read.unit, read.sender);
  node.uploads.add(read.unit);
  node.downloads.arrived(read.sender, read.unit, time());
  send({.type = Message::Type::ended, .from = host, .to = read.sender, .unit = read.unit, .flag = true}, kSmallMessage);
  const bool first = node.reader == 0;
  if (options_.readers) {
    while (node.reader < units_.count() && node.downloads.has().has(node.reader)) ++node.reader;
    if (node.reader < units_.count()) node.downloads.wait_for(node.reader);
  }
  if (first && node.reader != 0)
    result_.first_unit.push_back(static_cast<double>(network_.now() - node.begun) / kSecond);
  if (node.downloads.is_done()) {
    node.done = true;
    --living_;
    const double took = static_cast<double>(network_.now() - node.begun) / kSecond;
    (is_slow(host) ? result_.slow_seconds : result_.seconds).push_back(took);
    result_.last_end = static_cast<double>(network_.now()) / kSecond;
    send({.type = Message::Type::whole, .from = host, .to = directory()}, kSmallMessage);
  }
  pump(host);
}

void World::end_read(std::uint64_t number) {
  Read& read = reads_[number];
  read.live = false;
  std::erase(nodes_[read.receiver]->reads, number);
  reads_.give_back(number);
}

void World::introduce() {
  for (const Introduction& one : introductions_.introduce(time()))
    send({.type = Message::Type::partners,
          .from = directory(),
          .to = one.node,
          .flag = one.may_ask_source,
          .partners = one.partners},
         kSmallMessage + kPartnerBytes * one.partners.size());
}

void World::kill(Host host) {
  if (nodes_[host]->done || dead_[host]) return;
  dead_[host] = true;
  --living_;
  const Nanoseconds at = network_.now() + (options_.silent > 0 ? nanoseconds(options_.silent) : kReset);
  for (Host other = 0; other < options_.nodes + 1; ++other) network_.at(at, other, kNoticed, host);
}

void World::notice_death(Host host, Host dead) {
  introductions_.leave(dead);
  if (!nodes_[host] || dead_[host]) return;
  Node& node = *nodes_[host];
  node.uploads.forget(dead);
  for (const auto& [want, to] : node.wants)
    if (to == dead) node.downloads.unanswered(dead, time());
  std::erase_if(node.wants, [dead](const auto& want) { return want.second == dead; });
  for (const std::uint64_t number : std::vector(node.reads)) {
    const Read& read = reads_[number];
    if (read.sender != dead || read.came == unit_bytes(read.unit)) continue;
    end_read(number);
    node.downloads.failed(dead, read.unit, time());
  }
  node.windows.erase(dead);
  node.downloads.drop(dead);
  pump(host);
}

// The digest is FNV-1a over the lines of the log.
void World::record(Host host, std::uint32_t unit, Host from) {
  ++result_.units;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(network_.now()), std::uint64_t{host}, std::uint64_t{unit}, std::uint64_t{from}})
    for (int byte = 0; byte < 8; ++byte)
      result_.digest = (result_.digest ^ (word >> (8 * byte) & 0xFF)) * 0x100000001B3U;
  if (options_.log != nullptr)
    std::fprintf(options_.log, "%lld node %u unit %u from %u\n", static_cast<long long>(network_.now()), host, unit,
                 from);
}

}  // namespace weft::sim
