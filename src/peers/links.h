// The score of each peer: its rate, its reads in flight, and its recent failures. A peer serves only a few reads of
// this node at a time, so that a slow peer delays few of them. A fast peer gets a few more requests than reads, so that
// an answer is ready when a read ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/chunk_codec.h"
#include "base/mutex.h"
#include "base/time_source.h"
#include "peers/read_pace.h"
#include "weft/bytes/source.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/registry.h"

namespace weft {

// Any thread.
class PeerLinks {
 public:
  using Clock = std::chrono::steady_clock;
  using Members = std::function<std::vector<Member>()>;
  // `is_over_tcp`: true if plain bytes cost a member with this provider CPU work; RDMA hardware reads the memory of a
  // member by itself. Empty: always true.
  using IsOverTcp = std::function<bool(std::string_view provider)>;
  explicit PeerLinks(Members members, const TimeSource& time = steady_time(), IsOverTcp is_over_tcp = {})
      : members_(std::move(members)), time_(time), is_over_tcp_(std::move(is_over_tcp)) {}

  // Returns the address of a member; nothing if the node is no member, or has no address.
  std::optional<PeerAddress> address(const std::string& node);

  std::vector<std::string> nodes();                  // the present members that have an address
  std::uint32_t number_of(const std::string& node);  // in this object; as Choice::number

  // Returns the best candidate that is not in `tried`: one that is free and does not rest, by its reads of this node
  // and its rate. If all untried candidates rest, returns one of these. The request counts until done().
  // A peer with many reads of this node still gets small questions, and reads that a rate of this node holds back:
  // those wait here, so they take no place of another read.
  enum class Size : std::uint8_t { read, question, held_read };
  struct Choice {
    std::string node;
    std::uint32_t number = 0;                  // the peer's number in this object
    std::uint64_t bytes_max = 0;               // the best size of a request to it
    CodingEffort effort = CodingEffort::none;  // for chunks with a base
    bool last = true;                          // no other candidate is an untried member
    Size size = Size::read;                    // as requested
  };
  // Describes the untried candidates for the log: "n2: cost 1, 0 reads, 90.0 MB/s; n3: …".
  std::string describe(std::span<const std::string> candidates, std::span<const std::uint32_t> tried);
  std::optional<Choice> take(std::span<const std::string> candidates, std::span<const std::uint32_t> tried,
                             Size size = Size::read);
  Readiness readiness(std::span<const std::string> candidates);
  // True if another candidate is free and much faster than `rate`, in bytes a second.
  bool has_faster(std::span<const std::string> candidates, std::uint32_t number, double rate);
  // Whether an untried candidate is busy with other reads of this node, or overloaded, so that take() may return it
  // later.
  struct Busy {
    bool any = false;
    Clock::time_point moved_at{};  // the last sign of life of such a candidate
  };
  Busy busy(std::span<const std::string> candidates, std::span<const std::uint32_t> tried);
  // Takes one of the few turns to read answers of the peer. The turn ends with the returned object, which must not
  // outlive this. Waits for a free turn, but only for kTurnWait, so that a silent peer delays nobody.
  class Turn;
  Turn turn(std::uint32_t number);
  // Returns the pace that all reads of the peer share. It lives as long as this.
  ReadPace& pace(std::uint32_t number);
  // Records a sign of life of the peer in one read. It counts for all reads of the peer.
  void moved(std::uint32_t number);
  bool gave_since(const std::string& node, Clock::time_point then);
  // The time since the first request that the node did not answer, or since it left the cluster if that is longer; 0 if
  // it has answered or restarted since. A silence that no request has met for kSilenceMax is forgotten at the next one.
  Clock::duration silent_for(const std::string& node);
  // True if the node was a member when this node last saw it, and is none now.
  bool has_left(const std::string& node);
  // Ends the request of take(): `bytes` arrived within `took`; zero: no time that tells the rate. With a failure,
  // `bytes` is 0, and the peer rests if it was silent or wrong. After Errc::busy it is not free for kBusyRest. `size`:
  // as in the Choice.
  void done(std::uint32_t number, std::uint64_t bytes, Clock::duration took, const Error* failure,
            Size size = Size::read);
  // Records a read of the peer's windows: `bytes`, plain or coded, within `took`.
  void wire_moved(std::uint32_t number, std::uint64_t bytes, Clock::duration took);
  void plain_only(std::uint32_t number);  // its coded chunks were wrong: never ask for more
  void refuted(std::uint32_t number);     // its bytes were wrong: it rests for kWrongRest
  // Waits for the end of a request, at most until the deadline.
  void wait(Deadline deadline);

