#include "swarm/introductions.h"

#include <algorithm>
#include <utility>

namespace weft {

bool Introductions::join(SwarmNode node, std::string_view location, SwarmTime now) {
  auto at = members_.find(node);
  if (at != members_.end() && at->second.finished) {  // the node has lost its units, and perhaps its partners
    remove(at);
    at = members_.end();
  }
  if (at == members_.end()) {
    if (members_.size() >= kMembersMax) forget_silent(now);
    if (members_.size() >= kMembersMax) return false;
    at = members_.emplace(node, Member{.location = std::string(location), .turn = random_.next()}).first;
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
    const auto here = introduced_.find(member.location);
    Nodes& nodes = here->second.nodes;
    members_.find(nodes.back())->second.place = member.place;
    nodes[member.place] = nodes.back();
    nodes.pop_back();
    if (member.bridged) --here->second.bridged;
    if (nodes.empty()) introduced_.erase(here);
  }
  joining_.erase(at->first);
  members_.erase(at);
}

void Introductions::forget_silent(SwarmTime now) {
  if (heard_ + kSilence >= now) return;
  heard_ = now;
  for (auto at = members_.begin(); at != members_.end();) {
    const auto one = at++;
    ++examined_;
    if (one->second.heard + kSilence < now)
      remove(one);
    else
      heard_ = std::min(heard_, one->second.heard);
  }
}

std::optional<SwarmTime> Introductions::due() const {
  return joining_.empty() ? std::nullopt : std::optional(joined_at_ + kJoinWait);
}

std::vector<Introduction> Introductions::introduce(SwarmTime now) {
  if (joining_.empty() || now < joined_at_ + kJoinWait) return {};
  forget_silent(now);
  Answers answers;
  std::map<std::string, Nodes> newcomers;
  Nodes hungry;
  std::size_t locations = introduced_.size();
  for (const SwarmNode node : joining_) {
    Member& member = members_.find(node)->second;
    answers[node].node = node;
    const bool known = introduced_.contains(member.location) || newcomers.contains(member.location);
    if (!member.introduced && !known && ++locations > kLocationsMax) member.location.clear();
    (member.introduced ? hungry : newcomers[member.location]).push_back(node);
  }
  for (const SwarmNode node : hungry) add_one(answers, node);
  for (auto& [location, nodes] : newcomers) introduce_at(answers, location, nodes);
  for (auto& [node, answer] : answers)  // the earlier nodes may all have enough partners
    if (answer.partners.empty()) add_one(answers, node);
  let_ask_source(answers);
  joining_.clear();
  std::vector<Introduction> out;
  for (auto& [node, answer] : answers) out.push_back(std::move(answer));
  return out;
}

void Introductions::introduce_at(Answers& answers, const std::string& location, Nodes& newcomers) {
  for (const SwarmNode node : newcomers) add_earlier(answers, node);
  for (int ring = 0; ring < 2; ++ring) {
    shuffle(newcomers);
    for (std::size_t i = 0; i < newcomers.size(); ++i)
      connect(answers, newcomers[i], newcomers[(i + 1) % newcomers.size()]);
  }
  Location& here = introduced_[location];
  for (const SwarmNode node : newcomers) {
    Member& member = members_.find(node)->second;
    member.introduced = true;
    member.place = here.nodes.size();
    here.nodes.push_back(node);
  }
  add_bridges(answers, here, newcomers);
}

// Returns false if they are partners already. Both learn of each other: a node without an answer by the first want.
bool Introductions::connect(Answers& answers, SwarmNode one, SwarmNode other) {
  if (one == other) return false;
  for (const auto& [from, to] : {std::pair(one, other), std::pair(other, one)}) {
    const auto at = answers.find(from);
    if (at == answers.end()) continue;
    examined_ += at->second.partners.size();
    if (std::find(at->second.partners.begin(), at->second.partners.end(), to) != at->second.partners.end())
      return false;
    at->second.partners.push_back(to);
  }
  ++members_.find(one)->second.partners;
  ++members_.find(other)->second.partners;
  return true;
}

void Introductions::add_earlier(Answers& answers, SwarmNode node) {
  const auto here = introduced_.find(members_.find(node)->second.location);
  if (here == introduced_.end()) return;
  const Nodes& nodes = here->second.nodes;
  std::size_t added = 0;
  for (std::size_t i = 0; i < kEarlierTries && added < std::min(kEarlierPartners, nodes.size()); ++i) {
    const SwarmNode earlier = nodes[random_.below(nodes.size())];
    ++examined_;
    if (members_.find(earlier)->second.partners < kPartnersMax && connect(answers, node, earlier)) ++added;
  }
}

// A location that was introduced later gets its bytes by its bridges, which lead to any location before it. One whose
// bridges have left gets new ones.
void Introductions::add_bridges(Answers& answers, Location& here, const Nodes& newcomers) {
  for (const SwarmNode near : newcomers) {
    if (here.bridged >= kBridges) return;
    const std::optional<SwarmNode> far = other_member(members_.find(near)->second, true, random_.next());
    if (!far) return;
    connect(answers, near, *far);
    for (const SwarmNode node : {near, *far}) {
      Member& member = members_.find(node)->second;
      if (!std::exchange(member.bridged, true)) ++introduced_.find(member.location)->second.bridged;
    }
  }
}

// Adds a member of any location, since those of the location of a hungry node may lack its units too. A node that stays
// hungry gets all members in turn.
void Introductions::add_one(Answers& answers, SwarmNode node) {
  Member& member = members_.find(node)->second;
  if (const std::optional<SwarmNode> other = other_member(member, false, member.turn++)) connect(answers, node, *other);
}

// Returns the introduced member with this number, modulo their count, among those other than `member`; `elsewhere`:
// among those of other locations.
std::optional<SwarmNode> Introductions::other_member(const Member& member, bool elsewhere, std::uint64_t number) const {
  const auto eligible = [&](const std::string& location, const Location& there) {
    return location != member.location ? there.nodes.size() : elsewhere ? 0 : there.nodes.size() - 1;
  };
  std::size_t count = 0;
  for (const auto& [location, there] : introduced_) count += eligible(location, there);
  examined_ += introduced_.size();
  if (count == 0) return std::nullopt;
  number %= count;
  for (const auto& [location, there] : introduced_) {
    if (const std::size_t here = eligible(location, there); number >= here) {
      number -= here;
      continue;
    }
    return there.nodes[number + (location == member.location && number >= member.place ? 1 : 0)];
  }
  return std::nullopt;
}

void Introductions::let_ask_source(Answers& answers) {
  for (auto& [node, answer] : answers) {
    Member& member = members_.find(node)->second;
    if (member.finished) continue;
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
