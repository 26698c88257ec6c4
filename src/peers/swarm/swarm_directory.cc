#include "peers/swarm/swarm_directory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace weft {
namespace {

PeerReply reply_of(const Partners& partners) {
  PeerReply reply;
  reply.head = encode_partners(partners);
  return reply;
}

}  // namespace

SwarmDirectory::SwarmDirectory(Source source, std::function<void()> wake, std::uint64_t seed, const TimeSource& time,
                               bool is_clerk)
    : source_(std::move(source)), wake_(std::move(wake)), time_(time), is_clerk_(is_clerk), random_(seed) {}

void SwarmDirectory::end() {
  Dropped dropped;  // without the lock
  const MutexLock lock(mutex_);
  ended_ = true;
  for (auto& [manifest, session] : sessions_)
    for (auto& [node, reply] : session->waiting) dropped.push_back(std::move(reply));
  sessions_.clear();
  waiting_ = members_ = 0;
}

void SwarmDirectory::receive(std::string_view node, const Join& join, PendingReply reply) {
  Dropped dropped;
  if (join.state == Join::State::fetches) {
    if (wait(node, join, reply, dropped)) return;
    return reply.give(Error{Errc::busy, "this node introduces too many others"});
  }
  note(node, join, dropped);
  reply.give(reply_of({}));
}

// Takes the reply, which run() gives. False: too many joins wait, there are too many members, or this ends.
bool SwarmDirectory::wait(std::string_view node, const Join& join, PendingReply& reply, Dropped& dropped) {
  const auto now = time_.now();
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(join.manifest);
  const bool is_member = found != sessions_.end() && found->second->nodes.find(node);
  if (ended_ || waiting_ >= kWaitingMax || (members_ >= kMembersMax && !is_member)) return false;
  Session& session = this->session(join.manifest, dropped);
  const auto number = session.nodes.add(node);
  if (!number) return false;
  if (!session.introductions.join(*number, join.location, now)) {
    session.nodes.forget(*number);
    return false;
  }
  if (session.heard.insert_or_assign(*number, now).second) ++members_;
  session.last_heard = now;
  const auto at = session.waiting.find(*number);
  if (at != session.waiting.end()) {
    dropped.push_back(std::move(at->second));  // the node has asked again: its earlier request is lost
    session.waiting.erase(at);
    --waiting_;
  }
  session.waiting.emplace(*number, std::move(reply));
  ++waiting_;
  wake_();
  return true;
}

void SwarmDirectory::note(std::string_view node, const Join& join, Dropped& dropped) {
  const auto now = time_.now();
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(join.manifest);
  if (found == sessions_.end()) return;
  Session& session = *found->second;
  const auto number = session.nodes.find(node);
  if (!number) return;
  if (join.state == Join::State::leaves) return drop(session, *number, dropped);
  session.introductions.hear(*number, now);
  session.heard[*number] = session.last_heard = now;
  if (join.state == Join::State::finished) session.introductions.finish(*number);
}

// Returns the session of a version, a new one if there is none.
SwarmDirectory::Session& SwarmDirectory::session(const Digest& manifest, Dropped& dropped) {
  const auto found = sessions_.find(manifest);
  if (found != sessions_.end()) return *found->second;
  if (sessions_.size() >= kVersionsMax) {
    const auto size_and_time = [](const auto& one) {
      return std::pair(one.second->heard.size(), one.second->last_heard);
    };
    drop_version(std::ranges::min_element(sessions_, {}, size_and_time), dropped);
  }
  return *sessions_.emplace(manifest, std::make_unique<Session>(random_.next())).first->second;
}

void SwarmDirectory::drop_version(Sessions::iterator at, Dropped& dropped) {
  for (auto& [node, reply] : at->second->waiting) dropped.push_back(std::move(reply));
  waiting_ -= at->second->waiting.size();
  members_ -= at->second->heard.size();
  sessions_.erase(at);
}

void SwarmDirectory::drop(Session& session, SwarmNode node, Dropped& dropped) {
  session.introductions.leave(node);
  session.nodes.forget(node);
  members_ -= session.heard.erase(node);
  const auto at = session.waiting.find(node);
  if (at == session.waiting.end()) return;
  dropped.push_back(std::move(at->second));
  session.waiting.erase(at);
  --waiting_;
}

void SwarmDirectory::unwanted(std::string_view node) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  suspects_.emplace(node);
  wake_();
}

void SwarmDirectory::left(std::string_view node) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  gone_.emplace(node);
  wake_();
}

std::optional<SwarmTime> SwarmDirectory::run() {
  const auto now = time_.now();
  {
    Dropped dropped;
    drop_gone(dropped);
    drop_silent(now, dropped);
  }
  drop_unwanted();
  for (auto& [manifest, answers] : introduce(now)) {
    const bool asks = std::ranges::any_of(answers, &Answer::may_ask_source);
    const std::string source = asks ? source_(manifest) : std::string();
    for (Answer& answer : answers) give(manifest, answer, source);
  }
  return due();
}

