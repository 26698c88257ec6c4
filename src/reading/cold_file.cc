#include "reading/cold_file.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "blobs/open_blobs.h"
#include "os/sys.h"
#include "reading/memory_parts.h"
#include "reading/open_file.h"
#include "reading/reads_in_a_row.h"
#include "weft/bytes/run_list.h"
#include "weft/bytes/swarm.h"

namespace weft {
namespace {

// The best throughput of FUSE. From a faster source it is better to fetch the whole file first.
constexpr std::uint64_t kFuseBytesPerS = 2U << 30U;
constexpr std::uint64_t kFetchedWhole = 8U << 20U;  // if the rate of the source is unknown
constexpr std::uint64_t kFetchedAlways = 1U << 20U;
constexpr auto kFaultPause = std::chrono::milliseconds(200);  // between two attempts to fetch for a page fault
constexpr std::size_t kFaultsWaitingMax = 128;                // of all files; the threads of a server are bounded
constexpr auto kWaited = std::chrono::seconds(1);             // an error after such a wait reaches the reader
constexpr std::uint64_t kBegunMax = 64U << 10U;               // views up to this size are requested at open
constexpr std::uint64_t kWaitsPerS = 20;                      // a part takes about 50 ms; so may the whole file
// Read-ahead of a sequential reader: twice the bytes that it has read in a row, from kAheadMin to kAheadMax.
constexpr std::uint64_t kAheadMin = 2U << 20U;
constexpr std::uint64_t kAheadMax = 64U << 20U;
constexpr std::uint64_t kFetchStep = 16U << 20U;
constexpr int kEmptiedMax = 16;  // packs that the daemon empties before one read(2) has read them

// A run of this file that is contiguous in one pack or, if absent, in one published file.
struct ColdRun {
  std::uint64_t offset = 0;  // in this file
  std::uint64_t length = 0;
  OpenPlace place;  // no pack: the run was absent when the file was opened
  BlobHome home;
};

bool goes_on(const ColdRun& last, const ColdRun& next) {
  if (last.place.pack || next.place.pack)
    return last.place.pack == next.place.pack && last.place.offset + last.length == next.place.offset;
  const BlobHome& home = last.home;
  return home.version == next.home.version && home.file == next.home.file &&
         home.offset + last.length == next.home.offset;
}

// True if another attempt may find a source.
bool may_return(Errc code) {
  return code == Errc::timed_out || code == Errc::unreachable || code == Errc::not_found || code == Errc::absent ||
         code == Errc::busy;
}

// The page faults that wait for a source, of all files.
std::atomic<std::size_t> faults_waiting = 0;
class WaitingFault {
 public:
  WaitingFault() : fits_(faults_waiting.fetch_add(1, std::memory_order_relaxed) < kFaultsWaitingMax) {}
  ~WaitingFault() { faults_waiting.fetch_sub(1, std::memory_order_relaxed); }
  WaitingFault(const WaitingFault&) = delete;
  WaitingFault& operator=(const WaitingFault&) = delete;
  bool fits() const { return fits_; }

 private:
  const bool fits_;
};

// The places of the fetched bytes of one published file. Any thread.
class Brought {
 public:
  // Returns the piece that contains this byte.
  std::optional<Run> find(std::uint64_t offset) const {
    const std::lock_guard lock(mutex_);
    const auto at = run_at(pieces_, offset);
    return at == pieces_.end() || at->offset > offset ? std::nullopt : std::optional(*at);
  }

  // Bytes that pass have no place.
  void add(const std::vector<Run>& pieces) {
    const std::lock_guard lock(mutex_);
    for (Run piece : pieces) {
      if (piece.place.pack->id() == kPassingPack) continue;
      piece.place.pack = known(piece.place.pack);
      insert(piece);
    }
  }

 private:
  // Each answer of the daemon brings another descriptor of a pack: keeps one for each pack.
  const std::shared_ptr<const PackReader>& known(const std::shared_ptr<const PackReader>& pack) {
    const auto same = [&pack](const auto& one) { return one->id() == pack->id(); };
    if (const auto found = std::ranges::find_if(packs_, same); found != packs_.end()) return *found;
    return packs_.emplace_back(pack);
  }

