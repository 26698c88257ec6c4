#include "pull/received_file.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/sha256.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "pull/received_note.h"

namespace weft {
namespace {

constexpr std::uint32_t kNoteStep = 1U << 20U;   // received bytes between two notes of a piece
constexpr std::uint32_t kWriteStep = 4U << 20U;  // received bytes of a piece that are written to the disk together
constexpr std::size_t kHashStep = 1U << 20U;     // bytes of one read
constexpr mode_t kPrivate = 0700;

Status make_parents(const SafePath& files, std::string_view path) {
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1))
    WEFT_CHECK(make_directories(files / path.substr(0, slash), kPrivate));
  return {};
}

// A listing may say any size. Of a size that no disk has, the numbers of the pieces alone would fill the memory.
Status check_space(const SafePath& files, const HubFile& wanted) {
  const auto there = stat_file(files / wanted.path);
  if (there.ok() && static_cast<std::uint64_t>(there->st_size) == wanted.size) return {};  // it has its space
  WEFT_TRY(const Fd directory, open_directory(files));
  const auto disk = disk_space(directory.get());
  if (!disk || disk->total == 0) return {};
  const std::uint64_t space = disk->available + (there.ok() ? allocated_bytes(*there) : 0);
  if (wanted.size <= space) return {};
  return Error{Errc::no_space, fmt::format("{}: expected {} free bytes, got {}", files, wanted.size, space)};
}

}  // namespace

ReceivedFile::ReceivedFile(const SafePath& path, const SafePath& note, HubFile wanted, HashedBy hashed_by)
    : path_(path),
      note_path_(note),
      wanted_(std::move(wanted)),
      hashed_by_(hashed_by),
      hash_(std::make_unique<HubDigest>(wanted_)) {
  const std::uint64_t pieces = (wanted_.size + kPieceBytes - 1) / kPieceBytes;
  got_.resize(pieces);
  noted_.resize(pieces);
  taken_.resize(pieces);
}

Result<std::unique_ptr<ReceivedFile>> ReceivedFile::open(const SafePath& files, const SafePath& notes,
                                                         const HubFile& wanted, HashedBy hashed_by) {
  WEFT_CHECK(check_space(files, wanted));
  const SafePath note = notes / to_hex(note_of(wanted));
  std::unique_ptr<ReceivedFile> file(new ReceivedFile(files / wanted.path, note, wanted, hashed_by));
  WEFT_CHECK(make_parents(files, wanted.path));
  WEFT_CHECK(file->open_files());
  return file;
}

// The note exists before the file: a file without one is whole.
Status ReceivedFile::open_files() {
  const MutexLock lock(mutex_);
  const auto there = stat_file(path_);
  const bool has_file =
      there.ok() && S_ISREG(there->st_mode) && static_cast<std::uint64_t>(there->st_size) == wanted_.size;
  const bool has_note = stat_file(note_path_).ok();
  if (there.ok() && !has_file) WEFT_CHECK(remove_tree(path_));
  if (has_file && !has_note) {
    for (std::size_t i = 0; i < got_.size(); ++i) got_[i] = static_cast<std::uint32_t>(length_of(i));
    noted_ = got_;
    doubtful_ = !got_.empty();
  } else {
    WEFT_TRY(note_, open_file(note_path_, O_RDWR | O_CREAT, 0600));
    if (has_file) WEFT_CHECK(read_note());
  }
  WEFT_TRY(fd_, open_file(path_, O_RDWR | O_CREAT, 0600));
  if (has_file) return {};
  noted_.assign(noted_.size(), 0);
  if (has_note) WEFT_CHECK(resize_file(note_.get(), 0, note_path_));
  return wanted_.size == 0 ? Status{} : reserve();
}

// A file system without fallocate(2) reports a full disk later. Another one may keep the blocks that it found before it
// met the end of the disk, so that file goes.
Status ReceivedFile::reserve() {
  Status space = allocate(fd_.get(), 0, wanted_.size, path_);
  if (space.ok() || space.error().code != Errc::no_space) return resize_file(fd_.get(), wanted_.size, path_);
  static_cast<void>(remove_file(path_));
  return space;
}

