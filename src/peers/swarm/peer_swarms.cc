#include "peers/swarm/peer_swarms.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <variant>

namespace weft {
namespace {

constexpr std::chrono::milliseconds kManifestPatience = kSilenceMax / 4;  // of the clerk, with the origin

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

}  // namespace

// Answers calls of this node to itself as directory node and as clerk.
class PeerSwarms::Calls final : public SwarmCalls {
 public:
  Calls(PeerSwarms& swarms, std::unique_ptr<SwarmCalls> others) : swarms_(swarms), others_(std::move(others)) {}

  void begin(const std::string& node, std::vector<std::byte> request, std::chrono::milliseconds patience,
             CallDone done) override {
    if (node != swarms_.self_) return others_->begin(node, std::move(request), patience, std::move(done));
    auto asked = decode_request(request);
    if (Join* join = asked.ok() ? std::get_if<Join>(&*asked) : nullptr; join != nullptr)
      return call_here([&](PendingReply reply) { swarms_.receive(node, std::move(*join), std::move(reply)); },
                       std::move(done));
    Want* want = asked.ok() ? std::get_if<Want>(&*asked) : nullptr;
    if (want == nullptr || !want->of_clerk)
      return done(Error{Errc::internal, "this node asks itself for units of a swarm"});
    call_here([&](PendingReply reply) { swarms_.receive(node, std::move(*want), std::move(reply)); }, std::move(done));
  }

 private:
  PeerSwarms& swarms_;
  const std::unique_ptr<SwarmCalls> others_;
};

PeerSwarms::PeerSwarms(PeerSwarmsParts parts)
    : self_(parts.self),
      origin_(std::move(parts.origin)),
      units_(parts.store),
      directory_(
          std::move(parts.source), [this] { introductions_.wake(); }, random_seed(), steady_time(), origin_ != nullptr),
      calls_(std::make_unique<Calls>(*this, std::move(parts.calls))),
      receiver_(std::make_shared<SwarmReceiver>(
          SwarmReceiver::Parts{[this](const Digest& manifest) { return units_.find(manifest); }, *calls_, parts.self,
                               std::move(parts.location), std::move(parts.directories), std::move(parts.holders),
                               [this] { downloads_.wake(); }, random_seed(), steady_time(), origin_ != nullptr,
                               [this](const std::string& node) { gone(node); }})),
      sender_(std::make_shared<SwarmSender>(SwarmSender::Parts{
          [this](const Digest& manifest) { return units_.find(manifest); },
          [this](const Digest& manifest, const std::string& node) { receiver_->met(manifest, node); },
          [this] { uploads_.wake(); }, steady_time(), [this](const Digest& manifest) { receiver_->lost(manifest); }})),
      clerk_(make_clerk()) {}

// Its askers are members of the swarm, and meet this node as such.
std::shared_ptr<SwarmSender> PeerSwarms::make_clerk() {
  if (!origin_) return nullptr;
  const auto units = [this](const Digest& manifest) {
    return units_.find_at(*origin_, manifest, deadline_in(kManifestPatience));
  };
  return std::make_shared<SwarmSender>(
      SwarmSender::Parts{units, [](const Digest&, const std::string&) {}, [this] { names_.wake(); }});
}

Worker::Pause PeerSwarms::pause_until(std::optional<SwarmTime> due) {
  if (!due) return Worker::kUntilWoken;
  return std::max(Worker::Pause::zero(), *due - SwarmTime::clock::now());
}

void PeerSwarms::begin(LocalBytes& bytes) {
  sender_->begin(bytes);
  introductions_.start([this] { return pause_until(directory_.run()); });
  uploads_.start([this] { return pause_until(sender_->run()); });
  downloads_.start([this] { return pause_until(receiver_->run()); });
  if (!clerk_) return;
  clerk_->begin(std::make_unique<OriginStock>());
  names_.start([this] { return pause_until(clerk_->run()); });
}

// The owners may outlive this for a moment, in a call of the exchange: they then touch nothing else.
void PeerSwarms::end() {
  for (Worker* worker : {&introductions_, &uploads_, &names_, &downloads_}) worker->end();
  receiver_->end();
  sender_->end();
  if (clerk_) clerk_->end();
  directory_.end();
}

Status PeerSwarms::want(const Digest& manifest, std::span<const ChunkRun> runs, bool coded) {
  return receiver_->want(manifest, runs, coded);
}

void PeerSwarms::leave(const Digest& manifest) {
  receiver_->leave(manifest);
}

void PeerSwarms::wait_for(const Digest& manifest, const ChunkRun& run) {
  receiver_->wait_for(manifest, run);
}

void PeerSwarms::stop_waiting(const Digest& manifest, const ChunkRun& run) {
  receiver_->stop_waiting(manifest, run);
}

std::shared_ptr<OfferedUnit> PeerSwarms::take() {
  return receiver_->take();
}

bool PeerSwarms::has_partners(const Digest& manifest) const {
  return receiver_->has_partners(manifest);
}

void PeerSwarms::on_change(std::function<void()> call) {
  receiver_->on_change(std::move(call));
}

void PeerSwarms::receive(std::string_view node, Join join, PendingReply reply) {
  if (clerk_) clerk_->reported(node, join);
  directory_.receive(node, join, std::move(reply));
}

void PeerSwarms::receive(std::string_view node, Want want, PendingReply reply) {
  if (!want.of_clerk) return sender_->receive(node, std::move(want), std::move(reply));
  if (clerk_) return clerk_->receive(node, std::move(want), std::move(reply));
  reply.give(Error{Errc::unsupported, "this node has no origin"});
}

void PeerSwarms::unwanted(std::string_view node) {
  directory_.unwanted(node);
  sender_->unwanted(node);
  if (clerk_) clerk_->unwanted(node);
}

void PeerSwarms::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  sender_->arrived(manifest, runs);
  receiver_->arrived(manifest, runs);
}

void PeerSwarms::evicted() {
  sender_->survey_again();
}

void PeerSwarms::left(std::string_view node) {
  directory_.left(node);
  gone(node);
  receiver_->left(node);
}

void PeerSwarms::gone(std::string_view node) {
  sender_->left(node);
  if (clerk_) clerk_->left(node);
}

std::vector<SentVersion> PeerSwarms::named() const {
  return clerk_ ? clerk_->versions() : std::vector<SentVersion>();
}

SwarmFigures PeerSwarms::figures() const {
  const ReceivedSums sums = receiver_->sums();
  SwarmFigures out{.sent = sender_->sent(),
                   .named = clerk_ ? clerk_->sent() : 0,
                   .received = sums.received,
                   .declined = sums.declined};
  std::map<Digest, std::size_t> held;  // units by version: its receiver and its sender count them apart
  for (const FetchedVersion& one : fetched()) {
    held.emplace(one.manifest, one.here);
    out.partners += one.partners;
    if (one.hungry) ++out.hungry;
  }
  for (const SentVersion& one : sent()) {
    std::size_t& here = held[one.manifest];
    here = std::max<std::size_t>(here, one.here);
  }
  out.swarms = held.size();
  for (const auto& [manifest, here] : held) out.held += here;
  for (const IntroducedVersion& one : introduced()) out.introduced += one.members;
  return out;
}

}  // namespace weft
