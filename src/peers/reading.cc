// One read of bytes by a PeerSource.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "peers/read.h"
#include "peers/source.h"

namespace weft {

// Goes forward through the runs. Each request is for as much as its peer gives at a good rate, from the first byte on
// that is missing.
class PeerSource::Reading {
 public:
  Reading(PeerSource& source, const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline, ReadAid& aid)
      : source_(source),
        search_(source.scene_, manifest, PeerSearch::Wanted::bytes, deadline, aid.yields),
        runs_(runs),
        aid_(aid) {
    for (const ChunkRun& run : runs) out_.size += run.length();
  }

  Result<SourceBytes> run() {
    if (out_.size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", out_.size)};
    while (run_ < runs_.size())
      WEFT_CHECK(search_.run(&runs_[run_], [this](PeerSearch::Try& from) { return read_some(from); }));
    return std::move(out_);
  }

 private:
  void place() {
    ReadBlocks::Block block = source_.blocks_->take(out_.size);
    target_.landing = std::move(block.landing);
    out_.memory = std::move(block.memory);
  }

  // No more than is good to ask this peer for at once.
  std::vector<ChunkRun> next_runs(const PeerLinks::Choice& peer) const {
    std::vector<ChunkRun> asked;
    std::uint64_t room = peer.bytes_max;
    for (std::size_t i = run_; i < runs_.size() && asked.size() < kRunsPerRequest; ++i) {
      ChunkRun part = runs_[i];
      const std::uint64_t done = i == run_ ? chunks_ : 0;
      part.first += done;
      part.count = std::min(part.count - done, std::max<std::uint64_t>(room / kDigestChunk, asked.empty() ? 1 : 0));
      if (part.count == 0 && part.id.length <= room) part.count = 1;
      if (part.count == 0 || (!asked.empty() && !search_.may_have(peer.node, runs_[i]))) break;
      asked.push_back(part);
      room -= std::min(room, part.length());
      if (part.count + done < runs_[i].count) break;
    }
    return asked;
  }

  Status read_some(PeerSearch::Try& from) {
    auto asked = next_runs(from.peer);
    Status read = read_from(from, asked);
    if (!read.ok() && read.error().code == Errc::not_found && asked.size() > 1) {  // it may have the first of them
      asked.resize(1);
      read = read_from(from, asked);
    }
    if (read.ok()) {
      advance(asked, from);
      return {};
    }
    if (target_.spoiled) leave_landing();
    if (aid_.moved) aid_.moved();  // the reader waits for the next peer
    return read;
  }

  Status read_from(PeerSearch::Try& from, const std::vector<ChunkRun>& asked) {
    from.bytes = 0;
    for (const ChunkRun& run : asked) from.bytes += run.length();
    const AskBytes request{asked, from.may_refuse && from.peer.sought, from.may_refuse};
    WEFT_TRY(Answer answer, source_.call(from, request));
    if (answer.windows() == 0) return bring(from, answer);
    const auto turn = source_.links_.turn(from.peer.number);
    return bring(from, answer);
  }

  // Memory is taken once there is something to come to it.
  Status bring(const PeerSearch::Try& from, Answer& answer) {
    if (!out_.memory) place();
    target_.memory = {out_.memory.get() + done_, from.bytes};
    PeerTarget part = target_;
    part.at += done_;
    const auto moved = [&] {
      source_.links_.moved(from.peer.number);
      search_.came();
      if (aid_.moved) aid_.moved();
    };
    Status read = read_answer(source_.exchange_, answer, part, {from.patience, moved});
    target_.spoiled = part.spoiled;
    return read;
  }

  void advance(const std::vector<ChunkRun>& asked, const PeerSearch::Try& from) {
    for (const ChunkRun& run : asked) {
      out_.givers.insert(out_.givers.end(), run.count, from.peer.number);
      chunks_ += run.count;
      if (chunks_ < runs_[run_].count) continue;
      ++run_;
      chunks_ = 0;
    }
    done_ += from.bytes;
  }

  // A read that was given up may still write to the old memory.
  void leave_landing() {
    const auto before = out_.memory;
    target_.spoiled = false;
    place();
    std::memcpy(out_.memory.get(), before.get(), done_);
  }

  PeerSource& source_;
  PeerSearch search_;
  const std::span<const ChunkRun> runs_;
  ReadAid& aid_;
  SourceBytes out_;
  PeerTarget target_;
  std::size_t run_ = 0;       // the next
  std::uint64_t chunks_ = 0;  // of it that are here
  std::uint64_t done_ = 0;    // bytes
};

Result<SourceBytes> PeerSource::read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                     ReadAid& aid) {
  return Reading(*this, manifest, runs, deadline, aid).run();
}

}  // namespace weft
