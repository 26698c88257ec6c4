#include "swarm_joins.h"

#include <algorithm>

#include "peers/swarm/swarm_directory.h"

namespace weft::sim {

void DirectoryCalls::expire(SwarmTime now) {
  for (; !open_.empty() && open_.front().until <= now; open_.pop_front()) {
    if (open_.front().state == Join::State::fetches) {
      joining_ = false;
      join_failed_ = true;
      join_at_ = now;
    } else if (known_) {
      wants_partners_ = true;
    }
    known_ = false;
  }
}

std::optional<Join::State> DirectoryCalls::next(SwarmTime now) {
  if (wants_partners_ && !joining_ && join_at_ <= now) {
    joining_ = !std::exchange(join_failed_, false);
    if (joining_) return Join::State::fetches;
    join_at_ = now + pause_.failed();
    needs_holders_ = had_holders_ = true;
  }
  if (!known_ || lives_at_ > now) return std::nullopt;
  lives_at_ = now + SwarmSession::kLivesEvery;
  return Join::State::lives;
}

bool DirectoryCalls::answered(std::uint64_t number) {
  return std::erase_if(open_, [number](const Call& call) { return call.number == number; }) != 0;
}

void DirectoryCalls::joined(SwarmTime now, bool none) {
  joining_ = wants_partners_ = false;
  join_at_ = now;
  pause_.reset();
  known_ = true;
  lives_at_ = now + SwarmSession::kLivesEvery;
  needs_holders_ = had_holders_ = none;
}

std::optional<SwarmTime> DirectoryCalls::due() const {
  SwarmTime due = SwarmTime::max();
  if (!open_.empty()) due = open_.front().until;
  if (wants_partners_ && !joining_) due = std::min(due, join_at_);
  if (known_) due = std::min(due, lives_at_);
  return due == SwarmTime::max() ? std::nullopt : std::optional(due);
}

void DirectoryNode::join(Host node, std::string_view location, std::uint64_t call, SwarmTime now) {
  if (!introductions_.join(node, location, now)) return;
  heard_[node] = now;
  waiting_[node] = call;
}

void DirectoryNode::note(Host node, Join::State state, SwarmTime now) {
  const auto heard = heard_.find(node);
  if (heard == heard_.end()) return;
  if (state == Join::State::leaves) return drop(node);
  introductions_.hear(node, now);
  heard->second = now;
  if (state == Join::State::finished) introductions_.finish(node);
}

void DirectoryNode::drop(Host node) {
  introductions_.leave(node);
  heard_.erase(node);
  waiting_.erase(node);
}

std::vector<DirectoryNode::Answer> DirectoryNode::run(SwarmTime now) {
  if (sweep_at_ <= now) {
    sweep_at_ = now + SwarmDirectory::kSweepEvery;
    std::vector<Host> silent;
    for (const auto& [node, heard] : heard_)
      if (heard + Introductions::kSilence < now) silent.push_back(node);
    for (const Host node : silent) drop(node);
  }
  std::vector<Answer> answers;
  for (Introduction& one : introductions_.introduce(now)) {
    const auto call = waiting_.find(one.node);
    if (call == waiting_.end()) continue;
    answers.push_back({call->second, std::move(one)});
    waiting_.erase(call);
  }
  return answers;
}

SwarmTime DirectoryNode::due() const {
  return std::min(sweep_at_, introductions_.due().value_or(SwarmTime::max()));
}

}  // namespace weft::sim
