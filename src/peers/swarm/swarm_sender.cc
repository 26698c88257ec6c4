#include "peers/swarm/swarm_sender.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/log.h"
#include "peers/swarm/unit_offer.h"

namespace weft {

// An upload keeps its asker's set too. A daemon has two senders: of its bytes, and of names as a clerk.
static_assert(2 * (kWantsWaiting + SwarmSender::kNamedAtOnce) * (kUnitSetBytesMax + kWantBytes) <= 16U << 20U);
static_assert(kUploadsAtOnce <= SwarmSender::kNamedAtOnce);

namespace {

constexpr std::size_t kSlowMax = 1'024;   // nodes; then all are forgotten
constexpr std::uint64_t kAheadEvery = 4;  // rounds of answers

}  // namespace

SwarmSender::SwarmSender(Parts parts) : parts_(std::move(parts)) {}

void SwarmSender::begin(std::unique_ptr<UnitStock> stock) {
  const MutexLock lock(mutex_);
  if (stock->by_name()) share_.uploads_max = kNamedAtOnce;
  stock_ = std::move(stock);
  parts_.wake();
}

void SwarmSender::end() {
  std::vector<PendingReply> dropped;  // without the lock
  const MutexLock lock(mutex_);
  ended_ = true;
  stock_.reset();
  for (Queued& queued : queued_) dropped.push_back(std::move(queued.reply));
  queued_.clear();
  for (auto& [manifest, session] : sessions_) {
    for (auto& [number, waiting] : session->waiting) dropped.push_back(std::move(waiting.reply));
    session->waiting.clear();
  }
}

void SwarmSender::receive(std::string_view node, Want want, PendingReply reply) {
  {
    const MutexLock lock(mutex_);
    if (!ended_ && queued_.size() + share_.waiting < kWantsWaiting) {
      queued_.push_back({std::string(node), std::move(want), std::move(reply)});
      return parts_.wake();
    }
  }
  reply.give(offer_of_nothing());
}

void SwarmSender::unwanted(std::string_view node) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  suspects_.emplace(node);
  parts_.wake();
}

void SwarmSender::left(std::string_view node) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  gone_.emplace(node);
  parts_.wake();
}

void SwarmSender::survey_again() {
  const MutexLock lock(mutex_);
  if (ended_ || sessions_.empty()) return;
  survey_again_ = true;
  parts_.wake();
}

void SwarmSender::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(manifest);
  if (ended_ || found == sessions_.end()) return;
  const auto fresh = found->second->local.add(runs);
  for (const std::uint32_t unit : fresh) found->second->uploads.add(unit);
  if (!fresh.empty() && !found->second->waiting.empty()) parts_.wake();
}

std::optional<SwarmTime> SwarmSender::run() {
  UnitStock* stock = nullptr;
  {
    const MutexLock lock(mutex_);
    stock = stock_.get();
  }
  if (stock == nullptr) return std::nullopt;
  const auto now = parts_.time.now();
  // One at a time: to look for a manifest and for chunks takes long, and must not delay the other versions for longer.
  if (const auto manifest = unknown()) open(*manifest, *stock);
  survey_all(*stock);
  drop_gone();
  take_wants();
  drop_unwanted();
  end_old(now);
  for (;;) {
    auto uploads = choose(now);
    if (uploads.empty()) return due();
    for (Upload& upload : uploads) send(std::move(upload), *stock);
  }
}

// Returns the version of the oldest want whose session is not open.
std::optional<Digest> SwarmSender::unknown() const {
  const MutexLock lock(mutex_);
  const auto waits = [&](const Queued& queued)
                         WEFT_REQUIRES(mutex_) { return !sessions_.contains(queued.want.manifest); };
  const auto first = std::ranges::find_if(queued_, waits);
  return first == queued_.end() ? std::nullopt : std::optional(first->want.manifest);
}

