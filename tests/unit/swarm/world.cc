#include "unit/swarm/world.h"

#include <algorithm>
#include <utility>

namespace weft::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SwarmNode kSource = 0;
constexpr SwarmNode kDirectory = 1'000'000;  // always alive
constexpr milliseconds kAnswerMax = kWantPatience;
constexpr seconds kRunMax{120};

}  // namespace

World::World(std::uint64_t seed)
    : random_(seed), units_(static_cast<std::uint32_t>(1 + random_.below(80))), introductions_(seed) {
  const std::size_t nodes = 2 + random_.below(11);
  for (SwarmNode number = 0; number < nodes; ++number) {
    nodes_.push_back(std::make_unique<Node>(units_));
    plan(number);
  }
}

// Draws what a node has and wants, and when it begins.
void World::plan(SwarmNode number) {
  Node& node = *nodes_[number];
  if (number == kSource) {
    node.held = UnitSet::full(units_);
    return begin(number);
  }
  const bool has_half = one_in(4), wants_part = one_in(4);
  for (std::uint32_t unit = 0; unit < units_; ++unit) {
    if (has_half && one_in(2)) node.held.add(unit);
    if (!wants_part || one_in(2)) node.wanted.add(unit);
  }
  node.lies = one_in(20);
  if (one_in(2)) node.location = std::string(1, static_cast<char>('a' + random_.below(3)));
  if (one_in(5)) node.slowness += static_cast<std::uint32_t>(random_.below(20));
  ++begins_;
  const Delay late = one_in(2) ? Delay(0) : between(Delay(0), one_in(2) ? seconds(1) : seconds(10));
  at(kDirectory, late, [this, number] {
    --begins_;
    begin(number);
  });
}

void World::begin(SwarmNode number) {
  start_classes(number);
  plan_trouble(number);
  if (number == kSource) return;
  join(number);
  live_on(number);
  pump(number);
}

void World::start_classes(SwarmNode number) {
  Node& node = *nodes_[number];
  node.alive = true;
  node.uploads.emplace(units_, node.share);
  node.held.for_each([&](std::uint32_t unit) { node.uploads->add(unit); });
  if (number == kSource) return node.uploads->become_source();
  node.downloads.emplace(node.held, node.wanted, random_.next(), now_);
}

// A sign of life for the directory, and readers.
void World::live_on(SwarmNode number) {
  tell_directory(number, [this, number] { introductions_.hear(number, now_); });
  Node& node = *nodes_[number];
  const auto unit = static_cast<std::uint32_t>(random_.below(units_));
  if (one_in(2)) node.downloads->wait_for(unit);
  if (one_in(2)) node.downloads->stop_waiting(unit);
  if (one_in(6) && !node.held.has(unit)) {
    node.wanted.add(unit);
    node.downloads->want(set_of(units_, {unit}), now_);
    node.done = node.downloads->is_done();
    if (!node.done) join(number);
  }
  at(number, between(milliseconds(1), seconds(20)), [this, number] { live_on(number); });
}

void World::plan_trouble(SwarmNode number) {
  const Delay soon = one_in(2) ? milliseconds(50) : seconds(2);
  if (one_in(4)) at(number, between(Delay(0), soon), [this, number] { kill(number); });
  if (one_in(4))
    at(number, between(Delay(0), soon),
       [this, number] { nodes_[number]->silent_until = now_ + between(milliseconds(1), seconds(8)); });
  if (one_in(4)) at(number, between(Delay(0), soon), [this, number] { evict(number); });
}

