// One read of a PeerSource.
#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "blobs/read_memory.h"
#include "peers/read.h"
#include "peers/source_impl.h"

namespace weft {
namespace {

using Clock = PeerLinks::Clock;
using std::chrono::milliseconds;

constexpr auto kBusyWait = milliseconds(20);
constexpr auto kMovedMax = std::chrono::seconds(2);  // after that, since who has too much to do gave something

}  // namespace

// One read, from wherever its bytes are; it goes forward through the runs.
class PeerSource::Reading {
 public:
  Reading(PeerSource& source, const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline, ReadAid& aid)
      : source_(source), manifest_(manifest), runs_(runs), patience_(time_left(deadline)), aid_(aid) {
    for (const ChunkRun& run : runs) out_.size += run.length();
  }

  Result<SourceBytes> run() {
    if (out_.size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", out_.size)};
    while (run_ < runs_.size()) {
      if (yielded_) return failure_;
      const auto candidates =
          offers_ ? source_.everybody(manifest_, &runs_[run_]) : source_.candidates(manifest_, &runs_[run_], asked_);
      const bool again = failures_ < kPeerTriesMax;
      const auto choice = again ? source_.links_.take(candidates, tried_) : std::nullopt;
      if (choice) {
        step(*choice);
      } else if (again && source_.links_.may_come(candidates, tried_, moved_since())) {
        source_.links_.wait(Clock::now() + kBusyWait);
      } else if (!std::exchange(asked_, true)) {
        source_.news_.ask(manifest_);  // somebody else may have it by now
      } else if (again && !offers_ && Clock::now() < offers_end_) {
        offers_ = true;
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
    for (std::size_t i = run_; i < runs_.size() && asked.size() < (alone_ ? 1 : kRunsPerRequest); ++i) {
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
    if (read.ok() && offers_) source_.view_.gave(manifest_, choice.node);
    if (read.ok()) return advance(asked, size, choice.number);
    failure_ = std::move(read).error();
    if (is_refusable && (failure_.code == Errc::busy || failure_.code == Errc::exists)) {
      source_.links_.full(choice.number);
      if (failure_.code == Errc::exists) source_.view_.yield(asked.front());
      yielded_ = true;
      return;
    }
    const bool has_none = failure_.code == Errc::not_found;  // says so at once; there may be many of these
    if (has_none && asked.size() > 1) {                      // it may have some of them
      alone_ = true;
      return;
    }
    const bool was_behind = was_behind_since(choice.number, begin);
    if (has_none) source_.view_.lacks(manifest_, &asked.front(), choice.node);
    if (!has_none && !was_behind) ++failures_;
    if (!was_behind) tried_.push_back(choice.number);
    if (target_.spoiled) leave_landing();
    if (aid_.moved) aid_.moved();
  }

  // Who is waited for: anybody at first, then only those who give to other reads of this node.
  Clock::time_point moved_since() const { return Clock::now() < end_ ? Clock::time_point{} : Clock::now() - kMovedMax; }

  // It only had too much on its way: until kPeersBusyMax is over it is asked again.
  bool was_behind_since(std::uint32_t peer, Clock::time_point asked) const {
    return failure_.code == Errc::timed_out && asked <= end_ && source_.links_.moved_since(peer, asked);
  }

  Status read_from(const PeerLinks::Choice& from, const std::vector<ChunkRun>& asked, std::uint64_t size,
                   bool is_refusable) {
    const auto address = source_.links_.address(from.node);
    if (!address) return Error{Errc::unreachable, fmt::format("peer {}: is no member any more", from.node)};
    const auto request = encode_request(AskBytes{asked, is_refusable && from.sought, is_refusable});
    WEFT_TRY(Answer answer, source_.exchange_.call(*address, request, deadline_in(patience_)));
    return bring(from, answer, size);
  }

  Status bring(const PeerLinks::Choice& from, Answer& answer, std::uint64_t size) {
    if (answer.windows() == 0) return bring_now(from, answer, size);
    const auto turn = source_.links_.turn(from.number);
    return bring_now(from, answer, size);
  }

  // Memory is taken once there is something to come to it.
  Status bring_now(const PeerLinks::Choice& from, Answer& answer, std::uint64_t size) {
    if (!out_.memory) place();
    target_.memory = {out_.memory.get() + done_, size};
    PeerTarget part = target_;
    part.at += done_;
    const auto moved = [&] {
      source_.links_.moved(from.number);
      if (aid_.moved) aid_.moved();
    };
    Status read = read_answer(source_.exchange_, answer, part, {patience_, moved});
    target_.spoiled = part.spoiled;
    return read;
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
    alone_ = offers_ = false;
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
  const Deadline end_ = Clock::now() + kPeersBusyMax;
  const Deadline offers_end_ = Clock::now() + patience_;
  ReadAid& aid_;
  SourceBytes out_;
  PeerTarget target_;
  std::size_t run_ = 0;               // the next
  std::uint64_t chunks_ = 0;          // of it that are here
  std::uint64_t done_ = 0;            // bytes
  std::vector<std::uint32_t> tried_;  // for what comes next
  std::size_t failures_ = 0;          // of these, by other than not having it
  bool asked_ = false;                // who else has it
  bool alone_ = false;                // one run at a time
  bool offers_ = false;               // to any node
  bool yielded_ = false;              // to other nodes
  Error failure_{Errc::internal, ""};
};

Result<SourceBytes> PeerSource::read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                     ReadAid& aid) {
  return Reading(*this, manifest, runs, deadline, aid).run();
}

}  // namespace weft