// The session exists while its chunks are looked up, so that it hears of those that arrive meanwhile.
void SwarmSender::open(const Digest& manifest, UnitStock& stock) {
  if (!has_room()) return refuse(manifest, Error{Errc::busy, "this node sends too many versions"});
  auto version = parts_.units(manifest);
  if (!version.ok()) return refuse(manifest, version.error());
  bool opened = false;
  {
    const MutexLock lock(mutex_);
    opened = make_room();
    if (opened) {
      auto session = std::make_unique<Session>(*std::move(version), share_, ++serials_);
      session->used = parts_.time.now();
      sessions_.emplace(manifest, std::move(session));
    }
  }
  if (!opened) return refuse(manifest, Error{Errc::busy, "this node sends too many versions"});
  survey(manifest, stock);
}

// Looked at before a manifest is read: a want for one version too many must not cost a read of the disk.
bool SwarmSender::has_room() const {
  const auto now = parts_.time.now();
  const MutexLock lock(mutex_);
  return sessions_.size() < kVersionsMax ||
         std::ranges::any_of(sessions_, [&](const auto& one) { return one.second->may_go(now); });
}

// Forgets the idle version that was used least lately, if there are too many. False: none may go.
bool SwarmSender::make_room() {
  if (sessions_.size() < kVersionsMax) return true;
  const auto now = parts_.time.now();
  auto oldest = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at)
    if (at->second->may_go(now) && (oldest == sessions_.end() || at->second->used < oldest->second->used)) oldest = at;
  if (oldest == sessions_.end()) return false;
  sessions_.erase(oldest);
  return true;
}

void SwarmSender::refuse(const Digest& manifest, const Error& error) {
  std::vector<PendingReply> refused;
  {
    const MutexLock lock(mutex_);
    for (Queued& queued : queued_)
      if (queued.want.manifest == manifest) refused.push_back(std::move(queued.reply));
    std::erase_if(queued_, [&](const Queued& queued) { return queued.want.manifest == manifest; });
  }
  for (PendingReply& reply : refused) reply.give(error);
}

void SwarmSender::survey_all(UnitStock& stock) {
  std::vector<Digest> all;
  {
    const MutexLock lock(mutex_);
    const bool every = std::exchange(survey_again_, false);
    for (const auto& [manifest, session] : sessions_)
      if (std::exchange(session->survey_again, false) || every) all.push_back(manifest);
  }
  for (const Digest& manifest : all) survey(manifest, stock);
}

// Adds the local units of a version, and removes units whose bytes are gone.
void SwarmSender::survey(const Digest& manifest, UnitStock& stock) {
  std::shared_ptr<const VersionUnits> version;
  UnitSet before;
  {
    const MutexLock lock(mutex_);
    const auto found = sessions_.find(manifest);
    if (found == sessions_.end()) return;
    found->second->surveyed = parts_.time.now();
    version = found->second->version;
    before = found->second->local.complete();
  }
  const std::vector<ChunkRun> runs = stock.runs(*version);
  LocalUnits here(version);
  here.add(runs);
  if (!here.complete().contains(before) && parts_.lost) parts_.lost(manifest);
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(manifest);
  if (found == sessions_.end() || found->second->version != version) return;
  Session& session = *found->second;
  before.for_each([&](std::uint32_t unit) {
    if (here.complete().has(unit)) return;
    session.local.remove(unit);
    session.uploads.remove(unit);
  });
  const auto fresh = session.local.add(runs);
  // The first unit of the version counts as the last one that came.
  for (auto unit = fresh.rbegin(); unit != fresh.rend(); ++unit) session.uploads.add(*unit);
}

void SwarmSender::take_wants() {
  Refusals refusals;
  Met met;
  {
    const auto now = parts_.time.now();
    const MutexLock lock(mutex_);
    std::deque<Queued> later;   // a version whose session is not open yet
    while (!queued_.empty()) {  // one by one: the set of a want is not kept encoded once it is decoded
      Queued queued = std::move(queued_.front());
      queued_.pop_front();
      if (!sessions_.contains(queued.want.manifest)) {
        later.push_back(std::move(queued));
      } else if (auto refused = take(queued, now, met)) {
        refusals.push_back({std::move(queued.reply), *std::move(refused)});
      }
    }
    queued_ = std::move(later);
    if (!queued_.empty()) parts_.wake();
  }
  for (Refusal& one : refusals) one.reply.give(std::move(one.answer));
  for (const auto& [manifest, node] : met) parts_.met(manifest, node);
}