void World::kill(SwarmNode number) {
  if (!held_without(number)) return;  // nobody could have all units
  ++deaths_;
  Node& node = *nodes_[number];
  node.alive = false;
  ++node.life;
  const Delay noticed = one_in(2) ? Delay(milliseconds(20)) : Delay(milliseconds(5'500));
  for (SwarmNode other = 0; other < nodes_.size(); ++other)
    if (other != number) at(kDirectory, noticed, [this, other, number] { notice(other, number); });
  at(kDirectory, noticed, [this, number] { introductions_.leave(number); });
  if (number == kSource || one_in(2)) return;
  // It comes back with all that it had.
  ++begins_;
  at(kDirectory, noticed + between(milliseconds(1), seconds(3)), [this, number] {
    --begins_;
    Node& back = *nodes_[number];
    back.wants.clear();
    back.reads.clear();
    back.sent.clear();
    back.asked.clear();
    back.timer.reset();
    back.uploads.reset();
    back.beginnings = 0;
    back.done = false;
    for (const auto& one : nodes_) one->gone.erase(number);
    begin(number);
  });
}

// The session of `number` with a dead node ends.
void World::notice(SwarmNode number, SwarmNode dead) {
  Node& node = *nodes_[number];
  if (!node.alive) return;
  node.gone.insert(dead);
  for (auto& [unit, all] : node.sent)
    for (Sent& one : all)
      if (one.to == dead) {
        one.failed = one.failed || one.open;
        one.open = false;
        one.gone = true;
      }
  node.asked.erase(dead);
  node.uploads->forget(dead);
  if (node.downloads) {
    for (const auto& [want, to] : node.wants)
      if (to == dead) node.downloads->unanswered(dead, now_);
    std::erase_if(node.wants, [dead](const auto& one) { return one.second == dead; });
    for (const auto& [id, read] : node.reads)
      if (read.from == dead) node.downloads->failed(dead, read.unit, now_);
    std::erase_if(node.reads, [dead](const auto& one) { return one.second.from == dead; });
    node.downloads->drop(dead);
  }
  pump(number);
}

// A node loses a unit that others have.
void World::evict(SwarmNode number) {
  Node& node = *nodes_[number];
  const auto unit = static_cast<std::uint32_t>(random_.below(units_));
  if (number == kSource || !node.held.has(unit)) return;
  for (SwarmNode other = 0; other < nodes_.size(); ++other)
    if (other != number && nodes_[other]->alive && !nodes_[other]->lies && nodes_[other]->held.has(unit)) {
      node.held.remove(unit);
      node.verified[unit] = 0;  // it fetches the unit again if it comes back
      node.uploads->remove(unit);
      return;
    }
}

void World::at(SwarmNode node, Delay delay, std::function<void()> act) {
  const std::uint32_t life = node == kDirectory ? 0 : nodes_[node]->life;
  events_.push({now_ + delay, ++events_made_, node, life, std::move(act)});
}

// A message between two nodes. It arrives if the receiver still lives and has not ended the session.
void World::post(SwarmNode from, SwarmNode to, std::function<void()> act) {
  if (!nodes_[to]->alive) return;
  const Delay delay =
      one_in(50) ? between(milliseconds(10), milliseconds(300)) : between(microseconds(50), milliseconds(5));
  at(to, delay, [this, from, to, life = nodes_[from]->life, act = std::move(act)] {
    Node& node = *nodes_[to];
    const bool is_older = nodes_[from]->life != life && (nodes_[from]->alive || node.gone.contains(from));
    if (is_older) return;
    act();
    pump(to);
  });
}

void World::tell_directory(SwarmNode from, std::function<void()> act) {
  const std::uint32_t life = nodes_[from]->life;
  at(kDirectory, between(microseconds(50), milliseconds(5)), [this, from, life, act = std::move(act)] {
    if (nodes_[from]->life != life) return;
    act();
    introduce();
  });
}

void World::join(SwarmNode number) {
  tell_directory(number, [this, number] { introductions_.join(number, nodes_[number]->location, now_); });
}

void World::introduce() {
  for (const Introduction& answer : introductions_.introduce(now_)) {
    const SwarmNode to = answer.node;
    at(to, between(microseconds(50), milliseconds(5)), [this, to, answer] {
      Downloads& downloads = *nodes_[to]->downloads;
      for (const SwarmNode partner : answer.partners)
        if (!nodes_[to]->gone.contains(partner)) downloads.meet(partner, now_);
      if ((answer.may_ask_source || downloads.partners() == 0) && !nodes_[to]->gone.contains(kSource))
        downloads.meet_source(kSource, now_);
      pump(to);
    });
  }
  if (const auto due = introductions_.due()) at(kDirectory, *due - now_, [this] { introduce(); });
}

void World::pump(SwarmNode number) {
  Node& node = *nodes_[number];
  if (!node.alive) return;
  if (node.downloads) {
    while (const auto next = node.downloads->next(now_)) send_want(number, *next);
    if (node.downloads->joins_again(now_)) join(number);
    if (!node.done && node.downloads->is_done()) {
      node.done = true;
      tell_directory(number, [this, number] { introductions_.finish(number); });
    }
  }
  while (const auto answer = node.uploads->next(now_)) {
    note_beginning();
    send_offer(number, *answer);
  }
  note_beginning();
  check_bounds(number);
  set_timer(number);
}

void World::set_timer(SwarmNode number) {
  Node& node = *nodes_[number];
  std::optional<SwarmTime> due = node.uploads->due();
  if (node.downloads)
    if (const auto other = node.downloads->due(now_); other && (!due || *other < *due)) due = other;
  if (!due) return;
  expect(*due > now_, "due() names no time of the past");
  if (node.timer && *node.timer > now_ && *node.timer <= *due) return;
  node.timer = due;
  at(number, *due - now_, [this, number] { pump(number); });
}

void World::send_want(SwarmNode number, const NextWant& next) {
  Node& node = *nodes_[number];
  const std::uint64_t want = ++wants_made_;
  node.wants[want] = next.node;
  expect(!node.gone.contains(next.node), "a node that has left gets no wants");
  expect(!next.first || !node.downloads->taken().has(*next.first), "a want names a lacking unit");
  const UnitWant units{node.downloads->taken(), next.first, next.hungry};
  post(number, next.node, [this, number, to = next.node, want, units] { receive_want(to, number, want, units); });
  at(number, kAnswerMax, [this, number, to = next.node, want] {
    if (nodes_[number]->wants.erase(want) != 0) nodes_[number]->downloads->unanswered(to, now_);
    pump(number);
  });
}

void World::receive_want(SwarmNode number, SwarmNode asker, std::uint64_t want, const UnitWant& units) {
  Node& node = *nodes_[number];
  if (node.downloads) node.downloads->meet(asker, now_);
  node.asked.insert_or_assign(asker, units);
  if (!node.uploads->want(asker, want, units, now_))
    post(number, asker, [this, number, asker, want] { receive_offer(asker, number, want, std::nullopt); });
}

void World::send_offer(SwarmNode number, const UnitAnswer& answer) {
  Node& node = *nodes_[number];
  const SwarmNode to = answer.node;
  if (answer.unit) {
    const std::uint32_t unit = *answer.unit;
    expect(node.held.has(unit), "a sender offers units that it has");
    expect(!node.asked.at(to).has.has(unit), "a sender offers units that the asker lacks");
    expect(!node.gone.contains(to), "a node that has left gets no offers");
    if (number == kSource && !node.sent[unit].empty()) {
      ++repeats_;
      expect(may_repeat(node, unit, to), "a source sends a unit again for a reason");
    }
    node.sent[unit].push_back({to, now_});
  }
  post(number, to, [this, number, answer] { receive_offer(answer.node, number, answer.want, answer.unit); });
}

// The source has begun anew: nobody waits for it or reads from it.
void World::note_beginning() {
  Node& source = *nodes_[kSource];
  if (std::exchange(source.beginnings, source.uploads->beginnings()) == source.uploads->beginnings()) return;
  for (const auto& [unit, all] : source.sent)
    expect(std::ranges::none_of(all, &Sent::open), "a source begins anew while nobody reads from it");
  source.sent.clear();
}

bool World::may_repeat(const Node& source, std::uint32_t unit, SwarmNode to) const {
  const std::vector<Sent>& earlier = source.sent.at(unit);
  if (std::all_of(earlier.begin(), earlier.end(), [](const Sent& one) { return one.failed; })) return true;
  return source.asked.at(to).hungry && (earlier.back().at + Uploads::kResendAfter <= now_ || earlier.back().gone);
}

void World::receive_offer(SwarmNode number, SwarmNode sender, std::uint64_t want, std::optional<std::uint32_t> unit) {
  Node& node = *nodes_[number];
  if (node.wants.erase(want) == 0) {  // too late
    if (unit) send_end(number, sender, *unit, false);
    return;
  }
  if (!node.downloads->offered(sender, unit, now_)) {
    if (unit) send_end(number, sender, *unit, false);
    return;
  }
  const std::uint64_t read = ++reads_made_;
  node.reads[read] = {sender, *unit, now_};
  const Delay takes =
      one_in(40) ? between(milliseconds(500), seconds(3)) : between(microseconds(200), milliseconds(20));
  at(number, takes * node.slowness, [this, number, read] { end_read(number, read); });
}

void World::end_read(SwarmNode number, std::uint64_t id) {
  Node& node = *nodes_[number];
  if (!node.reads.contains(id)) return;  // the session of the sender has ended
  const Read read = node.reads.at(id);
  const Node& sender = *nodes_[read.from];
  const bool is_silent = !sender.alive || sender.silent_until > now_;
  if (is_silent && now_ < read.begun + kAnswerMax)
    return at(number, milliseconds(100), [this, number, id] { end_read(number, id); });
  node.reads.erase(id);
  if (!is_silent && !sender.lies && sender.held.has(read.unit) && !one_in(50)) {
    verify(number, read);
  } else {
    node.downloads->failed(read.from, read.unit, now_);
    if (!is_silent && sender.lies) node.downloads->ban(read.from);
    send_end(number, read.from, read.unit, false);
  }
  pump(number);
}

void World::verify(SwarmNode number, const Read& read) {
  Node& node = *nodes_[number];
  expect(++node.verified[read.unit] == 1, "each unit is verified once");
  expect(!node.held.has(read.unit), "no unit is read that is here");
  expect(node.wanted.has(read.unit), "no unit is read that is not wanted");
  node.held.add(read.unit);
  node.uploads->add(read.unit);
  node.downloads->arrived(read.from, read.unit, now_);
  send_end(number, read.from, read.unit, true);
}

void World::send_end(SwarmNode number, SwarmNode sender, std::uint32_t unit, bool read) {
  if (nodes_[number]->gone.contains(sender)) return;
  post(number, sender, [this, number, sender, unit, read] {
    Node& node = *nodes_[sender];
    for (Sent& one : node.sent[unit])
      if (one.to == number && one.open) {
        one.open = false;
        one.failed = !read;
        break;
      }
    node.uploads->ended(number, unit, read);
  });
}

// True if the other live nodes have all units together.
bool World::held_without(SwarmNode without) const {
  UnitSet all(units_);
  for (SwarmNode number = 0; number < nodes_.size(); ++number) {
    const Node& node = *nodes_[number];
    if (number != without && node.alive && !node.lies) node.held.for_each([&](std::uint32_t unit) { all.add(unit); });
  }
  return all.all();
}

void World::check_bounds(SwarmNode number) {
  const Node& node = *nodes_[number];
  const std::size_t open = node.wants.size() + node.reads.size();
  // A partner may get one more that says that the node is hungry, and one that ends the session.
  expect(open <= kWantsOpen + 2 * nodes_.size(), "wants are bounded");
  std::size_t uploads = 0;
  for (const auto& [unit, all] : node.sent)
    uploads +=
        static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Sent& one) { return one.open; }));
  expect(uploads == node.share.uploads + node.share.aside, "each upload that ended is free again");
  expect(node.share.uploads <= kUploadsAtOnce, "uploads are bounded");
  expect(node.share.aside <= kUploadsAsideMax, "uploads without a place are bounded");
  expect(node.share.waiting == node.uploads->waiting(), "each waiting want is counted");
  expect(node.share.waiting <= kWantsOpen * nodes_.size(), "waiting wants are bounded");
}

