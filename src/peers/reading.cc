// One read of bytes by a PeerSource.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "peers/coded_read.h"
#include "peers/offered_read.h"
#include "peers/offered_unit.h"
#include "peers/read.h"
#include "peers/source.h"

namespace weft {

// Works through the runs in order. Each request starts at the first missing byte, and asks for as much as its peer
// serves at a good rate.
class PeerSource::Reading {
 public:
  // `only`: as PeerSearch.
  Reading(PeerSource& source, const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline, ReadAid& aid,
          std::string only = {})
      : source_(source),
        paced_(*source.gate_, aid.traffic, PaceEnd::peer, aid.is_waited_for),
        search_(source.scene_, manifest, paced_.is_held() ? PeerSearch::Wanted::held_bytes : PeerSearch::Wanted::bytes,
                deadline, std::move(only)),
        runs_(runs),
        aid_(aid) {
    for (const ChunkRun& run : runs) out_.size += run.length();
    if (!runs.empty()) current_ = runs.front();
  }

  Result<SourceBytes> run() {
    if (out_.size > kSourceReadMax) return Error{Errc::internal, fmt::format("a read of {} bytes", out_.size)};
    if (aid_.kept.bytes > 0) go_on();
    while (run_ < runs_.size()) {
      const Status found = search_.run(&current_, [this](PeerSearch::Try& from) { return read_some(from); });
      // No known peer has the base: ask any of them for plain bytes.
      if (!found.ok() && search_.lacked_base() && std::exchange(must_code_, false)) continue;
      if (found.ok()) continue;
      if (out_.memory && !aid_.whole_chunks) aid_.kept = {out_.memory, done_ + held_};
      return found.error();
    }
    if (!keep_.empty())
      out_.proved = [&cache = source_.coding_.cache, keep = std::move(keep_)] {
        for (const auto& [key, coded] : keep) cache.put(key, coded);
      };
    return std::move(out_);
  }

 private:
  void place() {
    ReadBlocks::Block block = source_.blocks_->take(out_.size);
    target_.landing = std::move(block.landing);
    out_.memory = std::move(block.memory);
  }

  // Continues after the bytes that an earlier source gave.
  void go_on() {
    place();
    std::memcpy(out_.memory.get(), aid_.kept.memory.get(), aid_.kept.bytes);
    keep(aid_.kept.bytes, kSeveralGivers);
  }

