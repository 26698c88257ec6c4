// The rule of the pace: when a piece of a read may go, by the rates of the node and the class of the read.
//
// Pieces that a rate holds back go evenly spaced: after a piece, the rate is free again once the piece's bytes have had
// their time. Nothing is saved up while nobody reads. A piece longer than the time that is free goes all the same, and
// the next piece waits until it is paid.
//
// Which rates hold back a read: of staging all three, of reads ahead rate.total and rate.origin, of a reader rate.total
// alone. Bytes from the origin that a reader waits for still count for rate.origin: the other classes wait for them, a
// second at most for each of their pieces.
//
// Of the waiting reads, the class that goes first gets the next turn, and within a class the read that began first.
// Staging also waits for kAfterReader after a reader had to wait. If a class has got nothing for kAgedMax, its first
// read goes before all others, so that no class waits for ever. Pure: the caller tells the time. Not for several
// threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "weft/bytes/traffic.h"
#include "weft/deadline.h"

namespace weft {

// Bytes a second; 0: no bound.
struct PaceRates {
  std::uint64_t staging = 0, total = 0, origin = 0;
  bool operator==(const PaceRates&) const = default;
};

enum class PaceRate : std::uint8_t { staging, total, origin };
inline constexpr std::array<std::string_view, 3> kPaceRateNames{"rate.staging", "rate.total", "rate.origin"};
inline constexpr std::uint64_t kPaceRateMin = 1'000'000;  // bytes a second of a rate that is set

// The other end of the bytes: a peer, or the origin, to which this node also writes.
enum class PaceEnd : std::uint8_t { peer, origin };
inline constexpr std::array<std::string_view, 2> kPaceEndNames{"peer", "origin"};

struct PacedRead {
  Traffic traffic = Traffic::foreground;
  PaceEnd end = PaceEnd::peer;
  std::uint64_t number = 0;  // a read that began earlier has a lower one; unique
  Deadline since{};          // when its next piece began to wait; zero: it does not wait. Set by PaceLine
};

class PaceLine {
 public:
  static constexpr std::size_t kPieceMax = 128U << 10U;  // bytes of a piece that a rate holds back
  static constexpr std::chrono::milliseconds kAfterReader{20};
  static constexpr std::chrono::milliseconds kAgedMax{1'000};
  // The most that other classes owe at a time for bytes of readers, counted from their own last piece.
  static constexpr std::chrono::milliseconds kReadersDebtMax{1'000};
  // A piece that waited, and whose thread woke up late, counts from its time, but from no earlier than this.
  static constexpr std::chrono::milliseconds kLateMax{2};

  // A changed rate owes nothing for earlier pieces.
  void set(const PaceRates& rates);
  const PaceRates& rates() const { return rates_; }
  // True if a rate holds back such reads. Their pieces are then no longer than kPieceMax.
  bool holds(Traffic traffic, PaceEnd end) const;

  // Why a piece waits.
  struct Held {
    PaceRate by = PaceRate::total;
    Deadline until{};  // when the piece may go, unless another read passes or leaves the line before
  };
  // Lets a piece go now, and counts it; or says why not, and puts the read into the line.
  std::optional<Held> pass(PacedRead& read, std::uint64_t bytes, Deadline now);
  // Counts bytes that have come without having waited, such as those in the head of an answer: the next pieces pay.
  void owe(const PacedRead& read, std::uint64_t bytes, Deadline now) { count(read, bytes, now, now); }
  void leave(const PacedRead& read) { line_.erase(read.number); }
  bool is_empty() const { return line_.empty(); }

 private:
  struct Account {
    std::uint64_t rate = 0;  // bytes a second
    Deadline free_at{};
    Deadline waited_for{};  // when a piece that this rate holds back last went
  };
  static bool holds(PaceRate rate, Traffic traffic, PaceEnd end);
  static bool counts(PaceRate rate, Traffic traffic, PaceEnd end);
  const Account* latest(const PacedRead& read) const;
  std::optional<Held> held(const PacedRead& read, Deadline now) const;
  std::optional<PaceRate> shared(const PacedRead& one, const PacedRead& other) const;
  Deadline aged_at(const PacedRead& read) const;
  bool goes_before(const PacedRead& one, const PacedRead& other, Deadline now) const;
  void count(const PacedRead& read, std::uint64_t bytes, Deadline now, Deadline begun);

  PaceRates rates_;
  std::array<Account, kPaceRateNames.size()> accounts_{};  // by PaceRate
  std::map<std::uint64_t, PacedRead> line_;                // by number
  std::array<Deadline, kTrafficNames.size()> passed_{};    // when a piece of the class last went
  Deadline reader_waited_{};                               // when a reader last had to wait
};

}  // namespace weft
