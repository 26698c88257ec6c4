// Reads of units in the simulator of swarms: a receiver reads a unit of a sender in pieces, by the daemon's ReadWindow.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "peers/read_window.h"
#include "swarm/swarm_types.h"
#include "swarm/units.h"
#include "swarm_network.h"

namespace weft::sim {

// Kinds of events. The host of kPieceAsked is the sender of the piece, and that of the other two its receiver.
enum Kind : std::uint16_t {
  kBegin,
  kMessage,
  kTimer,
  kPieceAsked,
  kPieceCame,
  kPieceLost,
  kVerified,
  kDie,
  kNoticed,
};

// The state of a receiver's reads from one sender.
struct SenderLink {
  ReadWindow window;
  SwarmTime heard{};  // the last offer or piece
};

// A read of a unit: of an offer of the swarm, or by the ordinary way from a node with the whole version.
struct UnitRead {
  Host receiver = 0, sender = 0;
  std::uint32_t unit = 0;
  bool by_swarm = true;
  bool live = false;
  std::uint32_t generation = 0;                   // of this place in the pool
  std::uint64_t length = 0, asked = 0, came = 0;  // bytes
  SwarmTime begun{};
  SenderLink* link = nullptr;  // outlives the read and its pieces

  bool has_come() const { return came == length; }
};

struct ReadOptions {
  std::uint64_t size = 0;       // bytes of the version
  std::uint64_t piece_max = 0;  // bytes
  std::uint64_t in_flight = 0;  // pieces of one unit on the way
};

class UnitReads {
 public:
  UnitReads(Network& network, const Units& units, const ReadOptions& options)
      : network_(network), units_(units), options_(options) {}

  // Begins a read and returns its number.
  std::uint64_t begin(Host receiver, Host sender, std::uint32_t unit, bool by_swarm, SenderLink& link);
  void end(std::uint64_t read);
  const UnitRead& operator[](std::uint64_t read) { return reads_[read]; }

  // kPieceAsked: a live sender sends the piece. A dead one sends none, which its receiver knows after kOfferSilenceMax.
  void asked(std::uint64_t piece, bool is_dead);
  // kPieceCame. Returns the read of the piece if the piece was its last one.
  std::optional<std::uint64_t> came(std::uint64_t piece);
  // kPieceLost. Returns its read, unless that has ended.
  std::optional<std::uint64_t> lost(std::uint64_t piece);
  void forget(std::uint64_t piece) { pieces_.give_back(piece); }  // the receiver is dead

 private:
  struct Piece {
    std::uint32_t read = 0, generation = 0;
    Host receiver = 0, sender = 0;
    SenderLink* link = nullptr;
    ReadWindow::Piece window;
  };

  SwarmTime time() const { return SwarmTime(std::chrono::nanoseconds(network_.now())); }
  std::uint64_t unit_bytes(std::uint32_t unit) const;
  Piece take(std::uint64_t piece);
  bool is_over(const Piece& piece);
  void ask_pieces(std::uint64_t number);

  Network& network_;
  const Units units_;
  const ReadOptions options_;
  Pool<UnitRead> reads_;
  Pool<Piece> pieces_;
};

}  // namespace weft::sim