 private:
  void end_turn(std::uint32_t number) WEFT_EXCLUDES(mutex_);
  struct Link {
    std::uint32_t number = 0;
    unsigned reads = 0;  // in flight, including those that wait for an answer or a turn; no held ones
    unsigned turns = 0;  // taken
    // Decaying sums over reads of its windows: bytes, and seconds as if only one read ran at a time. The rate is a
    // ratio of sums, because a short read that fits into a buffer on the path says little.
    double wire_bytes = 0, wire_seconds = 0;
    double wire_rate() const { return wire_seconds > 0 ? wire_bytes / wire_seconds : 0; }  // 0: unknown
    bool plain_only = false;  // its coded chunks were wrong
    double rate = 0;          // bytes a second of all its reads together, a moving average; 0: unknown
    Clock::time_point rests_until{};
    Clock::time_point busy_until{};  // it has answered that it is overloaded
    bool takes(Size size, Clock::time_point now) const;
    Clock::time_point moved_at{};
    Clock::time_point silent_since{};  // zero: the peer answers, or has restarted
    Clock::time_point silent_until{};  // the end of the last try without an answer; later tries begin a new silence
    Clock::time_point member_at{};     // when the peer was last seen as a member; zero: never
    std::string address;               // at that time
    Clock::time_point restarted_at{};  // when the peer was first seen at that address, or again after an absence
    ReadPace pace;                     // has its own lock
  };
  Link& link(const std::string& node) WEFT_REQUIRES(mutex_);
  const Member* member(const std::string& node) WEFT_REQUIRES(mutex_);
  bool is_past_member(const std::string& node) WEFT_REQUIRES(mutex_);
  void refresh(Clock::time_point now) WEFT_REQUIRES(mutex_);  // reads old members again
  void read_members(Clock::time_point now) WEFT_REQUIRES(mutex_);
  void rest_after(Link& link, const Error& failure, Clock::time_point asked) const WEFT_REQUIRES(mutex_);
  std::vector<Link*> askable(std::span<const std::string> candidates, std::span<const std::uint32_t> tried)
      WEFT_REQUIRES(mutex_);
  static double fastest(std::span<Link* const> askable);
  static double cost(const Link& link, double fastest);
  Link* best_of(std::span<const std::string> candidates, std::span<const std::uint32_t> tried, Size size)
      WEFT_REQUIRES(mutex_);
  static double rate_of(const Link& link);
  CodingEffort effort_of(const Link& link) WEFT_REQUIRES(mutex_);
  bool can_be_asked(const std::string& node, Clock::time_point now) WEFT_REQUIRES(mutex_);

  const Members members_;
  const TimeSource& time_;
  const IsOverTcp is_over_tcp_;
  Mutex mutex_;
  Condition changed_;
  Condition turn_ended_;
  std::vector<Member> known_ WEFT_GUARDED_BY(mutex_);  // as of known_at_
  Clock::time_point known_at_ WEFT_GUARDED_BY(mutex_){};
  std::map<std::string, Link> links_ WEFT_GUARDED_BY(mutex_);  // by node; never removed, as a cluster has few
  std::vector<std::string> nodes_ WEFT_GUARDED_BY(mutex_);     // by number
  std::minstd_rand random_ WEFT_GUARDED_BY(mutex_){std::random_device{}()};
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
