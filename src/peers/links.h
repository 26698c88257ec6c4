// How it goes with each peer: how fast it is, how much is asked of it now, whether it failed a moment ago. No peer is
// asked for more than a few reads at a time, so that a slow one holds up few and a fast one never waits. Of one that is
// fast a little more is asked than is read: then an answer is there when a read ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/chunk_codec.h"
#include "base/time_source.h"
#include "peers/view.h"
#include "weft/exchange.h"
#include "weft/registry.h"
#include "weft/source.h"

namespace weft {

// Any thread.
class PeerLinks {
 public:
  using Clock = std::chrono::steady_clock;
  using Members = std::function<std::vector<Member>()>;
  // `is_over_tcp`: whether plain bytes that a member gives by its provider cost it work; hardware reads its memory.
  // Empty: they always do.
  using IsOverTcp = std::function<bool(std::string_view provider)>;
  explicit PeerLinks(Members members, const TimeSource& time = steady_time(), IsOverTcp is_over_tcp = {})
      : members_(std::move(members)), time_(time), is_over_tcp_(std::move(is_over_tcp)) {}

  // Where a member can be called; nothing for those that are none, or say no address.
  std::optional<PeerAddress> address(const std::string& node);

  std::vector<std::string> nodes();  // all members with an address

  // Returns the best candidate that can be asked now and is not in `tried`: one that is free and does not rest, by the
  // rate that it has given at. If all candidates that were not tried rest, one of these. It counts as asked until
  // done().
  enum class Size : std::uint8_t { read, question };  // small questions are asked of busy peers too
  struct Choice {
    std::string node;
    std::uint32_t number = 0;                  // of the peer in this object
    std::uint64_t bytes_max = 0;               // best asked for at once
    bool sought = false;                       // PeerCandidate::Kind::sought
    bool waits = true;                         // it may refuse; not when it has done nothing else for long
    CodingEffort effort = CodingEffort::none;  // to ask of it, for chunks with a base
    bool last = true;                          // no other candidate is left that is a member and was not tried
  };
  std::optional<Choice> take(std::span<const PeerCandidate> candidates, std::span<const std::uint32_t> tried,
                             Size size = Size::read);
  Readiness readiness(std::span<const PeerCandidate> candidates);
  // True if another candidate can be asked now that has given much faster than `rate`, in bytes a second.
  bool has_faster(std::span<const PeerCandidate> candidates, std::uint32_t number, double rate);
  // Whether take() can return a candidate later: one that was not tried is busy with other reads of this node.
  struct Busy {
    bool any = false;
    Clock::time_point moved_at{};  // when such a candidate last gave something to one of these reads
  };
  Busy busy(std::span<const PeerCandidate> candidates, std::span<const std::uint32_t> tried);
  // A turn to read what it has answered: few at a time, and each for as long as what is returned, which does not
  // outlive this. Waited for, but not for long: who is silent holds up nobody.
  class Turn;
  Turn turn(std::uint32_t number);
  // Something of a read came from it: while it gives to one, it is not silent to the others.
  void moved(std::uint32_t number);
  bool gave_since(const std::string& node, Clock::time_point then);
  // The time since the first request that the node did not answer; 0 if it has shown life since.
  Clock::duration silent_for(const std::string& node);
  // `bytes` have come since take(), in so long; 0 and a failure: it rests when it was silent or wrong.
  void done(std::uint32_t number, std::uint64_t bytes, Clock::duration took, const Error* failure);
  // The peer refused a read because its upload slots are full or another node was just given the chunk. It counts as
  // busy for a pause that doubles with each refusal, until the peer gives bytes again.
  void full(std::uint32_t number);
  // So many bytes came from its windows, in so long: plain or coded ones.
  void wire_moved(std::uint32_t number, std::uint64_t bytes, Clock::duration took);
  void plain_only(std::uint32_t number);  // what it coded was wrong: it gives plain bytes from now on
  void refuted(std::uint32_t number);     // what it gave was wrong: it rests for a long time
  // Until somebody is done, at most until then.
  void wait(Deadline deadline);

 private:
  void end_turn(std::uint32_t number);
  struct Link {
    std::uint32_t number = 0;
    unsigned reads = 0;  // now, those that wait for their answer or their turn included
    unsigned turns = 0;  // now
    // Of reads of its windows, the latest counting most: bytes, and seconds as if there had been one read at a time. A
    // ratio of sums: a short read that a buffer on the way takes at once says little.
    double wire_bytes = 0, wire_seconds = 0;
    double wire_rate() const { return wire_seconds > 0 ? wire_bytes / wire_seconds : 0; }  // 0: not known
    bool plain_only = false;                                                               // it coded wrongly
    double rate = 0;  // bytes a second, of all its reads together; a moving average. 0: not known
    Clock::time_point rests_until{};
    Clock::time_point full_until{};
    Clock::time_point full_since{};  // long ago: it has given something since
    Clock::duration full_rest{};     // the last
    bool is_free(Clock::time_point now) const;
    Clock::time_point moved_at{};
    Clock::time_point silent_since{};  // long ago: the peer answers
  };
  // All with mutex_ held.
  Link& link(const std::string& node);
  const Member* member(const std::string& node);
  void refresh(Clock::time_point now);
  void rest_after(Link& link, const Error& failure, Clock::time_point asked) const;
  std::vector<std::pair<Link*, PeerCandidate::Kind>> askable(std::span<const PeerCandidate> candidates,
                                                             std::span<const std::uint32_t> tried);
  Link* best_of(std::span<const PeerCandidate> candidates, std::span<const std::uint32_t> tried, Size size);
  static double rate_of(const Link& link);
  CodingEffort effort_of(const Link& link);
  bool can_be_asked(const PeerCandidate& candidate, Clock::time_point now);

  const Members members_;
  const TimeSource& time_;
  const IsOverTcp is_over_tcp_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable turn_ended_;
  std::vector<Member> known_;  // guarded by mutex_, as all below; members, a moment ago
  Clock::time_point known_at_{};
  std::map<std::string, Link> links_;  // by node; none is forgotten: a cluster has few
  std::vector<std::string> nodes_;     // by number
  std::minstd_rand random_{std::random_device{}()};
};

class PeerLinks::Turn {
 public:
  Turn(PeerLinks& links, std::uint32_t number) : links_(&links), number_(number) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { links_->end_turn(number_); }

 private:
  PeerLinks* links_;
  std::uint32_t number_;
};

}  // namespace weft
