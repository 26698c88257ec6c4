#include "peers/swarm/swarm_receiver.h"

#include <algorithm>

#include "weft/bytes/swarm.h"

namespace weft {

static_assert(kWantsOpen == kAcceptedMax);

SwarmReceiver::SwarmReceiver(Parts parts) : parts_(std::move(parts)), random_(parts_.seed) {}

void SwarmReceiver::wake() {
  if (!ended_) parts_.wake();
}

Status SwarmReceiver::want(const Digest& manifest, std::span<const ChunkRun> runs, bool coded) {
  WEFT_TRY(const auto version, parts_.units(manifest));
  UnitSet units(version->count());
  for (const ChunkRun& run : runs) {
    const auto range = version->units_of(run);
    if (!range) return Error{Errc::invalid, "a swarm is asked for chunks that are not of its version"};
    for (std::uint32_t unit = range->first; unit <= range->second; ++unit) units.add(unit);
  }
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  if (ended_) return Error{Errc::cancelled, "this node leaves its swarms"};
  SwarmSession* session = find(manifest);
  if (session == nullptr && sessions_.size() >= kVersionsMax)
    std::erase_if(sessions_, [](const auto& one) { return one.second->downloads().is_done(); });
  if (session == nullptr) {
    if (sessions_.size() >= kVersionsMax) return Error{Errc::busy, "this node fetches too many versions"};
    auto fresh = std::make_unique<SwarmSession>(manifest, version, parts_.self, parts_.reads_origin, ++serials_,
                                                random_.next(), now);
    session = sessions_.emplace(manifest, std::move(fresh)).first->second.get();
  }
  session->want(units, coded, now);
  wake();
  return {};
}

void SwarmReceiver::leave(const Digest& manifest) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(manifest);
  if (found == sessions_.end()) return;
  if (const std::string& directory = found->second->directory(); !directory.empty())
    last_.words.push_back({0, directory, {manifest, {}, Join::State::leaves}});
  found->second->abandon();
  while (auto want = found->second->next_want(parts_.time.now())) last_.wants.emplace_back(0, *std::move(want));
  sessions_.erase(found);
  wake();
}

void SwarmReceiver::wait_for(const Digest& manifest, const ChunkRun& run) {
  const MutexLock lock(mutex_);
  if (SwarmSession* session = find(manifest)) session->wait_for(run);
}

void SwarmReceiver::stop_waiting(const Digest& manifest, const ChunkRun& run) {
  const MutexLock lock(mutex_);
  if (SwarmSession* session = find(manifest)) session->stop_waiting(run);
}

std::shared_ptr<OfferedUnit> SwarmReceiver::take() {
  const MutexLock lock(mutex_);
  if (offers_.empty()) return nullptr;
  auto offer = std::move(offers_.front());
  offers_.pop_front();
  return offer;
}

bool SwarmReceiver::has_partners(const Digest& manifest) const {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(manifest);
  return found != sessions_.end() && found->second->downloads().has_receivers();
}

void SwarmReceiver::on_change(std::function<void()> call) {
  const MutexLock lock(call_mutex_);
  call_.swap(call);
}

void SwarmReceiver::tell_change() {
  const MutexLock lock(call_mutex_);
  if (call_) call_();
}

void SwarmReceiver::met(const Digest& manifest, std::string_view node) {
  const auto now = parts_.time.now();
  bool first = false;
  {
    const MutexLock lock(mutex_);
    SwarmSession* session = find(manifest);
    if (session == nullptr) return;
    first = !session->downloads().has_receivers();
    session->met(node, now);
    wake();
  }
  if (first) tell_change();
}

void SwarmReceiver::lost(const Digest& manifest) {
  {
    const MutexLock lock(mutex_);
    const SwarmSession* session = find(manifest);
    if (session == nullptr || !session->downloads().is_done()) return;
  }
  leave(manifest);
}

