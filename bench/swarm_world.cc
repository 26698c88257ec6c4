#include "swarm_world.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/limits.h"
#include "fetch/fetch_options.h"
#include "weft/bytes/traffic.h"
#include "weft/content.h"

namespace weft::sim {
namespace {

// Bytes of the messages of peers.fbs, with the frame of a session and the headers of TCP.
constexpr std::uint64_t kSmallMessage = 150;
constexpr std::uint64_t kPartnerBytes = 40;
constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kReset = 20'000'000;  // until the end of a connection is noticed

Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(seconds * 1e9);
}

double seconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / kSecond;
}

}  // namespace

struct World::Message {
  enum class Type : std::uint8_t { call, heard, partners, want, offer, ended, ask, give };
  Type type = Type::call;
  Host from = 0, to = 0;
  std::uint64_t number = 0;                  // calls and wants have one, their answers the same
  Join::State state = Join::State::fetches;  // call
  UnitWant units = {UnitSet()};              // want
  std::optional<std::uint32_t> unit{};       // offer, ended, ask, give
  bool flag = false;                         // partners: may ask the source; ended: read
  std::vector<SwarmNode> partners{};
};

World::World(const WorldOptions& options)
    : options_(options),
      units_((options.size + kDigestChunk - 1) / kDigestChunk),
      network_(options.nodes + 2, options.network),
      random_(options.seed),
      directory_(Introductions(options.seed)),
      reads_(network_, units_, {options.size, options.piece_max, options.in_flight}) {}

World::~World() = default;

bool World::is_slow(Host host) const {
  return host >= options_.nodes - static_cast<std::uint32_t>(std::llround(options_.slow * options_.nodes));
}

WorldResult World::run() {
  nodes_.resize(options_.nodes + 1);
  dead_.resize(options_.nodes + 2);
  nodes_[source()] = std::make_unique<SimNode>(units_, random_.next(), time());
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
  const bool gone = dead_[event.host] != 0;
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
      SimNode& node = *nodes_[event.host];
      if (node.timer && *node.timer <= time()) node.timer.reset();
      return pump(event.host);
    }
    case kPieceAsked:
      return reads_.asked(event.what, gone);
    case kPieceCame: {
      if (gone) return reads_.forget(event.what);
      if (const auto read = reads_.came(event.what)) unit_came(event.host, *read);
      return;
    }
    case kPieceLost: {
      if (gone) return reads_.forget(event.what);
      if (const auto read = reads_.lost(event.what)) fail_read(*read, Downloads::kAskFailedAgain);
      return pump(event.host);
    }
    case kVerified:
      if (!gone) unit_verified(event.host, event.what);
      return;
    case kDie:
      return kill(event.host);
    default:
      return notice_death(event.host, static_cast<Host>(event.what));
  }
}

void World::start(Host host) {
  nodes_[host] = std::make_unique<SimNode>(units_, random_.next(), time());
  SimNode& node = *nodes_[host];
  node.fetches = true;
  if (options_.readers) node.downloads.wait_for(0);
  pump(host);
}

// A node does what is due after each event.
void World::pump(Host host) {
  SimNode& node = *nodes_[host];
  if (node.fetches) {
    end_silent_wants(host);
    if (node.is_in_swarm()) {
      give_up_slow_reads(host);
      call_directory(host);
      leave_silent_swarm(host);
    }
    if (!node.left) send_wants(host);
    if (!node.done) ask_holders(host);
  }
  answer_wants(host);
  set_timer(host);
}

void World::set_timer(Host host) {
  SimNode& node = *nodes_[host];
  const SwarmTime now = time();
  std::optional<SwarmTime> first;
  const auto add = [&first](std::optional<SwarmTime> due) {
    if (due && (!first || *due < *first)) first = due;
  };
  // If such a time has passed without an effect, the node waits for another event.
  const auto add_later = [&](SwarmTime due) {
    if (due > now) add(due);
  };
  add(node.uploads.due());
  add(node.running.due());
  add(node.wants_due(now));
  if (node.is_in_swarm()) {
    add(node.downloads.due(now));
    add(node.calls.due());
    add_later(node.leaves_at());
    if (options_.readers) add_later(node.asks_at());
    add(slow_read_due(node));
  }
  if (first) wake_at(host, node.timer, *first);
}

void World::wake_at(Host host, std::optional<SwarmTime>& timer, SwarmTime due) {
  if (timer && *timer <= due) return;
  timer = due;
  network_.at(due.time_since_epoch().count(), host, kTimer, 0);
}