void SwarmDirectory::give(const Digest& manifest, Answer& answer, const std::string& source) const {
  const bool asks = answer.may_ask_source && source != answer.node;
  const bool clerk = is_clerk_ && answer.may_ask_source;
  log_debug(LogCategory::peers, "swarm of manifest {}: {} is introduced to {} nodes, source: {}", to_hex(manifest),
            answer.node, answer.partners.size(),
            asks && !source.empty() ? source
            : clerk                 ? "the origin"
                                    : "none");
  answer.reply.give(reply_of({std::move(answer.partners), asks ? source : std::string(), clerk}));
}

void SwarmDirectory::drop_gone(Dropped& dropped) {
  const MutexLock lock(mutex_);
  for (const std::string& node : std::exchange(gone_, {}))
    for (auto& [manifest, session] : sessions_)
      if (const auto number = session->nodes.find(node)) drop(*session, *number, dropped);
}

void SwarmDirectory::drop_silent(SwarmTime now, Dropped& dropped) {
  const MutexLock lock(mutex_);
  if (now < sweep_at_) return;
  sweep_at_ = now + kSweepEvery;
  for (auto& [manifest, session] : sessions_) {
    std::vector<SwarmNode> silent;
    for (const auto& [node, heard] : session->heard)
      if (heard + Introductions::kSilence < now) silent.push_back(node);
    for (const SwarmNode node : silent) drop(*session, node, dropped);
  }
  std::erase_if(sessions_, [](const auto& one) { return one.second->heard.empty(); });
}

// Takes the joins of nodes whose replies may be unwanted.
std::vector<SwarmDirectory::Waiting> SwarmDirectory::take_suspects() {
  std::vector<Waiting> taken;
  for (const std::string& node : std::exchange(suspects_, {}))
    for (auto& [manifest, session] : sessions_) {
      const auto number = session->nodes.find(node);
      const auto at = number ? session->waiting.find(*number) : session->waiting.end();
      if (at == session->waiting.end()) continue;
      taken.push_back({manifest, *number, std::move(at->second)});
      session->waiting.erase(at);
      --waiting_;
    }
  return taken;
}

// Removes the nodes whose joins are unwanted: the session of such a node has ended.
void SwarmDirectory::drop_unwanted() {
  std::vector<Waiting> taken;
  {
    const MutexLock lock(mutex_);
    taken = take_suspects();
  }
  if (taken.empty()) return;
  std::vector<bool> wanted;
  for (const Waiting& one : taken) wanted.push_back(one.reply.wanted());
  Dropped dropped;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto found = sessions_.find(taken[i].manifest);
    const bool known = found != sessions_.end() && found->second->heard.contains(taken[i].node);
    if (!known || found->second->waiting.contains(taken[i].node)) continue;  // it has asked again meanwhile
    if (!wanted[i]) {
      drop(*found->second, taken[i].node, dropped);
      continue;
    }
    found->second->waiting.emplace(taken[i].node, std::move(taken[i].reply));
    ++waiting_;
  }
}

SwarmDirectory::Answers SwarmDirectory::introduce(SwarmTime now) {
  Answers answers;
  const MutexLock lock(mutex_);
  for (auto& [manifest, session] : sessions_)
    if (auto some = answers_of(*session, now); !some.empty()) answers.emplace_back(manifest, std::move(some));
  return answers;
}

std::vector<SwarmDirectory::Answer> SwarmDirectory::answers_of(Session& session, SwarmTime now) {
  std::vector<Answer> answers;
  for (const Introduction& one : session.introductions.introduce(now)) {
    const auto at = session.waiting.find(one.node);
    if (at == session.waiting.end()) continue;
    Answer answer{session.nodes.name(one.node), {}, one.may_ask_source, std::move(at->second)};
    session.waiting.erase(at);
    --waiting_;
    for (const SwarmNode partner : one.partners)
      if (auto name = session.nodes.name(partner); !name.empty() && answer.partners.size() < Downloads::kPartnersMax)
        answer.partners.push_back(std::move(name));
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::optional<SwarmTime> SwarmDirectory::due() const {
  const MutexLock lock(mutex_);
  if (sessions_.empty()) return std::nullopt;
  SwarmTime due = sweep_at_;
  for (const auto& [manifest, session] : sessions_)
    if (const auto next = session->introductions.due()) due = std::min(due, *next);
  return due;
}

std::vector<IntroducedVersion> SwarmDirectory::versions() const {
  std::vector<IntroducedVersion> out;
  const MutexLock lock(mutex_);
  for (const auto& [manifest, session] : sessions_) out.push_back({manifest, session->introductions.members()});
  return out;
}

std::size_t SwarmDirectory::members(const Digest& manifest) const {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(manifest);
  return found == sessions_.end() ? 0 : found->second->introductions.members();
}

}  // namespace weft
