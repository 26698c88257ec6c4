#include "swarm_unit_reads.h"

#include <algorithm>

#include "peers/offered_read.h"
#include "weft/content.h"

namespace weft::sim {
namespace {

// Bytes of a one-sided read, with the headers of TCP.
constexpr std::uint64_t kPieceRequest = 80;
constexpr std::uint64_t kPieceHead = 60;

}  // namespace

std::uint64_t UnitReads::unit_bytes(std::uint32_t unit) const {
  const std::uint64_t from = units_.first_chunk(unit) * kDigestChunk;
  return std::min(options_.size, from + units_.chunks_in(unit) * kDigestChunk) - from;
}

std::uint64_t UnitReads::begin(Host receiver, Host sender, std::uint32_t unit, bool by_swarm, SenderLink& link) {
  const std::uint64_t number = reads_.take();
  UnitRead& read = reads_[number];
  read = {.receiver = receiver,
          .sender = sender,
          .unit = unit,
          .by_swarm = by_swarm,
          .live = true,
          .generation = read.generation + 1,
          .length = unit_bytes(unit),
          .begun = time(),
          .link = &link};
  ask_pieces(number);
  return number;
}

void UnitReads::end(std::uint64_t read) {
  reads_[read].live = false;
  reads_.give_back(read);
}

// Requests pieces of a read while the window of its sender has room; one piece at least.
void UnitReads::ask_pieces(std::uint64_t number) {
  UnitRead& read = reads_[number];
  ReadWindow& window = read.link->window;
  while (read.asked < read.length) {
    const std::size_t piece = std::min<std::size_t>({window.piece(), options_.piece_max, read.length - read.asked});
    if (read.asked != read.came && (!window.has_room(piece) || read.asked - read.came >= options_.in_flight * piece))
      return;
    const std::uint64_t which = pieces_.take();
    pieces_[which] = {.read = static_cast<std::uint32_t>(number),
                      .generation = read.generation,
                      .receiver = read.receiver,
                      .sender = read.sender,
                      .link = read.link,
                      .window = window.ask(piece, time())};
    read.asked += piece;
    network_.send(read.receiver, read.sender, kPieceRequest, false, kPieceAsked, which);
  }
}

void UnitReads::asked(std::uint64_t piece, bool is_dead) {
  const Piece& of = pieces_[piece];
  if (is_dead)
    network_.at(network_.now() + std::chrono::nanoseconds(kOfferSilenceMax).count(), of.receiver, kPieceLost, piece);
  else
    network_.send(of.sender, of.receiver, of.window.length + kPieceHead, false, kPieceCame, piece);
}

UnitReads::Piece UnitReads::take(std::uint64_t piece) {
  pieces_.give_back(piece);
  return pieces_[piece];
}

bool UnitReads::is_over(const Piece& piece) {
  const UnitRead& read = reads_[piece.read];
  return !read.live || read.generation != piece.generation;
}

std::optional<std::uint64_t> UnitReads::came(std::uint64_t piece) {
  const Piece of = take(piece);
  of.link->heard = time();
  if (is_over(of)) {
    of.link->window.lost(of.window);
    return std::nullopt;
  }
  UnitRead& read = reads_[of.read];
  of.link->window.came(of.window, time());
  read.came += of.window.length;
  if (read.has_come()) return of.read;
  ask_pieces(of.read);
  return std::nullopt;
}

std::optional<std::uint64_t> UnitReads::lost(std::uint64_t piece) {
  const Piece of = take(piece);
  of.link->window.lost(of.window);
  return is_over(of) ? std::nullopt : std::optional<std::uint64_t>(of.read);
}

}  // namespace weft::sim