  // Adds the part of a piece that is not known yet.
  void insert(const Run& piece) {
    auto at = run_at(pieces_, piece.offset);
    std::uint64_t begin = piece.offset;
    if (at != pieces_.end() && at->offset <= begin) begin = end_of(*at++);
    if (begin >= end_of(piece)) return;
    while (at != pieces_.end() && end_of(*at) <= end_of(piece)) at = pieces_.erase(at);
    const std::uint64_t end = at == pieces_.end() ? end_of(piece) : std::min(end_of(piece), at->offset);
    const Run added = part_of(piece, begin, end);
    if (at != pieces_.begin() && goes_on(*std::prev(at), added))
      std::prev(at)->length += added.length;
    else
      pieces_.insert(at, added);
  }

  mutable std::mutex mutex_;
  std::vector<Run> pieces_;  // by offset; guarded by mutex_, as is packs_
  std::vector<std::shared_ptr<const PackReader>> packs_;
};

class ColdFile final : public OpenFile {
 public:
  ColdFile(const Cold& cold, std::string where, std::string head)
      : cold_(cold), where_(std::move(where)), head_(std::move(head)), size_(head_.size()) {}

  void append(const ColdBlob& blob, OpenPlace place) {
    append_run(runs_, {size_, blob.id.length, std::move(place), blob.home});
    size_ += blob.id.length;
  }

  // Fetches all absent bytes.
  Status bring_all() {
    for (const ColdRun& run : runs_) {
      if (run.place.pack) continue;
      const std::uint64_t end = run.home.offset + run.length;
      for (std::uint64_t at = run.home.offset; at < end; at += kFetchStep) {
        const std::uint64_t step = std::min(kFetchStep, end - at);
        auto kept = bring(run, {at, step}, end - at - step, true);
        if (!kept.ok()) return std::move(kept).error();
      }
    }
    return {};
  }
  // Requests the only run, which is absent, without a wait. The first reader takes the bytes.
  void begin_all() {
    const ColdRun& run = runs_.front();
    begun_ =
        cold_.reads->begin({run.home.version, run.home.file, {run.home.offset, run.length}, 0, false, one_tensor_});
  }
  // Reads ahead to the end of the file from the first read on. Call it before the file is used.
  void bring_rest() { rest_too_ = true; }
  std::uint64_t absent_bytes() const {
    std::uint64_t bytes = 0;
    for (const ColdRun& run : runs_) bytes += run.place.pack ? 0 : run.length;
    return bytes;
  }