void World::introduce() {
  if (directory_timer_ && *directory_timer_ <= time()) directory_timer_.reset();
  for (DirectoryNode::Answer& answer : directory_.run(time())) {
    Introduction& one = answer.introduction;
    const std::uint64_t bytes = kSmallMessage + kPartnerBytes * one.partners.size();
    send({.type = Message::Type::partners,
          .from = directory(),
          .to = one.node,
          .number = answer.call,
          .flag = one.may_ask_source,
          .partners = std::move(one.partners)},
         bytes);
  }
  wake_at(directory(), directory_timer_, directory_.due());
}

void World::call_directory(Host host) {
  SimNode& node = *nodes_[host];
  const SwarmTime now = time();
  if (node.downloads.joins_again(now)) node.calls.want_partners();
  node.calls.expire(now);
  while (const auto state = node.calls.next(now)) {
    node.calls.made(++next_call_, *state, now);
    send({.type = Message::Type::call, .from = host, .to = directory(), .number = next_call_, .state = *state},
         kSmallMessage);
  }
  if (node.calls.needs_holders()) meet_holders(host);
}

// Nodes that fetched all come before the source: all nodes know that one.
void World::meet_holders(Host host) {
  SimNode& node = *nodes_[host];
  const auto meet = [&](Host holder) {
    node.silences.erase(holder);
    node.downloads.meet_source(holder, time());
  };
  const std::size_t whole = std::min(whole_.size(), SwarmSession::kHoldersMax);
  std::for_each(whole_.begin(), whole_.begin() + static_cast<std::ptrdiff_t>(whole), meet);
  if (whole < SwarmSession::kHoldersMax) meet(source());
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
  if (message.type == Type::call) return receive_call(message);
  SimNode& node = *nodes_[host];
  switch (message.type) {
    case Type::heard:
      node.calls.answered(message.number);
      break;
    case Type::partners:
      receive_partners(host, message);
      break;
    case Type::want:
      receive_want(host, std::move(message));
      break;
    case Type::offer:
      offered(host, message);
      break;
    case Type::ask:
      send({.type = Type::give, .from = host, .to = message.from, .unit = message.unit}, kSmallMessage);
      break;
    case Type::give:
      begin_read(host, message.from, *message.unit, false);
      break;
    default:
      if (node.running.end(message.from, *message.unit, message.flag))
        node.uploads.ended(message.from, *message.unit, message.flag);
      break;
  }
  pump(host);
}

// A call to the directory node.
void World::receive_call(const Message& call) {
  if (call.state == Join::State::fetches) {
    const std::string location = options_.says_rack ? std::to_string(network_.rack(call.from)) : std::string();
    directory_.join(call.from, location, call.number, time());
  } else {
    directory_.note(call.from, call.state, time());
    send({.type = Message::Type::heard, .from = directory(), .to = call.from, .number = call.number}, kSmallMessage);
  }
  wake_at(directory(), directory_timer_, directory_.due());
}

void World::receive_partners(Host host, const Message& answer) {
  SimNode& node = *nodes_[host];
  if (!node.calls.answered(answer.number) || node.left) return;
  for (const SwarmNode partner : answer.partners) node.downloads.meet(partner, time());
  if (answer.flag) {
    node.silences.erase(source());
    node.downloads.meet_source(source(), time());
  }
  node.calls.joined(time(), node.downloads.partners() == 0);
}

void World::send_wants(Host host) {
  SimNode& node = *nodes_[host];
  while (const auto want = node.downloads.next(time())) {
    node.wants.push_back({++next_call_, want->node, time()});
    const auto traffic = static_cast<std::uint8_t>(want->first ? Traffic::foreground : Traffic::ahead);
    send({.type = Message::Type::want,
          .from = host,
          .to = want->node,
          .number = next_call_,
          .units = {node.downloads.taken(), want->first, want->hungry, traffic}},
         kSmallMessage + units_.count() / 8);
  }
}

void World::end_silent_wants(Host host) {
  SimNode& node = *nodes_[host];
  while (const auto silent = node.take_silent_want(time())) {
    ++result_.silent_wants;
    node.downloads.unanswered(*silent, time());
    if (++node.silences[*silent] < SwarmSession::kSilencesMax) continue;
    node.downloads.drop(*silent);
    if (node.downloads.partners() == 0) node.calls.lost_all_partners();
  }
}