// Returns the answer of a want that does not wait.
std::optional<Result<PeerReply>> SwarmSender::take(Queued& queued, SwarmTime now, Met& met) {
  Session& session = *sessions_.find(queued.want.manifest)->second;
  auto has = UnitSet::decode(queued.want.has, session.version->count());
  if (!has.ok()) return has.error();
  forget_idle(session);
  const auto node = session.nodes.add(queued.node);
  if (!node) return Error{Errc::busy, "too many nodes ask for this version"};
  session.used = now;
  met.emplace_back(queued.want.manifest, queued.node);
  if (queued.want.of_source || queued.want.of_clerk) {
    if (!session.local.complete().all()) {
      session.survey_again = session.surveyed + kSurveyAgain <= now;
      if (session.survey_again) parts_.wake();
      return Error{Errc::absent, "this node has not the whole version"};
    }
    session.uploads.become_source();
  }
  UnitWant want{*std::move(has), queued.want.first, queued.want.hungry, static_cast<std::uint8_t>(queued.want.traffic)};
  const std::uint64_t number = ++wants_;
  if (!session.uploads.want(*node, number, std::move(want), now)) return offer_of_nothing();
  session.waiting.emplace(number, Waiting{*node, queued.want.names, std::move(queued.reply)});
  return std::nullopt;
}

// Hostile nodes may have any number of names.
void SwarmSender::forget_idle(Session& session) {
  if (session.nodes.size() < kIdleNodesMax + 2 * (session.waiting.size() + session.running.size())) return;
  std::set<SwarmNode> busy;
  for (const auto& [number, waiting] : session.waiting) busy.insert(waiting.node);
  for (const auto& [upload, began] : session.running) busy.insert(upload.first);
  session.nodes.forget_if([&](SwarmNode node) { return !busy.contains(node); });
}

// Drops the wants and uploads of a node.
void SwarmSender::forget(Session& session, SwarmNode node, std::vector<PendingReply>& dropped) {
  session.uploads.forget(node);
  for (auto& [number, waiting] : session.waiting)
    if (waiting.node == node) dropped.push_back(std::move(waiting.reply));
  std::erase_if(session.waiting, [&](const auto& one) { return one.second.node == node; });
  std::erase_if(session.running, [&](const auto& one) { return one.first.first == node; });
  session.nodes.forget(node);
}

void SwarmSender::drop_gone() {
  std::vector<PendingReply> dropped;
  const MutexLock lock(mutex_);
  for (const std::string& name : std::exchange(gone_, {})) {
    slow_.erase(name);
    for (auto& [manifest, session] : sessions_)
      if (const auto node = session->nodes.find(name)) forget(*session, *node, dropped);
  }
}

// Takes the waiting wants of nodes whose replies may be unwanted.
std::vector<SwarmSender::Suspect> SwarmSender::take_suspects() {
  std::vector<Suspect> taken;
  const MutexLock lock(mutex_);
  for (const std::string& name : std::exchange(suspects_, {}))
    for (auto& [manifest, session] : sessions_) {
      const auto node = session->nodes.find(name);
      if (!node) continue;
      for (auto& [number, waiting] : session->waiting)
        if (waiting.node == *node) taken.push_back({manifest, session->serial, number, std::move(waiting)});
      std::erase_if(session->waiting, [&](const auto& one) { return one.second.node == *node; });
    }
  return taken;
}

// Forgets a node if all its wants are unwanted: its session has ended. An unwanted reply of another node has no effect
// when the sender gives it.
void SwarmSender::drop_unwanted() {
  std::vector<Suspect> taken = take_suspects();
  std::set<std::pair<Digest, SwarmNode>> alive;
  for (Suspect& one : taken) {
    one.wanted = one.waiting.reply.wanted();
    if (one.wanted) alive.emplace(one.manifest, one.waiting.node);
  }
  std::vector<PendingReply> dropped;
  const MutexLock lock(mutex_);
  for (Suspect& one : taken) {
    Session* session = find(one.manifest, one.session);
    if (session == nullptr) continue;
    const SwarmNode node = one.waiting.node;
    if (alive.contains({one.manifest, node}))
      session->waiting.emplace(one.want, std::move(one.waiting));
    else
      forget(*session, node, dropped);
  }
}