  std::uint64_t size() const override { return size_; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override;
  Result<MemoryParts> in_memory(std::uint64_t offset, std::size_t count) override;
  int backing_fd() const override;
  ReadMode mode() const override { return mode_; }
  void stream() { mode_ = ReadMode::streamed; }       // call it before the file is used
  void wait_in_faults() { waits_in_faults_ = true; }  // the same
  void begin_no_swarm() { one_tensor_ = true; }       // the same; the file is one small tensor

 private:
  // Fetches a range of the published file that contains `run`, and returns its runs there.
  Result<std::vector<Run>> bring(const ColdRun& run, Range range, std::uint64_t ahead, bool all) {
    const ColdRange wanted{run.home.version, run.home.file, range, ahead, all, one_tensor_};
    auto pieces = cold_.reads->bring(wanted);
    if (!pieces.ok() && is_waiting_fault(pieces.error())) pieces = bring_for_fault(wanted, std::move(pieces));
    if (pieces.ok()) gave_up_.store(false, std::memory_order_relaxed);
    if (!pieces.ok()) return failed(pieces.error());
    keep(run, *pieces);
    return pieces;
  }
  Error failed(const Error& error) const {
    return as_io(Error{error.code, fmt::format("{}: {}", where_, error.message)}).error();
  }
  // Remembers where fetched bytes are. Bytes that pass take memory, so only the last ones stay, for a reader of small
  // parts.
  void keep(const ColdRun& run, const std::vector<Run>& pieces) {
    brought(run).add(pieces);
    const auto passes = [](const Run& piece) { return piece.place.pack->id() == kPassingPack; };
    const auto last = std::find_if(pieces.rbegin(), pieces.rend(), passes);
    if (last == pieces.rend()) return;
    const std::lock_guard lock(mutex_);
    passing_ = {run.home.version, run.home.file, *last};
  }
  std::optional<Run> passing(const ColdRun& run, std::uint64_t at) const {
    const std::lock_guard lock(mutex_);
    if (!passing_.piece.place.pack || passing_.version != run.home.version || passing_.file != run.home.file) return {};
    const Run& piece = passing_.piece;
    return piece.offset <= at && at < end_of(piece) ? std::optional(piece) : std::nullopt;
  }
  // True if the daemon has emptied the pack of bytes that pass. The next piece_at() fetches the bytes again.
  bool drop_if_emptied(const Run& piece, const Status& read) {
    if (read.ok() || read.error().code != Errc::io || piece.place.pack->id() != kPassingPack) return false;
    const std::lock_guard lock(mutex_);
    if (passing_.piece.place.pack == piece.place.pack) passing_ = {};
    return true;
  }
  bool is_waiting_fault(const Error& error) const {
    return waits_in_faults_ && !gave_up_.load(std::memory_order_relaxed) && may_return(error.code) &&
           ColdWait::is_fault();
  }
  Result<std::vector<Run>> bring_for_fault(const ColdRange& wanted, Result<std::vector<Run>> failed);
  Status take_begun(const ColdRun& run);
  // Calls on_part(pack, offset in it, length) for each part of a run, in order. Fetches absent bytes.
  template <class OnPart>
  Status each_piece(const ColdRun& run, std::uint64_t within, std::size_t length, std::uint64_t ahead,
                    const OnPart& on_part);
  Result<Run> piece_at(const ColdRun& run, std::uint64_t at, std::uint64_t length, std::uint64_t ahead);
  std::uint64_t ahead_of(std::uint64_t offset, std::uint64_t length);
  Brought& brought(const ColdRun& run) {
    const std::lock_guard lock(mutex_);
    return brought_[{run.home.version, run.home.file}];
  }

  const Cold cold_;
  const std::string where_;
  const std::string head_;
  std::uint64_t size_;
  ReadMode mode_ = ReadMode::cached;
  bool rest_too_ = false;
  bool one_tensor_ = false;
  bool waits_in_faults_ = false;
  std::atomic<bool> gave_up_ = false;  // a fault waited in vain, and nothing was fetched since: others fail at once
  std::vector<ColdRun> runs_;          // in order, touching, from head_.size() to size_
  mutable std::mutex mutex_;
  std::map<std::pair<VersionId, std::uint32_t>, Brought> brought_;  // mutex_ guards the map, not its values
  ReadsInARow reads_;
  std::unique_ptr<ColdReads::Begun> begun_;  // guarded by mutex_, as is passing_
  struct Passing {
    VersionId version = 0;
    std::uint32_t file = 0;
    Run piece;  // no pack: none
  };
  Passing passing_;  // the last bytes that came and are not kept
};

// Returns how many bytes to fetch behind a read: none after a jump, more and more for a sequential reader.
std::uint64_t ColdFile::ahead_of(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t in_a_row = reads_.note(offset, length);
  if (rest_too_) return size_;
  const std::uint64_t ahead = std::min(2 * in_a_row, kAheadMax);
  return ahead < kAheadMin ? 0 : ahead;
}

// Fetches again until a source returns, the reader ends, or a fault of this file has waited for kFaultWaitMax. The
// kernel asks twice for a page that it does not get, and the second fault must not wait as long again.
Result<std::vector<Run>> ColdFile::bring_for_fault(const ColdRange& wanted, Result<std::vector<Run>> failed) {
  const WaitingFault waiting;
  if (!waiting.fits()) return failed;
  log_warning("{}: a mapping waits up to {} s for a source: {}", where_, kFaultWaitMax.count(), failed.error().message);
  const auto end = std::chrono::steady_clock::now() + kFaultWaitMax;
  while (!failed.ok() && is_waiting_fault(failed.error())) {
    if (std::chrono::steady_clock::now() >= end) gave_up_.store(true, std::memory_order_relaxed);
    if (!ColdWait::is_wanted()) return Error{Errc::cancelled, "no longer wanted"};
    std::this_thread::sleep_for(kFaultPause);
    failed = cold_.reads->bring(wanted);
  }
  return failed;
}

// Takes the result of begin_all(), once. An error that took less than kWaited is dropped: the caller fetches again. The
// same for a fault that waits.
Status ColdFile::take_begun(const ColdRun& run) {
  std::unique_ptr<ColdReads::Begun> begun;
  {
    const std::lock_guard lock(mutex_);
    begun = std::move(begun_);
  }
  if (!begun) return {};
  const auto since = std::chrono::steady_clock::now();
  auto pieces = begun->take();
  if (pieces.ok()) keep(run, *pieces);
  if (pieces.ok() || std::chrono::steady_clock::now() < since + kWaited) return {};
  if (is_waiting_fault(pieces.error())) return {};
  return failed(pieces.error());
}

Result<Run> ColdFile::piece_at(const ColdRun& run, std::uint64_t at, std::uint64_t length, std::uint64_t ahead) {
  WEFT_CHECK(take_begun(run));
  Brought& brought = this->brought(run);
  if (auto piece = brought.find(at)) return *std::move(piece);
  if (auto piece = passing(run, at)) return *std::move(piece);
  const std::uint64_t rest = run.home.offset + run.length - at;
  const std::uint64_t now = std::min({length, rest, kPassMax});
  const std::uint64_t later = std::min(std::max(ahead, length - now), rest - now);
  WEFT_TRY(const std::vector<Run> pieces, bring(run, {at, now}, later, false));
  if (auto piece = brought.find(at)) return *std::move(piece);
  if (const auto piece = run_at(pieces, at); piece != pieces.end() && piece->offset <= at) return *piece;
  return Error{Errc::internal, where_ + ": the fetched bytes are missing"};
}

template <class OnPart>
Status ColdFile::each_piece(const ColdRun& run, std::uint64_t within, std::size_t length, std::uint64_t ahead,
                            const OnPart& on_part) {
  if (run.place.pack) return on_part(*run.place.pack, run.place.offset + within, length);
  for (int emptied = 0; length > 0;) {
    const std::uint64_t at = run.home.offset + within;
    WEFT_TRY(const Run piece, piece_at(run, at, length, ahead));
    const std::uint64_t left = piece.offset + piece.length - at;
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(length, left));
    Status done = on_part(*piece.place.pack, piece.place.offset + (at - piece.offset), part);
    if (drop_if_emptied(piece, done) && ++emptied < kEmptiedMax) continue;
    WEFT_CHECK(std::move(done));
    length -= part;
    within += part;
  }
  return {};
}

Result<std::size_t> ColdFile::read(std::uint64_t offset, std::span<std::byte> out) {
  if (offset >= size_ || out.empty()) return std::size_t{0};
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - offset));
  const std::uint64_t ahead = ahead_of(offset, count);
  const auto read_run = [&](const ColdRun& run, std::uint64_t within, std::span<std::byte> part) {
    return each_piece(run, within, part.size(), ahead,
                      [&part, this](const PackReader& pack, std::uint64_t at, std::size_t length) -> Status {
                        WEFT_CHECK(read_exact(pack.fd(), at, part.first(length), where_));
                        part = part.subspan(length);
                        return {};
                      });
  };
  WEFT_CHECK(read_runs(head_, runs_, offset, out.first(count), read_run));
  return count;
}