void SwarmReceiver::left(std::string_view node) {
  const MutexLock lock(mutex_);
  for (auto& [manifest, session] : sessions_) session->drop(node);
  wake();  // a clerk has left perhaps
}

void SwarmReceiver::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  SwarmSession* session = find(manifest);
  if (session == nullptr) return;
  session->arrived(runs, now);
  if (session->downloads().is_done()) wake();
}

void SwarmReceiver::ended(const PeerOffer& offer, bool arrived) {
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  if (arrived) sums_.received.add(offer.giver());
  SwarmSession* session = find(offer.manifest());
  if (session == nullptr) return;
  session->read(offer.node(), offer.unit(), arrived, now);
  wake();
}

void SwarmReceiver::refuted(const PeerOffer& offer) {
  const MutexLock lock(mutex_);
  if (SwarmSession* session = find(offer.manifest())) session->ban(offer.node());
}

std::optional<SwarmTime> SwarmReceiver::run() {
  join_all();
  meet_holders();
  Calls calls = this->calls();
  for (const JoinCall& call : calls.words) begin_word(call);
  for (auto& [session, call] : calls.wants) begin_want(session, std::move(call));
  return due(parts_.time.now());
}

template <typename Which>
SwarmReceiver::Due SwarmReceiver::due_for(const Which& which) {
  Due due;
  const MutexLock lock(mutex_);
  for (auto& [manifest, session] : sessions_)
    if (which(*session)) due.emplace_back(manifest, session->serial());
  return due;
}

void SwarmReceiver::join_all() {
  const auto now = parts_.time.now();
  for (const auto& [manifest, serial] : due_for([&](SwarmSession& session) { return session.join_is_due(now); })) {
    const std::vector<std::string> directories = parts_.directories(manifest);
    JoinCall call{serial, {}, {manifest, parts_.location(), Join::State::fetches}};
    {
      const MutexLock lock(mutex_);
      SwarmSession* session = find(manifest, serial);
      if (session == nullptr) continue;
      auto node = session->begin_join(directories, now);
      if (!node) continue;
      call.node = *std::move(node);
    }
    begin_join(call);
  }
}

void SwarmReceiver::meet_holders() {
  for (const auto& [manifest, serial] : due_for([](const SwarmSession& session) { return session.needs_holders(); })) {
    const std::vector<std::string> holders = parts_.holders(manifest);
    const MutexLock lock(mutex_);
    if (SwarmSession* session = find(manifest, serial)) session->meet_holders(holders, parts_.time.now());
  }
}

// Returns the calls that are due, and drops sessions that are over.
SwarmReceiver::Calls SwarmReceiver::calls() {
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  Calls calls = std::exchange(last_, {});
  for (auto& [manifest, session] : sessions_) {
    session->give_up_slow_reads(now);
    while (auto want = session->next_want(now)) calls.wants.emplace_back(session->serial(), *std::move(want));
    while (auto word = session->word(now))
      calls.words.push_back({session->serial(),
                             word->directory,
                             {manifest, {}, word->state, std::move(word->read), std::move(word->unread)}});
  }
  std::erase_if(sessions_, [&](const auto& one) { return one.second->is_over(now); });
  return calls;
}

void SwarmReceiver::begin_join(const JoinCall& call) {
  parts_.calls.begin(call.node, encode_request(call.join), kJoinPatience,
                     [weak = weak_from_this(), call](const Result<std::unique_ptr<Answer>>& outcome) {
                       if (const auto self = weak.lock()) self->join_answered(call, outcome);
                     });
}

void SwarmReceiver::begin_word(const JoinCall& call) {
  parts_.calls.begin(call.node, encode_request(call.join), kJoinPatience,
                     [weak = weak_from_this(), call](const Result<std::unique_ptr<Answer>>& outcome) {
                       if (const auto self = weak.lock()) self->word_answered(call, outcome.ok());
                     });
}

