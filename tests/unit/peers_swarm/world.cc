#include "unit/peers_swarm/world.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "peers/messages.h"
#include "testing.h"

namespace weft::testing {
namespace {

constexpr auto kDelay = std::chrono::microseconds(100);  // delay of a message, and of the read of a unit

}  // namespace

// Passes the reply of a server on to the caller.
class World::Reply final : public ReplyTaker {
 public:
  Reply(World& world, CallDone done) : world_(world), done_(std::move(done)) {}
  void give(Result<PeerReply> reply) override {
    if (std::exchange(given_, true)) return;  // too late
    const auto kept = std::make_shared<Result<PeerReply>>(std::move(reply));
    world_.later(kDelay, [kept, done = done_] {
      if (!kept->ok()) return done(kept->error());
      done(std::unique_ptr<Answer>(std::make_unique<TestAnswer>(std::move(*kept).value())));
    });
  }
  bool wanted() const override { return !given_; }

 private:
  World& world_;
  const CallDone done_;
  bool given_ = false;
};

class World::Calls final : public SwarmCalls {
 public:
  Calls(World& world, std::string self) : world_(world), self_(std::move(self)) {}
  void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds patience,
             CallDone done) override {
    world_.later(kDelay, [this, node, request = std::move(request), patience, done = std::move(done)] {
      world_.deliver(self_, node, request, patience, done);
    });
  }

 private:
  World& world_;
  const std::string self_;
};

World::~World() {
  events_.clear();
  for (auto& [name, node] : nodes_) {
    node->receiver->end();
    node->sender->end();
    node->clerk->end();
    node->directory->end();
  }
  events_.clear();  // those of the ends
}

World::Node& World::add(const std::string& name) {
  auto& node = *nodes_.emplace(name, std::make_unique<Node>(name, version)).first->second;
  const auto find = [this](const Digest& manifest) { return version.find(manifest); };
  const auto wake = [&node] { node.woken = true; };
  node.calls = std::make_unique<Calls>(*this, name);
  node.directory =
      std::make_unique<SwarmDirectory>([this](const Digest&) { return source; }, wake, nodes_.size(), time, has_origin);
  node.receiver = std::make_shared<SwarmReceiver>(
      SwarmReceiver::Parts{find, *node.calls, name, [] { return ""; }, [this](const Digest&) { return directories; },
                           [this](const Digest&) { return holders; }, wake, nodes_.size(), time, has_origin});
  node.sender = std::make_shared<SwarmSender>(SwarmSender::Parts{
      find, [&node](const Digest& manifest, const std::string& asker) { node.receiver->met(manifest, asker); }, wake,
      time});
  node.sender->begin(node.bytes);
  node.clerk =
      std::make_shared<SwarmSender>(SwarmSender::Parts{find, [](const Digest&, const std::string&) {}, wake, time});
  node.clerk->begin(std::make_unique<OriginStock>());
  return node;
}

void World::want_all(Node& node) {
  must(node.receiver->want(version.manifest(), version.runs(), coded));
}

SentVersion World::sent(const Node& node) const {
  const auto versions = node.sender->versions();
  return versions.empty() ? SentVersion{} : versions.front();
}

void World::later(std::chrono::nanoseconds delay, Event event) {
  events_.emplace(time.now() + delay, std::move(event));
}

void World::deliver(const std::string& from, const std::string& to, const std::vector<std::byte>& request,
                    std::chrono::milliseconds patience, const CallDone& done) {
  const auto found = nodes_.find(to);
  if (found == nodes_.end()) return done(Error{Errc::unreachable, to + " is no member"});
  if (!found->second->alive) return later(patience, [done, to] { done(Error{Errc::timed_out, to + " is silent"}); });
  Node& node = *found->second;
  ++requests;
  const auto taker = std::make_shared<Reply>(*this, done);
  PendingReply reply(taker);
  const PeerRequest asked = must(decode_request(request));
  const auto* join = std::get_if<Join>(&asked);
  const auto* want = std::get_if<Want>(&asked);
  if ((join != nullptr && node.on_join) || (want != nullptr && node.on_want))
    later(patience, [taker, to] { taker->give(Error{Errc::timed_out, to + " is silent"}); });
  if (join != nullptr && node.on_join) return node.on_join(from, *join, std::move(reply));
  if (want != nullptr && node.on_want) return node.on_want(from, *want, std::move(reply));
  if (join != nullptr) {
    node.clerk->reported(from, *join);
    return node.directory->receive(from, *join, std::move(reply));
  }
  if (want != nullptr) return (want->of_clerk ? node.clerk : node.sender)->receive(from, *want, std::move(reply));
  throw std::runtime_error("a request that is not of a swarm");
}

void World::run(Node& node) {
  node.woken = false;
  node.due.reset();
  for (const auto due : {node.directory->run(), node.receiver->run(), node.sender->run(), node.clerk->run()})
    if (due) node.due = node.due ? std::min(*node.due, *due) : *due;
  while (const auto offer = std::dynamic_pointer_cast<PeerOffer>(node.receiver->take()))
    later(kDelay, [this, &node, offer] { read(node, *offer); });
}

// As a fetcher does.
void World::read(Node& node, PeerOffer& offer) {
  if (!node.alive || !reads(node, offer)) return;
  if (!offer.by_name()) {
    const OfferPlace place = offer.place();
    const auto bytes = dynamic_cast<TestAnswer&>(*place.answer).read_all(place.head);
    if (!place.has_token && !std::ranges::equal(bytes, version.bytes(offer.unit()))) {
      ++node.wrong;
      return offer.refuted();
    }
  }
  ++node.from[offer.node()];
  node.bytes.add(offer.unit());
  node.sender->arrived(offer.manifest(), offer.runs());
  node.receiver->arrived(offer.manifest(), offer.runs());
  offer.arrived();
}

// Runs one event, or the owners of one node. False: nothing is due.
bool World::step() {
  for (auto& [name, node] : nodes_)
    if (node->alive && (node->woken || (node->due && *node->due <= time.now()))) {
      run(*node);
      return true;
    }
  if (events_.empty() || events_.begin()->first > time.now()) return false;
  const Event event = std::move(events_.begin()->second);
  events_.erase(events_.begin());
  event();
  return true;
}

std::optional<SwarmTime> World::next() const {
  std::optional<SwarmTime> next;
  if (!events_.empty()) next = events_.begin()->first;
  for (const auto& [name, node] : nodes_)
    if (node->alive && node->due) next = next ? std::min(*next, *node->due) : *node->due;
  return next;
}

bool World::run_until(const std::function<bool()>& done, std::chrono::seconds time_max) {
  const auto end = time.now() + time_max;
  while (!done()) {
    if (step()) continue;
    const auto next = this->next();
    if (!next || *next > end) return false;
    time.pass(*next - time.now());
  }
  return true;
}

}  // namespace weft::testing