void World::receive_want(Host host, Message want) {
  SimNode& node = *nodes_[host];
  if (node.fetches && !node.left) {
    node.silences.erase(want.from);
    node.downloads.meet(want.from, time());
  }
  if (!node.uploads.want(want.from, want.number, std::move(want.units), time()))
    send({.type = Message::Type::offer, .from = host, .to = want.from, .number = want.number}, kSmallMessage);
}

void World::answer_wants(Host host) {
  SimNode& node = *nodes_[host];
  while (const auto old = node.running.take_old(time())) {
    ++result_.unread_uploads;
    node.uploads.ended(old->to, old->unit, false);
  }
  while (auto answer = node.uploads.next(time())) {
    if (answer->unit && node.running.waits_for_read(answer->node)) {
      node.uploads.ended(answer->node, *answer->unit, false);
      answer->unit.reset();
    }
    if (answer->unit) node.running.begin(answer->node, *answer->unit, time());
    send({.type = Message::Type::offer, .from = host, .to = answer->node, .number = answer->want, .unit = answer->unit},
         kSmallMessage);
  }
}

// An offer that comes too late, or of a unit that comes by the ordinary way, is not read.
void World::offered(Host host, const Message& offer) {
  SimNode& node = *nodes_[host];
  const bool is_awaited = node.take_want(offer.number);
  if (is_awaited) {
    node.links[offer.from].heard = time();
    node.silences.erase(offer.from);
    if (node.downloads.offered(offer.from, offer.unit, time())) {
      if (!node.has_asked(*offer.unit)) return begin_read(host, offer.from, *offer.unit, true);
      node.downloads.failed(offer.from, *offer.unit, time());
    }
  }
  if (offer.unit) send_end(host, offer.from, *offer.unit, false);
}

void World::send_end(Host host, Host sender, std::uint32_t unit, bool read) {
  send({.type = Message::Type::ended, .from = host, .to = sender, .unit = unit, .flag = read}, kSmallMessage);
}

void World::begin_read(Host host, Host sender, std::uint32_t unit, bool by_swarm) {
  SimNode& node = *nodes_[host];
  const std::uint64_t number = reads_.begin(host, sender, unit, by_swarm, node.links[sender]);
  if (by_swarm) node.reads.push_back(number);
}

void World::end_read(std::uint64_t number) {
  const UnitRead& read = reads_[number];
  SimNode& node = *nodes_[read.receiver];
  if (read.by_swarm)
    std::erase(node.reads, number);
  else
    std::erase(node.asked, read.unit);
  reads_.end(number);
}

void World::fail_read(std::uint64_t number, std::chrono::milliseconds pause) {
  const UnitRead read = reads_[number];
  end_read(number);
  nodes_[read.receiver]->downloads.failed(read.sender, read.unit, time(), pause);
  send_end(read.receiver, read.sender, read.unit, false);
}

// As SwarmSession::give_up_slow_reads().
void World::give_up_slow_reads(Host host) {
  SimNode& node = *nodes_[host];
  const auto slow_after = node.read_times.slow_after();
  const auto is_slow = [&](std::uint64_t number) { return reads_[number].begun + *slow_after <= time(); };
  if (!slow_after || node.reads.empty() || !is_slow(node.reads.front()) || node.downloads.partners() < 2) return;
  const bool is_last = node.downloads.taken().all();
  for (const std::uint64_t number : std::vector(node.reads)) {
    const UnitRead& read = reads_[number];
    const bool matters = is_last || node.downloads.is_waited_for(read.unit);
    if (!is_slow(number) || !matters || read.has_come()) continue;
    ++result_.slow_reads;
    fail_read(number, Downloads::kAskSlowAgain);
  }
}

// Returns when the next read becomes slow.
std::optional<SwarmTime> World::slow_read_due(const SimNode& node) {
  const auto slow_after = node.read_times.slow_after();
  if (!slow_after) return std::nullopt;
  for (const std::uint64_t number : node.reads)
    if (const SwarmTime at = reads_[number].begun + *slow_after; at > time()) return at;
  return std::nullopt;
}