bool World::is_over() const {
  return begins_ == 0 && std::all_of(nodes_.begin(), nodes_.end(),
                                     [](const auto& node) { return !node->alive || !node->downloads || node->done; });
}

std::string World::run() {
  while (broken_.empty() && !is_over()) {
    if (events_.empty() || events_.top().at > kStart + kRunMax) return unfinished();
    Event event = events_.top();
    events_.pop();
    now_ = event.at;
    if (event.node == kDirectory) {
      event.act();
      continue;
    }
    const Node& node = *nodes_[event.node];
    if (node.life != event.life) continue;
    if (node.silent_until > now_) {
      event.at = node.silent_until;
      events_.push(std::move(event));
      continue;
    }
    event.act();
  }
  return broken_;
}

std::string World::unfinished() const {
  std::string text = "each live node ends, of " + std::to_string(nodes_.size()) + " nodes not:";
  for (SwarmNode number = 1; number < nodes_.size(); ++number)
    if (const Node& node = *nodes_[number]; node.alive && !node.done) text += " " + std::to_string(number);
  return text;
}

void World::expect(bool true_value, const std::string& promise) {
  if (!true_value && broken_.empty()) broken_ = promise;
}

World::Delay World::between(Delay least, Delay most) {
  return least + Delay(static_cast<Delay::rep>(random_.below(static_cast<std::size_t>((most - least).count()) + 1)));
}

}  // namespace weft::testing
