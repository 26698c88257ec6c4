#include "node/peer_source.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "node/peer_read.h"
#include "node/read_memory.h"
#include "store/hash.h"

namespace weft {
namespace {

using Clock = PeerLinks::Clock;
using std::chrono::milliseconds;

constexpr std::size_t kTriesMax = 3;  // peers that are asked for one run
constexpr auto kBusyWait = milliseconds(20);
constexpr auto kBusyMax = std::chrono::seconds(10);  // that everybody may have too much to do, and give nothing
constexpr auto kMovedMax = std::chrono::seconds(2);  // after that, since who has too much to do gave something

milliseconds left(Deadline deadline) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
}

std::uint64_t chunks_in(std::span<const ChunkRun> runs) {
  return std::accumulate(runs.begin(), runs.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const ChunkRun& run) { return sum + run.count; });
}

Status compare_sums(std::span<const ChunkRun> runs, std::span<const std::byte> bytes, std::span<const Hash128> sums) {
  std::size_t chunk = 0;
  for (const ChunkRun& run : runs)
    for (std::uint64_t left = run.length(); left > 0; ++chunk) {
      const auto part = bytes.first(std::min(kDigestChunk, left));
      if (xxh3_128(part) != sums[chunk])
        return Error{Errc::corrupt,
                     fmt::format("peer: a chunk of the blob {} differs from its sum", to_hex(run.id.root))};
      bytes = bytes.subspan(part.size());
      left -= part.size();
    }
  return {};
}

Error nobody_has(std::string_view what) {
  return Error{Errc::not_found, fmt::format("no peer has {}", what)};
}

}  // namespace

// One read, from wherever its bytes are; it goes forward through the runs.
class PeerSource::Reading {
 public:
  Reading(PeerSource& source, const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline, ReadAid& aid)
      : source_(source), manifest_(manifest), runs_(runs), patience_(left(deadline)), aid_(aid) {
    for (const ChunkRun& run : runs) out_.size += run.length();
    out_.summed = source.sums_;
  }