Status ReceivedFile::read_note() {
  WEFT_TRY(got_, read_received(note_, note_path_, wanted_.size, 0, got_.size()));
  doubtful_ = doubtful_ || std::ranges::any_of(got_, [](std::uint32_t got) { return got > 0; });
  noted_ = got_;
  return {};
}

std::uint64_t ReceivedFile::length_of(std::size_t piece) const {
  return piece_length(wanted_.size, piece);
}

std::uint64_t ReceivedFile::received() const {
  const MutexLock lock(mutex_);
  return std::accumulate(got_.begin(), got_.end(), std::uint64_t{0});
}

// A piece that is whole, or that somebody receives, lacks none.
bool ReceivedFile::lacks_bytes(std::size_t piece) const {
  return !taken_[piece] && got_[piece] < length_of(piece);
}

std::optional<Pieces> ReceivedFile::take_pieces(unsigned takers) {
  const MutexLock lock(mutex_);
  while (next_ < got_.size() && !lacks_bytes(next_)) ++next_;
  if (next_ == got_.size()) return std::nullopt;
  const std::size_t share = (got_.size() - next_) / (std::size_t{2} * takers);
  const std::size_t count_max = std::clamp<std::size_t>(share, 1, kPiecesAtOnce);
  Pieces pieces{next_, 1};
  taken_[next_++] = true;
  while (pieces.count < count_max && next_ < got_.size() && lacks_bytes(next_) && got_[next_] == 0) {
    taken_[next_++] = true;
    ++pieces.count;
  }
  return pieces;
}

std::optional<Pieces> ReceivedFile::take_piece_at(std::uint64_t offset) {
  const MutexLock lock(mutex_);
  const std::size_t piece = offset / kPieceBytes;
  if (piece >= got_.size() || !lacks_bytes(piece)) return std::nullopt;
  taken_[piece] = true;
  return Pieces{piece, 1};
}

std::uint64_t ReceivedFile::arrived(std::uint64_t offset) const {
  const MutexLock lock(mutex_);
  if (closed_ || offset >= wanted_.size) return wanted_.size;
  std::uint64_t end = offset;
  for (std::size_t piece = offset / kPieceBytes; piece < got_.size(); ++piece) {
    end = std::max(end, piece * kPieceBytes + got_[piece]);
    if (got_[piece] < length_of(piece)) break;
  }
  return std::min(end, wanted_.size - 1);
}

Pieces ReceivedFile::all() const {
  const MutexLock lock(mutex_);
  return {0, got_.size()};
}

Range ReceivedFile::missing(Pieces pieces) const {
  if (pieces.count == 0) return {};
  const MutexLock lock(mutex_);
  const std::size_t last = pieces.first + pieces.count - 1;
  const std::uint64_t begin = pieces.first * kPieceBytes + got_[pieces.first];
  return {begin, last * kPieceBytes + length_of(last) - begin};
}

Status ReceivedFile::write(Pieces& pieces, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (pieces.count == 0) return Error{Errc::internal, fmt::format("{}: {} bytes too many", path_, bytes.size())};
    const Range here = missing({pieces.first, 1});
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), here.length));
    WEFT_CHECK(append(pieces.first, here.offset, part));
    bytes = bytes.subspan(part.size());
    if (part.size() < here.length) continue;
    WEFT_CHECK(note(pieces));
    ++pieces.first;
    --pieces.count;
  }
  return {};
}

Status ReceivedFile::append(std::size_t piece, std::uint64_t offset, std::span<const std::byte> bytes) {
  WEFT_CHECK(write_exact(fd_.get(), offset, bytes, path_));
  bool is_due = false;
  {
    const MutexLock lock(mutex_);
    got_[piece] += static_cast<std::uint32_t>(bytes.size());
    is_due = got_[piece] - noted_[piece] >= kNoteStep;
  }
  return is_due ? note({piece, 1}) : Status{};
}

void ReceivedFile::doubt() {
  doubtful_ = true;
}

// A piece counts as whole once its note says so: then this process needs the note no more, nor the file.
Status ReceivedFile::note(Pieces pieces) {
  if (pieces.count == 0) return {};
  const std::size_t piece = pieces.first;
  std::uint32_t got = 0, from = 0;
  {
    const MutexLock lock(mutex_);
    got = got_[piece];
    if (got == noted_[piece]) return {};
    from = noted_[piece];
  }
  start_writing(piece, from, got);
  WEFT_CHECK(write_received(note_, note_path_, piece, got));
  const MutexLock lock(mutex_);
  noted_[piece] = got;
  return {};
}