void SwarmSender::end_old(SwarmTime now) {
  const MutexLock lock(mutex_);
  const auto max = upload_max();
  const bool read = stock_ && stock_->by_name();
  for (auto& [manifest, session] : sessions_) {
    for (const auto& [upload, began] : session->running) {
      if (began + max > now) continue;
      session->uploads.ended(upload.first, upload.second, read);
      if (!read) note_slow(session->nodes.name(upload.first));
    }
    std::erase_if(session->running, [&](const auto& one) { return one.second + max <= now; });
  }
  std::erase_if(sessions_,
                [&](const auto& one) { return one.second->is_idle() && one.second->used + kIdleMax <= now; });
}

std::chrono::seconds SwarmSender::upload_max() const {
  return stock_ && stock_->by_name() ? kNamedMax : kUploadMax;
}

void SwarmSender::note_slow(const std::string& node) {
  if (slow_.size() >= kSlowMax) slow_.clear();
  slow_.insert(node);
}

// True for a slow node that is to end an upload before it gets another one.
bool SwarmSender::waits_for_read(const std::string& node) const {
  if (!slow_.contains(node)) return false;
  return std::ranges::any_of(sessions_, [&](const auto& one) {
    const auto number = one.second->nodes.find(node);
    if (!number) return false;
    const auto upload = one.second->running.lower_bound({*number, 0});
    return upload != one.second->running.end() && upload->first.first == *number;
  });
}

// Returns the next answers: those of the first class of traffic that has any. Every kAheadEvery-th time the last class
// comes first, and the first one last, because a hostile node may claim readers for each want.
std::vector<SwarmSender::Upload> SwarmSender::choose(SwarmTime now) {
  const MutexLock lock(mutex_);
  const bool last_first = (rounds_ + 1) % kAheadEvery == 0;
  std::vector<Upload> uploads;
  for (std::size_t i = 0; uploads.empty() && i < kTrafficNames.size(); ++i)
    uploads = choose(now, static_cast<Traffic>(last_first ? kTrafficNames.size() - 1 - i : i));
  if (!uploads.empty()) ++rounds_;
  return uploads;
}

// Returns one answer for each version that has one of this class, so that no version takes all uploads.
std::vector<SwarmSender::Upload> SwarmSender::choose(SwarmTime now, Traffic traffic) {
  std::vector<Upload> uploads;
  auto at = sessions_.upper_bound(last_);
  for (std::size_t i = 0; i < sessions_.size(); ++i, ++at) {
    if (at == sessions_.end()) at = sessions_.begin();
    auto upload = next(at->first, *at->second, now, traffic);
    if (!upload) continue;
    last_ = at->first;
    uploads.push_back(*std::move(upload));
  }
  return uploads;
}

std::optional<SwarmSender::Upload> SwarmSender::next(const Digest& manifest, Session& session, SwarmTime now,
                                                     Traffic traffic) {
  while (const auto answer = session.uploads.next(now, static_cast<std::uint8_t>(traffic))) {
    const auto waiting = session.waiting.find(answer->want);
    if (waiting == session.waiting.end()) {  // not expected; the upload must not last for ever
      if (answer->unit) session.uploads.ended(answer->node, *answer->unit, false);
      continue;
    }
    Upload upload{manifest,
                  session.serial,
                  session.version,
                  answer->node,
                  answer->unit,
                  waiting->second.names,
                  std::move(waiting->second.reply)};
    session.waiting.erase(waiting);
    if (upload.unit && waits_for_read(session.nodes.name(upload.node))) {
      session.uploads.ended(upload.node, *upload.unit, false);
      upload.unit.reset();
    }
    if (upload.unit) session.running.emplace(std::pair(upload.node, *upload.unit), now);
    if (upload.unit && answer->repeats)
      log_debug(LogCategory::peers, "swarm of manifest {}: unit {} is sent again, to {}", to_hex(manifest),
                *answer->unit, session.nodes.name(answer->node));
    return upload;
  }
  return std::nullopt;
}