  Result<SourceBytes> run() {
    if (out_.size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", out_.size)};
    place();
    while (run_ < runs_.size()) {
      if (yielded_) return failure_;
      const auto candidates = source_.candidates(manifest_, &runs_[run_], asked_);
      const bool again = failures_ < kTriesMax;
      const auto choice = again ? source_.links_.take(candidates, tried_) : std::nullopt;
      if (choice) {
        step(*choice);
      } else if (again && source_.links_.may_come(candidates, tried_, moved_since())) {
        source_.links_.wait(Clock::now() + kBusyWait);
      } else if (!std::exchange(asked_, true)) {
        source_.news_.ask(manifest_);  // somebody else may have it by now
      } else {
        return failure_.code == Errc::internal ? nobody_has(to_hex(runs_[run_].id.root)) : failure_;
      }
    }
    return std::move(out_);
  }

 private:
  void place() {
    std::shared_ptr<std::byte[]> memory = take_read_memory(out_.size);
    auto landing = source_.exchange_.register_landing({memory.get(), out_.size}, memory);
    target_.landing = landing.ok() ? *std::move(landing) : nullptr;
    out_.memory = std::move(memory);
  }

  // What comes next for this peer: no more than is good to ask for at once.
  std::vector<ChunkRun> next_runs(const PeerLinks::Choice& choice) const {
    std::vector<ChunkRun> asked;
    std::uint64_t room = choice.bytes_max;
    for (std::size_t i = run_; i < runs_.size() && asked.size() < kRunsPerRequest; ++i) {
      ChunkRun part = runs_[i];
      const std::uint64_t done = i == run_ ? chunks_ : 0;
      part.first += done;
      part.count = std::min(part.count - done, std::max<std::uint64_t>(room / kDigestChunk, asked.empty() ? 1 : 0));
      if (part.count == 0 && part.id.length <= room) part.count = 1;
      if (part.count == 0 || (!asked.empty() && !may_have(choice.node, runs_[i]))) break;
      asked.push_back(part);
      room -= std::min(room, part.length());
      if (part.count + done < runs_[i].count) break;
    }
    return asked;
  }

  bool may_have(const std::string& node, const ChunkRun& run) const {
    const auto candidates = source_.view_.candidates(manifest_, &run);
    return std::ranges::find(candidates, node, &PeerCandidate::node) != candidates.end();
  }

  void step(const PeerLinks::Choice& choice) {
    const auto asked = next_runs(choice);
    std::uint64_t size = 0;
    for (const ChunkRun& run : asked) size += run.length();
    const auto begin = Clock::now();
    // What came before would be lost.
    const bool is_refusable = aid_.yields && choice.waits && done_ == 0;
    Status read = read_from(choice, asked, size, is_refusable);
    source_.links_.done(choice.number, read.ok() ? size : 0, Clock::now() - begin, read.ok() ? nullptr : &read.error());
    if (read.ok()) return advance(asked, size, choice.number);
    failure_ = std::move(read).error();
    if (is_refusable && (failure_.code == Errc::busy || failure_.code == Errc::exists)) {
      source_.links_.full(choice.number);
      if (failure_.code == Errc::exists) source_.view_.yield(asked.front());
      yielded_ = true;
      return;
    }
    const bool has_none = failure_.code == Errc::not_found;  // says so at once; there may be many of these
    const bool was_behind = was_behind_since(choice.number, begin);
    if (has_none)
      for (const ChunkRun& run : asked) source_.view_.lacks(manifest_, &run, choice.node);
    if (!has_none && !was_behind) ++failures_;
    if (!was_behind) tried_.push_back(choice.number);
    if (target_.spoiled) leave_landing();
    if (aid_.moved) aid_.moved();
  }

  // Who is waited for: anybody at first, then only those who give to other reads of this node.
  Clock::time_point moved_since() const { return Clock::now() < end_ ? Clock::time_point{} : Clock::now() - kMovedMax; }

  // It only had too much on its way: until kBusyMax is over it is asked again.
  bool was_behind_since(std::uint32_t peer, Clock::time_point asked) const {
    return failure_.code == Errc::timed_out && asked <= end_ && source_.links_.moved_since(peer, asked);
  }

  Status read_from(const PeerLinks::Choice& from, const std::vector<ChunkRun>& asked, std::uint64_t size,
                   bool is_refusable) {
    const auto address = source_.links_.address(from.node);
    if (!address) return Error{Errc::unreachable, fmt::format("peer {}: is no member any more", from.node)};
    const auto moved = [&] {
      source_.links_.moved(from.number);
      if (aid_.moved) aid_.moved();
    };
    const auto request = encode_request(AskBytes{asked, out_.summed, is_refusable && from.sought, is_refusable});
    WEFT_TRY(Answer answer, source_.exchange_.call(*address, request, deadline_in(patience_)));
    target_.memory = {out_.memory.get() + done_, size};
    PeerTarget part = target_;
    part.at += done_;
    part.prefix = out_.summed ? chunks_in(asked) * kSumBytes : 0;
    Status read = read_answer(source_.exchange_, answer, part, {patience_, moved});
    target_.spoiled = part.spoiled;
    if (!read.ok() || !out_.summed) return read;
    return compare_sums(asked, target_.memory, decode_sums(answer.head().first(part.prefix)));
  }

  void advance(const std::vector<ChunkRun>& asked, std::uint64_t size, std::uint32_t giver) {
    for (const ChunkRun& run : asked) {
      out_.givers.insert(out_.givers.end(), run.count, giver);
      chunks_ += run.count;
      if (chunks_ < runs_[run_].count) continue;
      ++run_;
      chunks_ = 0;
    }
    done_ += size;
    tried_.clear();
    failures_ = 0;
  }

  // What is given up may still write there: what has come goes on elsewhere.
  void leave_landing() {
    const auto before = out_.memory;
    target_.spoiled = false;
    place();
    std::memcpy(out_.memory.get(), before.get(), done_);
  }

  PeerSource& source_;
  const Digest& manifest_;
  const std::span<const ChunkRun> runs_;
  const milliseconds patience_;
  const Deadline end_ = Clock::now() + kBusyMax;
  ReadAid& aid_;
  SourceBytes out_;
  PeerTarget target_;
  std::size_t run_ = 0;               // the next
  std::uint64_t chunks_ = 0;          // of it that are here
  std::uint64_t done_ = 0;            // bytes
  std::vector<std::uint32_t> tried_;  // for what comes next
  std::size_t failures_ = 0;          // of these, by other than not having it
  bool asked_ = false;                // who else has it
  bool yielded_ = false;              // to other nodes
  Error failure_{Errc::internal, ""};
};

Result<SourceBytes> PeerSource::read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                     ReadAid& aid) {
  return Reading(*this, manifest, runs, deadline, aid).run();
}

Result<std::vector<std::byte>> PeerSource::ask(const std::string& node, const PeerRequest& request, Deadline deadline) {
  const auto address = links_.address(node);
  if (!address) return Error{Errc::unreachable, fmt::format("peer {}: is no member any more", node)};
  WEFT_TRY(Answer answer, exchange_.call(*address, encode_request(request), deadline));
  return answer_bytes(exchange_, answer, kSourceReadMax, {left(deadline), {}});
}

// Where all that are known were silent or wrong a moment ago, somebody else may have it: asked once.
std::vector<PeerCandidate> PeerSource::candidates(const Digest& manifest, const ChunkRun* run, bool& asked) {
  auto known = view_.candidates(manifest, run);
  if (asked || links_.readiness(known) != Readiness::lacking) return known;
  asked = true;
  news_.ask(manifest);
  return view_.candidates(manifest, run);
}