  // Returns the runs of the next request to this peer, from the first incomplete chunk on, within the peer's
  // `bytes_max`.
  std::vector<ChunkRun> next_runs(const PeerLinks::Choice& peer) const {
    std::vector<ChunkRun> asked;
    std::uint64_t room = peer.bytes_max;
    const std::size_t most = aid_.bases.empty() ? kRunsPerRequest : limits::kBasesPerRequestMax;
    for (std::size_t i = run_; i < runs_.size() && asked.size() < most; ++i) {
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

  Status check_wanted() const {
    if (!aid_.is_wanted || aid_.is_wanted()) return {};
    return Error{Errc::cancelled, "peers: the bytes are no longer wanted"};
  }

  Status read_some(PeerSearch::Try& from) {
    WEFT_CHECK(check_wanted());
    auto asked = next_runs(from.peer);
    Status read = read_from(from, asked);
    if (!read.ok() && read.error().code == Errc::not_found && asked.size() > 1) {  // the peer may have the first run
      asked.resize(1);
      read = read_from(from, asked);
    }
    if (read.ok() || run_ == runs_.size()) return {};
    if (from.too_slow) from.bytes = came_;
    if (target_.spoiled) leave_landing();
    return read;
  }

  Status read_from(PeerSearch::Try& from, const std::vector<ChunkRun>& asked) {
    from.lacks_base = from.too_slow = false;
    came_ = 0;
    if (aid_.whole_chunks && held_giver_ != from.peer.number) held_ = 0;
    AskBytes request{asked, aid_.traffic};
    request.subject = aid_.subject;
    request.skip = static_cast<std::uint32_t>(held_);
    if (held_ == 0) add_bases(from, request);
    from.bytes = request.length();
    if (request.bases.empty()) return ask(from, request);
    Status read = ask(from, request);
    from.lacks_base = !read.ok() && request.must_code && read.error().code == Errc::absent;
    if (read.ok() || !note_of_no_use(from, read.error())) return read;
    AskBytes plain{asked, request.traffic};
    plain.subject = aid_.subject;
    return ask(from, plain);
  }

  // True if plain bytes of the same peer may help. A peer that coded wrongly is asked for plain bytes from then on. If
  // a base cannot be read, all bases are dropped.
  bool note_of_no_use(const PeerSearch::Try& from, const Error& error) {
    if (error.code != Errc::corrupt && error.code != Errc::io) return false;
    ++aid_.coded.failed;
    if (error.code == Errc::corrupt) source_.links_.plain_only(from.peer.number);
    if (error.code == Errc::io) aid_.bases.clear();
    return true;
  }

  // Adds the local bases of the requested runs to the request.
  void add_bases(const PeerSearch::Try& from, AskBytes& request) {
    if (aid_.bases.empty() || from.peer.effort == CodingEffort::none) return;
    bases_.clear();
    bool any = false;
    for (std::size_t i = 0; i < request.runs.size(); ++i) {
      RunBase base = aid_.bases[run_ + i];
      base.place.offset += (request.runs[i].first - runs_[run_ + i].first) * kDigestChunk;
      if (!base.place.pack) base.width = 0;
      any = any || base.width != 0;
      request.bases.push_back({base.id.root, base.width});
      bases_.push_back(std::move(base));
    }
    if (!any) return request.bases.clear();
    request.effort = from.peer.effort;
    request.must_code = must_code_ && !from.peer.last;
  }

  // Waits until this node's rates have let go what came in the heads of earlier answers. The peer then holds nothing
  // for this read.
  Status pay(PeerSearch::Try& from) {
    if (!paced_.is_held()) return {};
    std::chrono::nanoseconds held{0};
    WEFT_CHECK(paced_.take_turn(0, held, [this] { return check_wanted(); }));
    from.held += held;
    aid_.held += held;
    search_.came();
    return {};
  }

  Status ask(PeerSearch::Try& from, const AskBytes& request) {
    WEFT_CHECK(pay(from));
    WEFT_TRY(const auto answer, source_.call(from, request, sign_of(from)));
    if (!answer->head().empty()) paced_.owe(answer->head().size());
    if (answer->windows() == 0 || paced_.is_held()) return bring(from, *answer, request);
    const auto turn = source_.links_.turn(from.peer.number);
    return bring(from, *answer, request);
  }

  // Reads an answer into out_. Memory is allocated only when the first answer has arrived.
  Status bring(PeerSearch::Try& from, Answer& answer, const AskBytes& request) {
    if (!out_.memory) place();
    if (!request.bases.empty()) {
      WEFT_CHECK(bring_given(from, answer, request));
      keep(from.bytes, from.peer.number);
      return {};
    }
    std::size_t came = 0;
    Status read = bring_into(from, answer, {out_.memory.get() + done_ + held_, from.bytes}, came);
    keep(came, from.peer.number);
    return read;
  }

  // Reads an answer into `memory`. Sets `came` to the number of bytes at its start that have arrived, also after a
  // failure.
  Status bring_into(PeerSearch::Try& from, Answer& answer, std::span<std::byte> memory, std::size_t& came) {
    target_.memory = memory;
    PeerTarget part = target_;
    part.at += done_ + held_;
    Status read = read_timed(from, answer, part);
    target_.spoiled = part.spoiled;
    came = part.came;
    return read;
  }

  OnSign sign_of(const PeerSearch::Try& from) {
    return [this, number = from.peer.number] {
      source_.links_.moved(number);
      search_.came();
      return !aid_.is_wanted || aid_.is_wanted();
    };
  }

  Status read_timed(PeerSearch::Try& from, Answer& answer, PeerTarget& target) {
    const auto begun = PeerLinks::Clock::now();
    ReadPace& pace = source_.links_.pace(from.peer.number);
    const auto on_sign = [&, sign = sign_of(from)] {
      return sign() && !search_.is_too_slow(from, &current_, pace.rate());
    };
    Status read =
        read_answer(source_.exchange_, answer, target, {pace, from.patience, on_sign, aid_.is_wanted, &paced_});
    from.held += target.held;
    aid_.held += target.held;
    if (read.ok() && answer.windows() > 0 && target.held.count() == 0)
      source_.links_.wire_moved(from.peer.number, target.memory.size(), PeerLinks::Clock::now() - begun);
    return read;
  }

  // Reads an answer to a request with bases. If all chunks are plain, the windows are read directly into place.
  Status bring_given(PeerSearch::Try& from, Answer& answer, const AskBytes& request) {
    WEFT_TRY(const GivenChunks given, decode_given(answer.head(), request));
    const std::span<std::byte> to(out_.memory.get() + done_, from.bytes);
    if (answer.windows() == 0) {
      const auto rest = answer.head().subspan(given.head_bytes());
      if (rest.size() != given.coded_bytes + given.plain_bytes)
        return Error{Errc::corrupt, fmt::format("peer: expected {} bytes of chunks, got {}",
                                                given.coded_bytes + given.plain_bytes, rest.size())};
      return decode(request, given, rest, to);
    }
    if (given.coded_bytes == 0) {
      std::size_t came = 0;
      WEFT_CHECK(bring_into(from, answer, to, came));
      return decode(request, given, to, to);
    }
    const std::size_t size = given.coded_bytes + given.plain_bytes;
    const ReadBlocks::Block block = source_.blocks_->take(size);
    PeerTarget target{{block.memory.get(), size}, block.landing};
    WEFT_CHECK(read_timed(from, answer, target));
    return decode(request, given, target.memory, to);
  }

  Status decode(const AskBytes& request, const GivenChunks& given, std::span<const std::byte> bytes,
                std::span<std::byte> to) {
    CodedRead coded(source_.coding_, request, bases_, given);
    WEFT_CHECK(coded.place(bytes, to));
    aid_.coded += coded.counts();
    for (const std::size_t chunk : coded.coded()) out_.coded.push_back(out_.givers.size() + chunk);
    auto keep = coded.take_keep();
    std::ranges::move(keep, std::back_inserter(keep_));
    return {};
  }

  // Adds `came` bytes of a giver to the held bytes. The next peer continues behind a partial chunk.
  void keep(std::size_t came, std::uint32_t giver) {
    if (came == 0) return;
    came_ += came;
    if (held_ == 0) held_giver_ = giver;
    if (held_giver_ != giver) held_giver_ = kSeveralGivers;
    held_ += came;
    while (run_ < runs_.size()) {
      const std::uint64_t length = ChunkRun{runs_[run_].id, runs_[run_].first + chunks_, 1}.length();
      if (held_ < length) return;
      out_.givers.push_back(held_giver_);
      held_giver_ = giver;
      held_ -= length;
      done_ += length;
      if (++chunks_ < runs_[run_].count) continue;
      chunks_ = 0;
      if (++run_ < runs_.size()) current_ = runs_[run_];
    }
  }

  // Moves the received bytes to new memory, because an abandoned read may still write to the old.
  void leave_landing() {
    const auto before = out_.memory;
    target_.spoiled = false;
    place();
    std::memcpy(out_.memory.get(), before.get(), done_ + held_);
  }

  PeerSource& source_;
  PaceGate::Read paced_;
  PeerSearch search_;
  const std::span<const ChunkRun> runs_;
  ReadAid& aid_;
  SourceBytes out_;
  PeerTarget target_;
  std::vector<RunBase> bases_;  // of the runs of the request
  CodedRead::Keep keep_;
  bool must_code_ = true;  // require coded chunks while another peer may have the base
  std::size_t run_ = 0;    // number of the next run
  ChunkRun current_;  // a copy of the next run: the search looks for it, also after a part of an answer has arrived
  std::uint64_t chunks_ = 0;                   // complete chunks of that run
  std::uint64_t came_ = 0;                     // bytes of the current request
  std::uint64_t done_ = 0;                     // bytes of complete chunks
  std::uint64_t held_ = 0;                     // bytes of the next chunk, which is partial
  std::uint32_t held_giver_ = kSeveralGivers;  // the giver of the held bytes
};

Result<SourceBytes> PeerSource::read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                                     ReadAid& aid) {
  if (!aid.offered) return Reading(*this, manifest, runs, deadline, aid).run();
  const OfferScene scene{exchange_, *blocks_, links_, *gate_};
  const auto offer = std::dynamic_pointer_cast<PeerOffer>(aid.offered);
  if (!offer || !offer->has_token()) return read_offered(scene, runs, deadline, aid);
  deadline = std::min(deadline, deadline_in(kOfferSilenceMax));
  auto read = Reading(*this, manifest, runs, deadline, aid, offer->node()).run();
  if (read.ok()) read_token(scene, *offer, runs);
  return read;
}

}  // namespace weft
