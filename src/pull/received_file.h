// A file of a hub while it is received: FILES/PATH, and a note about the bytes that are there. The file has its size
// from the beginning. Its pieces are received in any order, also by several processes one after another. Either this
// object hashes them in order as soon as they are there, or an import that reads the file meanwhile (weft/arrival.h).
//
// The note (received_note.h) has the number of received bytes of each piece. It is removed when this object has
// verified the file. Nothing is synced, but the disk writes all along: after a crash of the machine the note may
// promise bytes that the file lacks. The digest then differs, and the file is received again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "hub/hub_listing.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "pull/hub_digest.h"
#include "weft/cluster/pulled.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kPiecesAtOnce = 4;  // that one thread takes, at most

// Pieces that follow each other.
struct Pieces {
  std::size_t first = 0, count = 0;
};

enum class HashedBy : std::uint8_t { receiver, import };

// Any thread. Each piece belongs to the thread that took it.
class ReceivedFile {
 public:
  // Finds what an earlier process has received of this file, and drops the rest. A file without a note counts as whole
  // until it is hashed. `notes` is a directory. Errc::no_space: the disk cannot hold the file.
  static Result<std::unique_ptr<ReceivedFile>> open(const SafePath& files, const SafePath& notes, const HubFile& wanted,
                                                    HashedBy hashed_by = HashedBy::receiver);

  ReceivedFile(const ReceivedFile&) = delete;
  ReceivedFile& operator=(const ReceivedFile&) = delete;

  const HubFile& wanted() const { return wanted_; }
  std::uint64_t received() const;  // bytes of all pieces
  // Takes pieces that lack bytes, each once: several while there are plenty for this number of takers, and single ones
  // near the end of the file, so that the takers end together. Returns nothing if all pieces are taken.
  std::optional<Pieces> take_pieces(unsigned takers);
  // The caller takes the piece with the byte at `offset`; nothing if the piece is whole or taken.
  std::optional<Pieces> take_piece_at(std::uint64_t offset);
  // Returns the end of the run of received bytes that begins at this offset. The last byte of the file counts as
  // received once hash_ready() has closed the file.
  std::uint64_t arrived(std::uint64_t offset) const;
  Pieces all() const;
  // The bytes that lack in these pieces, as a range of the file. Only the first piece may have bytes already.
  Range missing(Pieces pieces) const;
  // Appends to these pieces in order, notes those that become whole, and drops them from `pieces`.
  Status write(Pieces& pieces, std::span<const std::byte> bytes);
  // The caller writes bytes that another source than the hub gave. Their digest may then differ.
  void doubt();
  bool is_doubtful() const { return doubtful_; }  // true if some bytes are from there, or from an earlier process
  // Notes the bytes of the first of these pieces, and starts to write them to the disk. Call it after the last write.
  Status note(Pieces pieces);

  enum class Verdict : std::uint8_t {
    incomplete,  // bytes are missing, or another thread is hashing
    verified,    // returned once. The file is closed
    whole,       // returned once, for an import that verifies the file. The file is closed
    restarted,   // bytes of an earlier process, or from elsewhere, were wrong: all pieces can be taken again
  };
  // Hashes the pieces that are whole and not hashed yet, unless the import does. Errc::corrupt: the content has another
  // digest than the listing says, although this process received all of it; the next one receives it again.
  Result<Verdict> hash_ready();

 private:
  ReceivedFile(const SafePath& path, const SafePath& note, HubFile wanted, HashedBy hashed_by);
  Status open_files();
  Status reserve();
  Status read_note() WEFT_REQUIRES(mutex_);
  Status restart();
  std::uint64_t length_of(std::size_t piece) const;
  bool lacks_bytes(std::size_t piece) const WEFT_REQUIRES(mutex_);
  Status append(std::size_t piece, std::uint64_t offset, std::span<const std::byte> bytes);
  void start_writing(std::size_t piece, std::uint32_t from, std::uint32_t end) const;
  Verdict close_whole();
  Status hash_piece(std::size_t piece);
  Result<Verdict> verdict();

  const SafePath path_, note_path_;
  const HubFile wanted_;
  const HashedBy hashed_by_;
  Fd fd_, note_;                       // closed by the thread that finds the last piece noted
  std::atomic<bool> doubtful_{false};  // some bytes may be wrong: they are from an earlier process, or see doubt()
  mutable Mutex mutex_;
  std::vector<std::uint32_t> got_ WEFT_GUARDED_BY(mutex_);    // bytes of each piece
  std::vector<std::uint32_t> noted_ WEFT_GUARDED_BY(mutex_);  // bytes of each piece in the note
  std::vector<bool> taken_ WEFT_GUARDED_BY(mutex_);           // pieces
  std::size_t next_ WEFT_GUARDED_BY(mutex_) = 0;              // the first piece that take_pieces() may return
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  std::size_t hashed_ WEFT_GUARDED_BY(mutex_) = 0;  // pieces
  bool hashing_ WEFT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<HubDigest> hash_;  // for the thread that set hashing_
};

}  // namespace weft