Result<MemoryParts> ColdFile::in_memory(std::uint64_t offset, std::size_t count) {
  if (offset >= size_ || count == 0) return MemoryParts();
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, size_ - offset));
  const std::uint64_t ahead = ahead_of(offset, count);
  return memory_parts(head_, runs_, offset, count,
                      [&](MemoryParts& parts, const ColdRun& run, std::uint64_t within, std::size_t length) {
                        return each_piece(
                            run, within, length, ahead,
                            [&parts](const PackReader& pack, std::uint64_t at, std::size_t part) -> Status {
                              // Nobody keeps bytes that pass in memory while a reader copies them.
                              if (pack.id() == kPassingPack) return Error{Errc::absent, "not kept"};
                              return add_present(parts, pack, at, part);
                            });
                      });
}

// Returns the file of the pack that the bytes were fetched into, if it equals this file.
int ColdFile::backing_fd() const {
  if (!head_.empty() || runs_.size() != 1 || runs_.front().place.pack || runs_.front().home.offset != 0) return -1;
  const std::lock_guard lock(mutex_);
  const auto found = brought_.find({runs_.front().home.version, runs_.front().home.file});
  if (found == brought_.end()) return -1;
  const auto piece = found->second.find(0);
  if (!piece || piece->offset != 0 || piece->length < size_ || piece->place.offset != 0) return -1;
  return piece->place.pack->size() == size_ ? piece->place.pack->fd() : -1;
}