// One after the other, each with its share of the time that is left.
template <class T>
Result<T> PeerSource::from_any(const Digest& manifest, const ChunkRun* run, Deadline deadline,
                               const std::function<Result<T>(const std::string& node, Deadline deadline)>& ask) {
  Error last = nobody_has(fmt::format("manifest {}", to_hex(manifest)));
  std::vector<std::uint32_t> tried;
  bool asked = false;
  const Deadline end = Clock::now() + kBusyMax;
  for (std::size_t tries = 0; tries < kTriesMax;) {
    auto choice = links_.take(candidates(manifest, run, asked), tried, PeerLinks::Size::question);
    if (!choice) {  // somebody else may have it by now
      news_.ask(manifest);
      choice = links_.take(view_.candidates(manifest, run), tried, PeerLinks::Size::question);
    }
    if (!choice) {  // or the same may answer now
      ++tries;
      tried.clear();
      choice = links_.take(view_.candidates(manifest, run), tried, PeerLinks::Size::question);
    }
    if (!choice) break;
    const auto share = std::max(milliseconds(500), left(deadline) / (tries + 1 < kTriesMax ? 2 : 1));
    const auto begin = Clock::now();
    auto got = ask(choice->node, begin + share);
    links_.done(choice->number, 0, Clock::now() - begin, got.ok() ? nullptr : &got.error());
    if (got.ok()) return got;
    last = std::move(got).error();
    if (last.code == Errc::timed_out && begin < end && links_.moved_since(choice->number, begin)) continue;
    if (last.code != Errc::not_found) ++tries;
    if (run == nullptr && last.code == Errc::not_found) view_.lacks(manifest, run, choice->node);
    tried.push_back(choice->number);
  }
  return last;
}

Result<std::vector<std::byte>> PeerSource::manifest(const Digest& digest, Deadline deadline) {
  return from_any<std::vector<std::byte>>(
      digest, nullptr, deadline, [&](const std::string& node, Deadline share) -> Result<std::vector<std::byte>> {
        std::vector<std::byte> bytes;
        for (;;) {
          WEFT_TRY(const auto part, ask(node, AskManifest{digest, bytes.size()}, share));
          bytes.insert(bytes.end(), part.begin(), part.end());
          if (part.size() < kSourceReadMax) return bytes;
          if (bytes.size() > limits::kManifestMax) return Error{Errc::corrupt, "peer: a manifest without an end"};
        }
      });
}

Result<std::vector<Digest>> PeerSource::chunks(const Digest& manifest, const ContentId& id, Deadline deadline) {
  const ChunkRun whole{id, 0, chunk_count(id.length)};
  return from_any<std::vector<Digest>>(
      manifest, &whole, deadline, [&](const std::string& node, Deadline share) -> Result<std::vector<Digest>> {
        std::vector<Digest> digests;
        while (digests.size() < whole.count) {
          const std::uint64_t count = std::min(kDigestsAtOnceMax, whole.count - digests.size());
          WEFT_TRY(const auto bytes, ask(node, AskChunks{{id, digests.size(), count}}, share));
          WEFT_TRY(const auto part, decode_digests(bytes));
          if (part.size() != count)
            return Error{Errc::corrupt, fmt::format("peer: expected {} digests, got {}", count, part.size())};
          digests.insert(digests.end(), part.begin(), part.end());
        }
        return digests;
      });
}

void PeerSource::expect(const VersionRow& version, const Manifest* manifest, std::span<const ContentId> blobs) {
  view_.expect(version, manifest, blobs);
  news_.expect(version.manifest);
  // Who published it is asked without delay; where nobody is known, somebody may have it all the same.
  if (links_.readiness(view_.candidates(version.manifest, nullptr)) == Readiness::lacking) news_.ask(version.manifest);
}

void PeerSource::arrived(const Digest& manifest, std::span<const ChunkRun> runs) {
  news_.arrived(manifest, runs);
}

Readiness PeerSource::readiness(const Digest& manifest, std::span<const ChunkRun> runs) {
  const ChunkRun* run = runs.empty() ? nullptr : &runs.front();
  const Readiness readiness = links_.readiness(view_.candidates(manifest, run));
  return readiness == Readiness::dear && run != nullptr && view_.yielded(*run) ? Readiness::busy : readiness;
}

std::size_t PeerSource::givers(const Digest& manifest, const ChunkRun& run) {
  return view_.candidates(manifest, &run).size();
}

bool PeerSource::refuted(std::uint32_t giver) {
  links_.refuted(giver);
  return true;
}

}  // namespace weft