// Writes whole steps, and the end of the piece, so that no page is written twice. The sync of the import is then short.
void ReceivedFile::start_writing(std::size_t piece, std::uint32_t from, std::uint32_t end) const {
  const std::uint32_t begin = from / kWriteStep * kWriteStep;
  if (end != length_of(piece)) end = end / kWriteStep * kWriteStep;
  if (begin < end) start_writeback(fd_.get(), piece * kPieceBytes + begin, end - begin);
}

// All pieces are noted, so no other thread uses the descriptors any more.
ReceivedFile::Verdict ReceivedFile::close_whole() {
  const MutexLock lock(mutex_);
  for (std::size_t piece = 0; piece < noted_.size(); ++piece)
    if (noted_[piece] != length_of(piece)) return Verdict::incomplete;
  if (std::exchange(closed_, true)) return Verdict::incomplete;
  fd_.reset();
  note_.reset();
  return Verdict::whole;
}

Result<ReceivedFile::Verdict> ReceivedFile::hash_ready() {
  if (hashed_by_ == HashedBy::import) return close_whole();
  {
    const MutexLock lock(mutex_);
    if (hashing_) return Verdict::incomplete;
    hashing_ = true;
  }
  for (;;) {
    std::size_t piece = 0;
    bool all_hashed = false;
    {
      const MutexLock lock(mutex_);
      piece = hashed_;
      all_hashed = piece == noted_.size();
      hashing_ = all_hashed || noted_[piece] == length_of(piece);
      if (!hashing_) return Verdict::incomplete;
    }
    if (all_hashed) return verdict();  // hashing_ stays set: there is nothing more to hash
    WEFT_CHECK(hash_piece(piece));
    const MutexLock lock(mutex_);
    ++hashed_;
  }
}

// Reads the bytes again: mostly they are in the page cache.
Status ReceivedFile::hash_piece(std::size_t piece) {
  std::vector<std::byte> buffer(kHashStep);
  for (std::uint64_t at = 0; at < length_of(piece); at += kHashStep) {
    const auto step = std::span(buffer).first(std::min<std::uint64_t>(kHashStep, length_of(piece) - at));
    WEFT_CHECK(read_exact(fd_.get(), piece * kPieceBytes + at, step, path_));
    hash_->update(step);
  }
  return {};
}

// Closes the descriptors: the import takes a large file as it is only if no process can write to the file.
Result<ReceivedFile::Verdict> ReceivedFile::verdict() {
  const std::string expected = HubDigest::expected(wanted_);
  const std::string got = hash_->finish();
  if (got == expected) {
    fd_.reset();
    note_.reset();
    WEFT_CHECK(remove_file(note_path_));
    const MutexLock lock(mutex_);
    closed_ = true;
    return Verdict::verified;
  }
  const bool was_doubtful = doubtful_;
  WEFT_CHECK(restart());
  if (was_doubtful) return Verdict::restarted;
  return Error{Errc::corrupt,
               fmt::format("expected a file with the {} {}, got one with {}", HubDigest::name(wanted_), expected, got)};
}

// Receives into another file: an import whose process was killed may have made this one a pack of the store, and no
// byte of a pack may change. If this process is killed here, the next one finds no file that it could write into.
Status ReceivedFile::restart() {
  WEFT_CHECK(remove_file(path_));
  if (!note_.valid()) {
    WEFT_TRY(note_, open_file(note_path_, O_RDWR | O_CREAT, 0600));
  }
  WEFT_CHECK(resize_file(note_.get(), 0, note_path_));
  WEFT_TRY(fd_, open_file(path_, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (wanted_.size > 0) WEFT_CHECK(reserve());
  const MutexLock lock(mutex_);
  got_.assign(got_.size(), 0);
  noted_.assign(noted_.size(), 0);
  taken_.assign(taken_.size(), false);
  next_ = hashed_ = 0;
  hashing_ = false;
  doubtful_ = false;
  hash_ = std::make_unique<HubDigest>(wanted_);
  return {};
}

}  // namespace weft