// The mount's options decide first, then the node's advice.
ColdAdvice advice_for(const Cold& cold) {
  ColdAdvice advice = cold.policy == ColdPolicy::stream ? ColdAdvice() : cold.reads->advice();
  advice.policy = cold.policy.value_or(advice.policy);
  return advice;
}

// A file that the node has no space to keep is streamed, whatever the policy.
bool waits_for_all(const ColdAdvice& advice, std::uint64_t absent_bytes) {
  if (absent_bytes > advice.keeps) return false;
  if (advice.policy != ColdPolicy::automatic) return advice.policy == ColdPolicy::fetch;
  return fetch_pays(absent_bytes, advice.bytes_per_s);
}

// Returns false if a fetch of all bytes found no space. Readers then fetch the rest of the file as they need it.
Result<bool> is_kept(Status fetched) {
  if (fetched.ok()) return true;
  if (fetched.error().code == Errc::no_space) return false;
  return std::move(fetched).error();
}

}  // namespace

bool fetch_pays(std::uint64_t absent_bytes, std::uint64_t bytes_per_s) {
  if (bytes_per_s == 0) return absent_bytes <= kFetchedWhole;
  return bytes_per_s >= kFuseBytesPerS || absent_bytes <= std::max(kFetchedAlways, bytes_per_s / kWaitsPerS);
}

Status as_io(Status status) {
  if (status.ok() || status.error().code == Errc::no_space || status.error().code == Errc::cancelled) return status;
  return Error{Errc::io, status.error().message};
}

Result<std::shared_ptr<OpenFile>> open_cold(Store& store, const Cold& cold, std::string where, std::string head,
                                            std::span<const ColdBlob> blobs, ReadFor read_for) {
  std::vector<ContentId> ids;
  for (const ColdBlob& blob : blobs) ids.push_back(blob.id);
  auto places = open_present_blobs(store, ids);
  if (!places.ok()) return error_at(where, std::move(places).error());
  auto file = std::make_shared<ColdFile>(cold, std::move(where), std::move(head));
  for (std::size_t i = 0; i < blobs.size(); ++i) file->append(blobs[i], std::move(*places)[i]);
  const std::uint64_t absent = file->absent_bytes();
  const ColdAdvice advice = absent > 0 ? advice_for(cold) : ColdAdvice();
  if (advice.policy == ColdPolicy::automatic) file->wait_in_faults();
  bool is_whole = absent > 0 && waits_for_all(advice, absent);
  if (is_whole) {
    WEFT_TRY(is_whole, is_kept(file->bring_all()));
  }
  if (!is_whole && read_for == ReadFor::tensors && absent >= kStreamedMin) file->stream();
  return std::shared_ptr<OpenFile>(std::move(file));
}

Result<std::shared_ptr<OpenFile>> open_absent_blob(const Cold& cold, std::string where, std::string head,
                                                   const ColdBlob& blob) {
  auto file = std::make_shared<ColdFile>(cold, std::move(where), std::move(head));
  file->append(blob, {});
  if (blob.id.length <= kSwarmBytesMin) file->begin_no_swarm();
  const ColdAdvice advice = advice_for(cold);
  if (advice.policy == ColdPolicy::automatic) file->wait_in_faults();
  const bool is_small = advice.policy != ColdPolicy::fetch && blob.id.length > 0 && blob.id.length <= kBegunMax;
  if (is_small) file->begin_all();
  const bool waits = !is_small && blob.id.length > 0 && waits_for_all(advice, blob.id.length);
  if (waits && advice.policy == ColdPolicy::fetch) WEFT_CHECK(is_kept(file->bring_all()));
  if (waits) file->bring_rest();
  return std::shared_ptr<OpenFile>(std::move(file));
}

}  // namespace weft