// One thread verifies the units of a node.
void World::unit_came(Host host, std::uint64_t number) {
  SimNode& node = *nodes_[host];
  const auto hashing = static_cast<Nanoseconds>(reads_[number].length * 1'000'000'000 / options_.hash_bytes_per_second);
  node.hashed = std::max(node.hashed, network_.now()) + hashing;
  network_.at(node.hashed, host, kVerified, number);
}

void World::unit_verified(Host host, std::uint64_t number) {
  SimNode& node = *nodes_[host];
  const UnitRead read = reads_[number];
  end_read(number);
  record(host, read.unit, read.sender);
  node.uploads.add(read.unit);
  if (read.by_swarm) {
    node.read_times.add(time() - read.begun);
    node.moved = time();
    node.downloads.arrived(read.sender, read.unit, time());
    send_end(host, read.sender, read.unit, true);
  } else {
    ++result_.from_holders;
    node.downloads.add(read.unit);
  }
  if (options_.readers) advance_reader(host);
  if (node.downloads.has().all()) finish(host);
  pump(host);
}

void World::advance_reader(Host host) {
  SimNode& node = *nodes_[host];
  const std::uint32_t before = node.reader;
  while (node.reader < units_.count() && node.downloads.has().has(node.reader)) ++node.reader;
  if (node.reader == before) return;
  node.reader_since = time();
  if (node.reader < units_.count()) node.downloads.wait_for(node.reader);
  if (before == 0) result_.first_unit.push_back(seconds(time() - node.begun));
}

void World::finish(Host host) {
  SimNode& node = *nodes_[host];
  node.done = true;
  --living_;
  whole_.push_back(host);
  (is_slow(host) ? result_.slow_seconds : result_.seconds).push_back(seconds(time() - node.begun));
  result_.last_end = static_cast<double>(network_.now()) / kSecond;
  if (!node.left && node.calls.knows_directory())
    send({.type = Message::Type::call, .from = host, .to = directory(), .state = Join::State::finished}, kSmallMessage);
}

// As SwarmReads does with a swarm that SwarmFetch::silent() names.
void World::leave_silent_swarm(Host host) {
  SimNode& node = *nodes_[host];
  const bool lacks_some = node.downloads.has().count() + node.asked.size() < units_.count();
  if (!node.reads.empty() || node.leaves_at() > time() || !lacks_some) return;
  ++result_.left;
  node.left = true;
  if (node.calls.knows_directory())
    send({.type = Message::Type::call, .from = host, .to = directory(), .state = Join::State::leaves}, kSmallMessage);
  node.downloads.abandon();
  send_wants(host);
  node.wants.clear();
}

// A reader asks a node with the whole version for the unit that its swarm does not bring in time. A node that has left
// its swarm asks such nodes for all its units, a few at a time.
void World::ask_holders(Host host) {
  SimNode& node = *nodes_[host];
  if (node.left) {
    const std::size_t at_once = FetchOptions().threads;
    for (std::uint32_t unit = 0; unit < units_.count() && node.asked.size() < at_once; ++unit)
      if (!node.downloads.has().has(unit) && !node.has_asked(unit)) ask_holder(host, unit);
    return;
  }
  if (!options_.readers || node.asks_at() > time() || node.has_asked(node.reader)) return;
  const auto is_of_reader = [&](std::uint64_t number) { return reads_[number].unit == node.reader; };
  if (std::ranges::none_of(node.reads, is_of_reader)) ask_holder(host, node.reader);
}

// As PeerLinks, which prefers nodes that fetched all to the first holder, and takes any of them.
void World::ask_holder(Host host, std::uint32_t unit) {
  const std::size_t known = std::min(whole_.size(), limits::kHoldersMax);
  const Host holder = known == 0 ? source() : whole_[random_.below(known)];
  nodes_[host]->asked.push_back(unit);
  send({.type = Message::Type::ask, .from = host, .to = holder, .unit = unit}, kSmallMessage);
}

void World::kill(Host host) {
  if (nodes_[host]->done || dead_[host] != 0) return;
  dead_[host] = 1;
  --living_;
  const Nanoseconds at = network_.now() + (options_.silent > 0 ? nanoseconds(options_.silent) : kReset);
  for (Host other = 0; other <= directory(); ++other) network_.at(at, other, kNoticed, host);
}

void World::notice_death(Host host, Host dead) {
  if (host == directory()) return directory_.drop(dead);
  if (!nodes_[host] || dead_[host] != 0) return;
  SimNode& node = *nodes_[host];
  node.uploads.forget(dead);
  node.running.forget(dead);
  for (const SimNode::Want& want : node.wants)
    if (want.to == dead) node.downloads.unanswered(dead, time());
  std::erase_if(node.wants, [dead](const SimNode::Want& want) { return want.to == dead; });
  for (const std::uint64_t number : std::vector(node.reads)) {
    const UnitRead read = reads_[number];
    if (read.sender != dead || read.has_come()) continue;
    end_read(number);
    node.downloads.failed(dead, read.unit, time());
  }
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
