#include "swarm/introductions.h"

#include <algorithm>
#include <utility>

namespace weft {

bool Introductions::join(SwarmNode node, std::string_view location, SwarmTime now) {
  auto at = members_.find(node);
  if (at == members_.end()) {
    if (members_.size() >= kMembersMax) forget_silent(now);
    if (members_.size() >= kMembersMax) return false;
    at = members_.emplace(node, Member{.location = std::string(location)}).first;
  }
  at->second.heard = now;
  if (joining_.empty()) joined_at_ = now;
  joining_.insert(node);
  return true;
}

void Introductions::hear(SwarmNode node, SwarmTime now) {
  if (const auto at = members_.find(node); at != members_.end()) at->second.heard = now;
}

void Introductions::finish(SwarmNode node) {
  const auto at = members_.find(node);
  if (at == members_.end()) return;
  at->second.finished = true;
  if (std::exchange(at->second.asks_source, false)) --source_askers_;
}

void Introductions::leave(SwarmNode node) {
  if (const auto at = members_.find(node); at != members_.end()) remove(at);
}

void Introductions::remove(std::map<SwarmNode, Member>::iterator at) {
  const Member& member = at->second;
  if (member.asks_source) --source_askers_;
  if (member.introduced) {
    Nodes& here = introduced_[member.location];
    members_.find(here.back())->second.place = member.place;
    here[member.place] = here.back();
    here.pop_back();
    if (here.empty()) introduced_.erase(member.location);
  }
  joining_.erase(at->first);
  members_.erase(at);
}

void Introductions::forget_silent(SwarmTime now) {
  for (auto at = members_.begin(); at != members_.end();) {
    const auto one = at++;
    if (one->second.heard + kSilence < now) remove(one);
  }
}

std::optional<SwarmTime> Introductions::due() const {
  if (joining_.empty()) return std::nullopt;
  return joined_at_ + kJoinWait;
}

std::vector<Introduction> Introductions::introduce(SwarmTime now) {
  if (joining_.empty() || now < joined_at_ + kJoinWait) return {};
  forget_silent(now);
  Answers answers;
  std::map<std::string, Nodes> newcomers;
  for (const SwarmNode node : joining_) {
    const Member& member = members_.find(node)->second;
    answers[node].node = node;
    if (member.introduced)
      add_one(answers, node);
    else
      newcomers[member.location].push_back(node);
  }
  for (auto& [location, nodes] : newcomers) {
    for (const SwarmNode node : nodes) add_earlier(answers, node);
    for (int ring = 0; ring < 2; ++ring) {
      shuffle(nodes);
      add_ring(answers, nodes);
    }
  }
  add_bridges(answers, newcomers);
  for (const auto& [location, nodes] : newcomers) {
    Nodes& here = introduced_[location];
    for (const SwarmNode node : nodes) {
      Member& member = members_.find(node)->second;
      member.introduced = true;
      member.place = here.size();
      here.push_back(node);
    }
  }
  let_ask_source(answers);
  joining_.clear();
  std::vector<Introduction> out;
  for (auto& [node, answer] : answers) out.push_back(std::move(answer));
  return out;
}

// Both learn of each other: the one that is not in `answers` by the first want.
void Introductions::connect(Answers& answers, SwarmNode one, SwarmNode other) {
  if (one == other) return;
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    const auto at = answers.find(from);
    if (at == answers.end()) continue;
    if (std::find(at->second.partners.begin(), at->second.partners.end(), to) != at->second.partners.end()) return;
    at->second.partners.push_back(to);
  }
  ++members_.find(one)->second.partners;
  ++members_.find(other)->second.partners;
}

void Introductions::add_ring(Answers& answers, const Nodes& order) {
  for (std::size_t i = 0; i < order.size(); ++i) connect(answers, order[i], order[(i + 1) % order.size()]);
}

void Introductions::add_earlier(Answers& answers, SwarmNode node) {
  const auto here = introduced_.find(members_.find(node)->second.location);
  if (here == introduced_.end()) return;
  const std::size_t tries = 4 * kEarlierPartners;
  std::size_t added = 0;
  for (std::size_t i = 0; i < tries && added < kEarlierPartners; ++i) {
    const SwarmNode earlier = here->second[random_.below(here->second.size())];
    if (members_.find(earlier)->second.partners >= kPartnersMax) continue;
    connect(answers, node, earlier);
    ++added;
  }
}

void Introductions::add_bridges(Answers& answers, const std::map<std::string, Nodes>& newcomers) {
  std::map<std::string, Nodes> all = introduced_;
  for (const auto& [location, nodes] : newcomers) all[location].insert(all[location].end(), nodes.begin(), nodes.end());
  if (all.size() < 2) return;
  for (auto at = all.begin(); at != all.end(); ++at) {
    const auto next = std::next(at) == all.end() ? all.begin() : std::next(at);
    if (!newcomers.contains(at->first) && !newcomers.contains(next->first)) continue;
    for (std::size_t i = 0; i < kBridges; ++i)
      connect(answers, at->second[random_.below(at->second.size())], next->second[random_.below(next->second.size())]);
  }
}

// Another partner for a hungry node: any member, since those of its location have nothing for it.
void Introductions::add_one(Answers& answers, SwarmNode node) {
  std::size_t count = 0;
  for (const auto& [location, nodes] : introduced_) count += nodes.size();
  std::size_t number = random_.below(count);
  for (const auto& [location, nodes] : introduced_) {
    if (number < nodes.size()) return connect(answers, node, nodes[number]);
    number -= nodes.size();
  }
}

// Nodes of the source's location first.
void Introductions::let_ask_source(Answers& answers) {
  for (const bool near : {true, false})
    for (auto& [node, answer] : answers) {
      Member& member = members_.find(node)->second;
      if (near != (member.location == source_location_) || member.finished) continue;
      if (!member.asks_source) {
        if (source_askers_ >= kSourceAskers) continue;
        member.asks_source = true;
        ++source_askers_;
      }
      answer.may_ask_source = true;
    }
}

void Introductions::shuffle(Nodes& nodes) {
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random_.below(i)]);
}

}  // namespace weft
