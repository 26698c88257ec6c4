#include "origin/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bounded_calls.h"
#include "blobs/read_memory.h"
#include "os/entries.h"
#include "os/sys.h"
#include "pace/pace_gate.h"
#include "weft/cluster/origin.h"

namespace weft {
namespace {

constexpr auto kForgetPatience = std::chrono::seconds(1);
constexpr unsigned kSmallReads = 4;  // at once; their threads may be left behind in calls that hang
constexpr unsigned kLargeReads = 2;  // at once; they have their own threads

class OriginSource final : public BlobSource {
 public:
  OriginSource(std::string path, std::shared_ptr<PaceGate> gate)
      : gate_(gate ? std::move(gate) : std::make_shared<PaceGate>()),
        calls_(std::make_shared<BoundedCalls>("origin " + path, kSmallReads)),
        large_reads_(std::make_shared<BoundedCalls>("origin " + path, kLargeReads)),
        reader_(std::make_shared<OriginReader>(std::move(path))) {}

  std::string_view name() const override { return "origin"; }
  bool reads_named() const override { return true; }
  Result<std::vector<std::byte>> manifest(const Digest& digest, Deadline deadline) override {
    return calls_->call<std::vector<std::byte>>([reader = reader_, digest] { return reader->manifest(digest); },
                                                deadline);
  }
  Result<std::vector<Digest>> chunks(const Digest& manifest, const ContentId& id, Deadline deadline) override {
    return calls_->call<std::vector<Digest>>([reader = reader_, manifest, id] { return reader->chunks(manifest, id); },
                                             deadline);
  }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    std::uint64_t size = 0;
    for (const ChunkRun& run : runs) size += run.length();
    auto& calls = size < kLargeOriginRead ? calls_ : large_reads_;
    PaceGate::Read paced(*gate_, aid.traffic, PaceEnd::origin, aid.is_waited_for);
    if (paced.is_held()) return read_paced(manifest, {runs.begin(), runs.end()}, size, deadline, aid, paced);
    auto got = calls->call<SourceBytes>([reader = reader_, manifest, wanted = std::vector(runs.begin(), runs.end()),
                                         kept = aid.kept] { return reader->read(manifest, wanted, kept); },
                                        deadline);
    if (got.ok()) paced.owe(size - std::min<std::uint64_t>(size, aid.kept.bytes));
    return got;
  }
  bool refuted(std::uint32_t /*giver*/) override {
    const auto again =
        calls_->call<bool>([reader = reader_] { return Result<bool>(reader->forget()); }, deadline_in(kForgetPatience));
    return again.ok() && *again;
  }

 private:
  // Reads piece by piece, each of which has the patience of a read. A piece waits for its turn on the caller's thread,
  // so that it keeps none of the few that readers need.
  Result<SourceBytes> read_paced(const Digest& manifest, const std::vector<ChunkRun>& runs, std::uint64_t size,
                                 Deadline deadline, ReadAid& aid, PaceGate::Read& paced) {
    if (size > kSourceReadMax) return Error{Errc::internal, "a read of too many bytes at once"};
    const auto patience = deadline - Deadline::clock::now();
    SourceBytes out{take_read_memory(size), size, origin_givers(runs, aid.kept)};
    if (aid.kept.bytes > 0) std::memcpy(out.memory.get(), aid.kept.memory.get(), aid.kept.bytes);
    for (std::size_t at = aid.kept.bytes; at < size;) {
      const std::size_t piece = paced.piece(size - at);
      std::chrono::nanoseconds held{0};
      WEFT_CHECK(paced.take_turn(piece, held, [&aid]() -> Status {
        if (!aid.is_wanted || aid.is_wanted()) return {};
        return Error{Errc::cancelled, "origin: the bytes are no longer wanted"};
      }));
      aid.held += held;
      const OriginPart part{out.memory, at, at + piece};
      const auto came = large_reads_->call<bool>(
          [reader = reader_, manifest, runs, part]() -> Result<bool> {
            WEFT_CHECK(reader->read_part(manifest, runs, part));
            return true;
          },
          Deadline::clock::now() + patience);
      if (!came.ok()) return came.error();
      at += piece;
    }
    return out;
  }

  const std::shared_ptr<PaceGate> gate_;
  std::shared_ptr<BoundedCalls> calls_;
  std::shared_ptr<BoundedCalls> large_reads_;  // few threads: reads finish one by one instead of all late
  std::shared_ptr<OriginReader> reader_;       // shared with calls that hang
};

Status check_usable(const std::string& path, const std::string& known, const std::string& cluster) {
  if (const auto st = stat_file(path); !st.ok()) return Error{st.error().code, "origin " + st.error().message};
  const auto there = OriginDir::open_existing(path);
  const bool none = !there.ok() && there.error().code == Errc::not_found;
  if (!there.ok() && !none) return there.error();
  if (!known.empty() || (there.ok() && !cluster.empty())) WEFT_CHECK(OriginDir::open_known(path, known, cluster));
  const Status writable = may_write_directory(none ? path : path + "/tmp");
  return writable.ok() ? writable : Status{Error{writable.error().code, "origin " + writable.error().message}};
}

}  // namespace

Status check_origin(const std::string& path, const std::string& known, const std::string& cluster,
                    std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  const auto checked = calls.call<bool>(
      [path, known, cluster]() -> Result<bool> {
        WEFT_CHECK(check_usable(path, known, cluster));
        return true;
      },
      deadline_in(patience));
  return checked.ok() ? Status{} : Status{checked.error()};
}

std::shared_ptr<BlobSource> origin_source(std::string path, std::shared_ptr<PaceGate> gate) {
  return std::make_shared<OriginSource>(std::move(path), std::move(gate));
}

Result<bool> is_at_origin(const std::string& path, const std::string& known, const std::string& cluster,
                          const Digest& manifest, std::chrono::milliseconds patience) {
  WEFT_TRY(const auto lacking, lacking_at_origin(path, known, cluster, {manifest}, patience));
  return lacking.empty();
}

Result<std::vector<Digest>> lacking_at_origin(const std::string& path, const std::string& known,
                                              const std::string& cluster, std::vector<Digest> manifests,
                                              std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  return calls.call<std::vector<Digest>>(
      [path, known, cluster, asked = std::move(manifests)]() -> Result<std::vector<Digest>> {
        WEFT_TRY(const OriginDir dir, OriginDir::open_known(path, known, cluster));
        std::vector<Digest> lacking = asked;
        std::erase_if(lacking, [&](const Digest& one) { return dir.holds(one); });
        std::ranges::sort(lacking);
        return lacking;
      },
      deadline_in(patience));
}

Result<OriginTotals> origin_totals(const std::string& path, std::chrono::milliseconds patience) {
  BoundedCalls calls("origin " + path, 1);
  return calls.call<OriginTotals>(
      [path]() -> Result<OriginTotals> {
        WEFT_TRY(const OriginDir dir, OriginDir::open_existing(path));
        return dir.totals();
      },
      deadline_in(patience));
}

}  // namespace weft