void SwarmReceiver::begin_want(std::uint64_t session, WantCall call) {
  const Digest manifest = call.want.manifest;
  const Asked asked{call.number, call.node, call.want.names};
  parts_.calls.begin(call.node, encode_request(std::move(call.want)), kWantPatience,
                     [weak = weak_from_this(), manifest, session, asked](Result<std::unique_ptr<Answer>> outcome) {
                       if (const auto self = weak.lock())
                         self->want_answered(manifest, session, asked, std::move(outcome));
                     });
}

void SwarmReceiver::join_answered(const JoinCall& call, const Result<std::unique_ptr<Answer>>& outcome) {
  const auto partners = outcome.ok() ? decode_partners((*outcome)->head()) : outcome.error();
  const auto now = parts_.time.now();
  bool first = false;
  {
    const MutexLock lock(mutex_);
    SwarmSession* session = find(call.join.manifest, call.session);
    if (session == nullptr) return;
    first = !session->downloads().has_receivers();
    if (partners.ok())
      session->joined(call.node, *partners, now);
    else
      session->join_failed(now);
    first = first && session->downloads().has_receivers();
    wake();
  }
  if (first) tell_change();
}

void SwarmReceiver::word_answered(const JoinCall& call, bool ok) {
  if (ok) return;
  const MutexLock lock(mutex_);
  SwarmSession* session = find(call.join.manifest, call.session);
  if (session == nullptr || session->directory() != call.node) return;
  session->word_failed();
  wake();
}

void SwarmReceiver::want_answered(const Digest& manifest, std::uint64_t serial, const Asked& asked,
                                  Result<std::unique_ptr<Answer>> outcome) {
  const auto now = parts_.time.now();
  bool offered = false;
  {
    const MutexLock lock(mutex_);
    SwarmSession* session = find(manifest, serial);
    if (session == nullptr) return;
    const std::uint64_t declined = session->downloads().declined();
    auto unit = session->answered(asked.number, asked.names, outcome, now);
    if (!outcome.ok() && outcome.error().code == Errc::unreachable && parts_.gone) parts_.gone(asked.node);
    sums_.declined += session->downloads().declined() - declined;
    if (unit) {
      offers_.push_back(std::make_shared<PeerOffer>(weak_from_this(), manifest, unit->unit,
                                                    session->version().runs(unit->unit), std::move(unit->place),
                                                    unit->giver, std::move(unit->given_up)));
      offered = true;
    }
    wake();
  }
  if (offered) tell_change();
}

SwarmSession* SwarmReceiver::find(const Digest& manifest) {
  const auto found = sessions_.find(manifest);
  return found == sessions_.end() ? nullptr : found->second.get();
}

SwarmSession* SwarmReceiver::find(const Digest& manifest, std::uint64_t serial) {
  SwarmSession* session = find(manifest);
  return session != nullptr && session->serial() == serial ? session : nullptr;
}

std::optional<SwarmTime> SwarmReceiver::due(SwarmTime now) const {
  std::optional<SwarmTime> due;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, session] : sessions_)
    if (const auto next = session->due(now)) due = due ? std::min(*due, *next) : *next;
  return due;
}

void SwarmReceiver::end() {
  std::deque<std::shared_ptr<PeerOffer>> dropped;  // without the lock: their ends come back here
  const MutexLock lock(mutex_);
  ended_ = true;
  sessions_.clear();
  last_ = {};
  dropped.swap(offers_);
}

ReceivedSums SwarmReceiver::sums() const {
  const MutexLock lock(mutex_);
  return sums_;
}

std::vector<FetchedVersion> SwarmReceiver::versions() const {
  const auto now = parts_.time.now();
  std::vector<FetchedVersion> out;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, session] : sessions_) {
    const Downloads& downloads = session->downloads();
    out.push_back({manifest, session->version().count(), downloads.has().count(), downloads.partners(),
                   session->received(), downloads.declined(), downloads.is_hungry(now), downloads.is_done()});
  }
  return out;
}

}  // namespace weft