void SwarmSender::send(Upload upload, UnitStock& stock) {
  if (!upload.unit) return upload.reply.give(offer_of_nothing());
  auto offer = stock.offer(*upload.version, *upload.unit, upload.names);
  if (!offer.ok()) {
    failed(upload, offer.error());
    return upload.reply.give(offer_of_nothing());
  }
  if (stock.by_name()) return upload.reply.give(std::move(offer));
  offer->subject = fmt::format("unit {} of manifest {}", *upload.unit, to_hex(upload.manifest));
  std::uint64_t length = 0;  // of a short unit, which is in the head, 0: it is read once it was sent
  for (const auto& window : offer->windows) length += window->bytes().size();
  offer->ended = [weak = weak_from_this(), manifest = upload.manifest, session = upload.session, node = upload.node,
                  unit = *upload.unit, length](std::uint64_t read) {
    if (const auto self = weak.lock()) self->ended(manifest, session, node, unit, read >= length);
  };
  upload.reply.give(std::move(offer));
}

void SwarmSender::failed(const Upload& upload, const Error& error) {
  const MutexLock lock(mutex_);
  Session* session = find(upload.manifest, upload.session);
  if (session == nullptr) return;
  session->running.erase({upload.node, *upload.unit});
  session->uploads.ended(upload.node, *upload.unit, false);
  if (error.code == Errc::busy) return;
  session->uploads.remove(*upload.unit);
  session->local.remove(*upload.unit);
}

void SwarmSender::ended(const Digest& manifest, std::uint64_t serial, SwarmNode node, std::uint32_t unit, bool read) {
  const MutexLock lock(mutex_);
  Session* session = find(manifest, serial);
  if (!ended_ && session != nullptr) end_upload(*session, node, unit, read);
}

void SwarmSender::end_upload(Session& session, SwarmNode node, std::uint32_t unit, bool read) {
  if (session.running.erase({node, unit}) == 0) return;
  session.uploads.ended(node, unit, read);
  if (read) {
    ++sent_;
    slow_.erase(session.nodes.name(node));
  }
  session.used = parts_.time.now();
  parts_.wake();
}

void SwarmSender::reported(std::string_view node, const Join& report) {
  std::vector<PendingReply> dropped;
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(report.manifest);
  if (ended_ || found == sessions_.end()) return;
  Session& session = *found->second;
  const auto number = session.nodes.find(node);
  if (!number) return;
  for (const std::uint32_t unit : report.read) end_upload(session, *number, unit, true);
  for (const std::uint32_t unit : report.unread) end_upload(session, *number, unit, false);
  if (report.state != Join::State::leaves) return;
  forget(session, *number, dropped);
  parts_.wake();
}

SwarmSender::Session* SwarmSender::find(const Digest& manifest, std::uint64_t serial) {
  const auto found = sessions_.find(manifest);
  return found == sessions_.end() || found->second->serial != serial ? nullptr : found->second.get();
}

std::optional<SwarmTime> SwarmSender::due() const {
  std::optional<SwarmTime> due;
  const auto add = [&](SwarmTime time) { due = due ? std::min(*due, time) : time; };
  const MutexLock lock(mutex_);
  const auto max = upload_max();
  for (const auto& [manifest, session] : sessions_) {
    if (const auto next = session->uploads.due()) add(*next);
    for (const auto& [upload, began] : session->running) add(began + max);
    if (session->is_idle()) add(session->used + kIdleMax);
  }
  return due;
}

std::uint64_t SwarmSender::sent() const {
  const MutexLock lock(mutex_);
  return sent_;
}

std::vector<SentVersion> SwarmSender::versions() const {
  std::vector<SentVersion> out;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, session] : sessions_)
    out.push_back({manifest, session->version->count(), session->local.complete().count(), session->uploads.sent(),
                   session->waiting.size(), session->running.size(), session->uploads.is_source()});
  return out;
}

}  // namespace weft
