#include "peers/links.h"

#include <algorithm>

#include <fmt/core.h>

#include "peers/address.h"
#include "weft/deadline.h"

namespace weft {
namespace {

constexpr unsigned kReadsMax = 3;                             // reads of one peer at a time
constexpr unsigned kAsksMax = 5;                              // requests to a fast peer, waiting ones included
constexpr double kFast = 256U << 20U;                         // bytes a second of a fast peer
constexpr auto kTurnWait = std::chrono::milliseconds(100);    // reads of a fast peer end sooner
constexpr auto kMembersAge = std::chrono::milliseconds(200);  // between copies of the member list
constexpr auto kBusyRest = std::chrono::milliseconds(50);     // of a peer that answered that it is overloaded
constexpr auto kSilentRest = std::chrono::seconds(5);
constexpr auto kWrongRest = std::chrono::seconds(60);
constexpr double kNewest = 0.3;       // weight of the newest measurement
constexpr double kUnknownRate = 1e9;  // so that a peer without a rate is tried
constexpr double kMuchSlower = 3;     // a smaller factor is noise
// Requested bytes delay the peer's other answers. So all requests to a peer take at most this much of its time, and
// little before its rate is known: a link that other nodes start to use falls to a fraction of its rate.
constexpr double kAtOnceSeconds = 0.4;
constexpr std::uint64_t kFirstBytes = kDigestChunk;
// Coded chunks pay if the wire is slower than the coder. Over TCP a sparse difference takes less work than plain bytes
// at any rate. Hardware moves plain bytes without CPU work.
constexpr double kSparsePays = 3e9;                    // bytes a second of hardware, below which sparse differences pay
constexpr double kDensePays = 0.3e9;                   // the same for dense differences, over any wire
constexpr double kKept = 0.9;                          // weight of earlier reads in the wire's rate
constexpr std::uint64_t kTellsWireRate = 256U << 10U;  // smaller reads measure latency

}  // namespace

bool PeerLinks::Link::takes(Size size, Clock::time_point now) const {
  return busy_until <= now && (size != Size::read || reads < (rate < kFast ? kReadsMax : kAsksMax));
}

PeerLinks::Link& PeerLinks::link(const std::string& node) {
  const auto [at, made] = links_.try_emplace(node);
  if (made) {
    at->second.number = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(node);
  }
  return at->second;
}

void PeerLinks::refresh(Clock::time_point now) {
  if (known_at_ + kMembersAge < now) read_members(now);
}

void PeerLinks::read_members(Clock::time_point now) {
  known_ = members_();
  for (const Member& one : known_) {
    Link& link = this->link(one.node);
    const bool is_known = link.member_at != Clock::time_point{};
    const bool restarted = is_known && (link.member_at != known_at_ || link.address != one.address);
    if (restarted) {
      link.restarted_at = now;
      link.silent_since = {};
    }
    link.address = one.address;
    link.member_at = now;
  }
  known_at_ = now;
}

std::vector<std::string> PeerLinks::nodes() {
  const MutexLock lock(mutex_);
  read_members(time_.now());
  std::vector<std::string> out;
  for (const Member& one : known_)
    if (!one.address.empty()) out.push_back(one.node);
  return out;
}

void PeerLinks::rest_after(Link& link, const Error& failure, Clock::time_point asked) const {
  const auto now = time_.now();
  if (asked < link.restarted_at) return;                                 // the daemon that was asked has ended
  if (failure.code == Errc::timed_out && link.moved_at > asked) return;  // the link is saturated, not silent
  const bool is_silent = was_silent(failure);
  if (is_silent) {
    const bool is_new = link.silent_since == Clock::time_point{} || asked > link.silent_until + kSilenceMax;
    if (is_new) link.silent_since = std::max(asked, link.moved_at);
    link.silent_until = now;
  }
  if (failure.code == Errc::busy) link.busy_until = now + kBusyRest;
  if (!is_silent && failure.code != Errc::corrupt && failure.code != Errc::permission) return;
  link.rests_until = now + (failure.code == Errc::corrupt ? kWrongRest : kSilentRest);
}

const Member* PeerLinks::member(const std::string& node) {
  refresh(time_.now());
  const auto found = std::ranges::find(known_, node, &Member::node);
  return found == known_.end() || found->address.empty() ? nullptr : &*found;
}

std::optional<PeerAddress> PeerLinks::address(const std::string& node) {
  const MutexLock lock(mutex_);
  const Member* found = member(node);
  const auto address = found == nullptr ? std::nullopt : parse_endpoint(found->address);
  return address ? std::optional(PeerAddress{node, *address, found->provider}) : std::nullopt;
}

bool PeerLinks::can_be_asked(const std::string& node, Clock::time_point now) {
  return member(node) != nullptr && link(node).rests_until <= now;
}

double PeerLinks::rate_of(const Link& link) {
  return link.rate > 0 ? link.rate : kUnknownRate;
}

// Returns the untried members among the candidates: those that do not rest, or all if each one rests.
std::vector<PeerLinks::Link*> PeerLinks::askable(std::span<const std::string> candidates,
                                                 std::span<const std::uint32_t> tried) {
  std::vector<Link*> out;
  for (const std::string& node : candidates) {
    if (member(node) == nullptr) continue;
    Link& link = this->link(node);
    if (std::ranges::find(tried, link.number) == tried.end()) out.push_back(&link);
  }
  const auto rests = [now = time_.now()](const Link* one) { return one->rests_until > now; };
  if (!std::ranges::all_of(out, rests)) std::erase_if(out, rests);
  return out;
}

double PeerLinks::fastest(std::span<Link* const> askable) {
  double fastest = 0;
  for (const Link* one : askable) fastest = std::max(fastest, rate_of(*one));
  return fastest;
}

// Returns the cost of one more read. `fastest` is the rate of the fastest candidate, in bytes a second.
double PeerLinks::cost(const Link& link, double fastest) {
  const double slower = fastest / rate_of(link);
  return (link.reads + 1) * (slower > kMuchSlower ? slower : 1);
}

// Returns the candidate of the lowest cost. Ties are broken at random, or all nodes would ask the same peer at the same
// time.
PeerLinks::Link* PeerLinks::best_of(std::span<const std::string> candidates, std::span<const std::uint32_t> tried,
                                    Size size) {
  const auto now = time_.now();
  const auto askable = this->askable(candidates, tried);
  const double fastest = PeerLinks::fastest(askable);
  Link* best = nullptr;
  double lowest = 0;
  unsigned equals = 0;
  for (Link* link : askable) {
    if (!link->takes(size, now)) continue;
    const double cost = PeerLinks::cost(*link, fastest);
    if (lowest > 0 && cost > lowest) continue;
    equals = cost == lowest ? equals + 1 : 1;
    if (random_() % equals > 0) continue;
    best = link;
    lowest = cost;
  }
  return best;
}

std::string PeerLinks::describe(std::span<const std::string> candidates, std::span<const std::uint32_t> tried) {
  std::string text;
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  const auto askable = this->askable(candidates, tried);
  for (const Link* link : askable)
    text += fmt::format("{}{}: cost {:.3g}, {} reads, {:.1f} MB/s{}", text.empty() ? "" : "; ", nodes_[link->number],
                        cost(*link, fastest(askable)), link->reads, link->rate / 1e6,
                        link->takes(Size::read, now) ? "" : ", busy");
  return text;
}

std::optional<PeerLinks::Choice> PeerLinks::take(std::span<const std::string> candidates,
                                                 std::span<const std::uint32_t> tried, Size size) {
  const MutexLock lock(mutex_);
  Link* best = best_of(candidates, tried, size);
  if (best == nullptr) return {};
  if (size != Size::held_read) ++best->reads;
  const double at_once = best->rate * kAtOnceSeconds / kReadsMax;
  const double bytes = std::clamp(at_once, static_cast<double>(kFirstBytes), static_cast<double>(kSourceReadMax));
  const std::string& node = nodes_[best->number];
  const bool last = std::ranges::none_of(candidates, [&](const std::string& one) WEFT_REQUIRES(mutex_) {
    return one != node && member(one) != nullptr && std::ranges::find(tried, link(one).number) == tried.end();
  });
  return Choice{node, best->number, static_cast<std::uint64_t>(bytes), effort_of(*best), last, size};
}

CodingEffort PeerLinks::effort_of(const Link& link) {
  if (link.plain_only) return CodingEffort::none;
  const double rate = link.wire_rate();
  const bool is_known = rate > 0;
  if (is_known && rate < kDensePays) return CodingEffort::dense;
  const Member* peer = member(nodes_[link.number]);
  if (!is_over_tcp_ || peer == nullptr || is_over_tcp_(peer->provider)) return CodingEffort::sparse;
  return is_known && rate < kSparsePays ? CodingEffort::sparse : CodingEffort::none;
}

Readiness PeerLinks::readiness(std::span<const std::string> candidates) {
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  Readiness best = Readiness::lacking;
  for (const std::string& node : candidates) {
    if (!can_be_asked(node, now)) continue;
    if (link(node).takes(Size::read, now)) return Readiness::ready;
    best = Readiness::busy;
  }
  return best;
}

bool PeerLinks::has_faster(std::span<const std::string> candidates, std::uint32_t number, double rate) {
  const MutexLock lock(mutex_);
  const auto now = time_.now();
  return std::ranges::any_of(candidates, [&](const std::string& node) WEFT_REQUIRES(mutex_) {
    if (!can_be_asked(node, now)) return false;
    const Link& other = link(node);
    return other.number != number && other.takes(Size::read, now) && other.rate > kMuchSlower * rate;
  });
}

PeerLinks::Busy PeerLinks::busy(std::span<const std::string> candidates, std::span<const std::uint32_t> tried) {
  const MutexLock lock(mutex_);
  Busy busy;
  for (const Link* one : askable(candidates, tried)) busy = {true, std::max(busy.moved_at, one->moved_at)};
  return busy;
}

void PeerLinks::done(std::uint32_t number, std::uint64_t bytes, Clock::duration took, const Error* failure, Size size) {
  const MutexLock lock(mutex_);
  Link& link = links_.at(nodes_.at(number));
  if (const double seconds = std::chrono::duration<double>(took).count(); bytes > 0 && seconds > 0) {
    const unsigned beside = size == Size::held_read ? 1 : link.reads;
    const double rate = static_cast<double>(bytes) / seconds * beside;
    link.rate = link.rate > 0 ? (1 - kNewest) * link.rate + kNewest * rate : rate;
  }
  if (size != Size::held_read) --link.reads;
  if (bytes > 0) link.moved_at = time_.now();
  const bool answered = failure == nullptr || (!was_silent(*failure) && failure->code != Errc::cancelled);
  if (answered) link.silent_since = {};
  if (failure != nullptr) rest_after(link, *failure, time_.now() - took);
  changed_.notify_all();
}

PeerLinks::Turn PeerLinks::turn(std::uint32_t number) {
  UniqueLock lock(mutex_);
  Link& link = links_.at(nodes_.at(number));
  const Deadline until = time_.now() + kTurnWait;
  while (link.turns >= kReadsMax && time_.now() < until) time_.wait(turn_ended_, lock, until);
  ++link.turns;
  return {*this, number};
}

void PeerLinks::end_turn(std::uint32_t number) {
  {
    const MutexLock lock(mutex_);
    --links_.at(nodes_.at(number)).turns;
  }
  turn_ended_.notify_all();
}

ReadPace& PeerLinks::pace(std::uint32_t number) {
  const MutexLock lock(mutex_);
  return links_.at(nodes_.at(number)).pace;
}

std::uint32_t PeerLinks::number_of(const std::string& node) {
  const MutexLock lock(mutex_);
  return link(node).number;
}

void PeerLinks::moved(std::uint32_t number) {
  const MutexLock lock(mutex_);
  Link& link = links_.at(nodes_.at(number));
  link.moved_at = time_.now();
  link.silent_since = {};
}

PeerLinks::Clock::duration PeerLinks::silent_for(const std::string& node) {
  const MutexLock lock(mutex_);
  const bool left = is_past_member(node);
  const auto now = time_.now();
  const Link& link = this->link(node);
  const auto silence = link.silent_since == Clock::time_point{} ? Clock::duration{} : now - link.silent_since;
  return left ? std::max(silence, now - link.member_at) : silence;
}

bool PeerLinks::has_left(const std::string& node) {
  const MutexLock lock(mutex_);
  return is_past_member(node);
}

bool PeerLinks::is_past_member(const std::string& node) {
  return member(node) == nullptr && link(node).member_at != Clock::time_point{};
}

bool PeerLinks::gave_since(const std::string& node, Clock::time_point then) {
  const MutexLock lock(mutex_);
  return link(node).moved_at > then;
}

void PeerLinks::wire_moved(std::uint32_t number, std::uint64_t bytes, Clock::duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  if (bytes < kTellsWireRate || seconds <= 0) return;
  const MutexLock lock(mutex_);
  Link& link = links_.at(nodes_.at(number));
  link.wire_bytes = kKept * link.wire_bytes + static_cast<double>(bytes);
  link.wire_seconds = kKept * link.wire_seconds + seconds / std::max(1U, link.turns);
}

void PeerLinks::plain_only(std::uint32_t number) {
  const MutexLock lock(mutex_);
  links_.at(nodes_.at(number)).plain_only = true;
}

void PeerLinks::refuted(std::uint32_t number) {
  const MutexLock lock(mutex_);
  links_.at(nodes_.at(number)).rests_until = time_.now() + kWrongRest;
}

void PeerLinks::wait(Deadline deadline) {
  UniqueLock lock(mutex_);
  time_.wait(changed_, lock, deadline);
}

}  // namespace weft
