#include "peers/answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/sha256.h"
#include "base/text.h"
#include "os/sys.h"
#include "peers/health_facts.h"
#include "peers/pack_windows.h"
#include "weft/bytes/pack.h"
#include "weft/bytes/run.h"
#include "weft/result.h"

namespace weft {
namespace {

// The answer to a request with bases: each chunk coded against its base, or plain. For one thread.
class CodedAnswer {
 public:
  // `places`: of the runs, all local. `bases`: of their bases; a base that is not local has no pack. `coding` outlives
  // this.
  CodedAnswer(PeerCoding& coding, const AskBytes& ask, std::vector<OpenPlace> places, std::vector<OpenPlace> bases);

  // Codes each chunk for which coding pays.
  void code();
  Result<PeerReply> reply() const;

 private:
  CodedCache::Bytes code(const RunChunk& chunk);
  OpenPlace place_in(const std::vector<OpenPlace>& places, const RunChunk& chunk) const;

  PeerCoding& coding_;
  const AskBytes& ask_;
  const std::vector<OpenPlace> places_, bases_;
  std::shared_ptr<CodingDesk> desk_;  // null until a chunk is coded
  std::vector<std::uint32_t> sizes_;  // bytes given of each chunk
  std::vector<CodedCache::Bytes> coded_;
  std::vector<Run> plain_;  // the plain chunks
};

CodedAnswer::CodedAnswer(PeerCoding& coding, const AskBytes& ask, std::vector<OpenPlace> places,
                         std::vector<OpenPlace> bases)
    : coding_(coding), ask_(ask), places_(std::move(places)), bases_(std::move(bases)) {}

OpenPlace CodedAnswer::place_in(const std::vector<OpenPlace>& places, const RunChunk& chunk) const {
  const OpenPlace& run = places[chunk.run];
  return {run.pack, run.offset + (chunk.chunk - ask_.runs[chunk.run].first) * kDigestChunk};
}

// Returns the coded chunk; null if plain bytes are better, or the disk fails: the plain read then reports the error.
CodedCache::Bytes CodedAnswer::code(const RunChunk& chunk) {
  if (!desk_) desk_ = coding_.desk();
  const std::span<std::byte> base(desk_->base.get(), chunk.length);
  const std::span<std::byte> now(desk_->chunk.get(), chunk.length);
  const OpenPlace base_at = place_in(bases_, chunk);
  const OpenPlace now_at = place_in(places_, chunk);
  if (!read_exact(base_at.pack->fd(), base_at.offset, base, kPeerRead).ok()) return nullptr;
  if (!read_exact(now_at.pack->fd(), now_at.offset, now, kPeerRead).ok()) return nullptr;
  auto coded = desk_->coder.encode(base, now, ask_.bases[chunk.run].width, ask_.effort);
  return coded ? std::make_shared<const std::vector<std::byte>>(*std::move(coded)) : nullptr;
}

void CodedAnswer::code() {
  std::uint64_t plain = 0;  // bytes
  for (const RunChunk& chunk : chunks_of(ask_.runs)) {
    const ChunkRun& run = ask_.runs[chunk.run];
    const AskedBase& base = ask_.bases[chunk.run];
    CodedCache::Bytes coded;
    if (base.width != 0 && bases_[chunk.run].pack)
      coded = coding_.cache.find_or({run.id, base.root, chunk.chunk, base.width}, [&] { return code(chunk); });
    sizes_.push_back(static_cast<std::uint32_t>(coded ? coded->size() : chunk.length));
    if (coded) {
      coded_.push_back(std::move(coded));
      continue;
    }
    append_run(plain_, {plain, chunk.length, place_in(places_, chunk)});
    plain += chunk.length;
  }
  desk_.reset();
}

Result<PeerReply> CodedAnswer::reply() const {
  PeerReply reply;
  reply.head = encode_given(sizes_);
  std::vector<std::byte> coded;
  for (const auto& chunk : coded_) coded.insert(coded.end(), chunk->begin(), chunk->end());
  if (reply.head.size() + coded.size() + size_of(plain_) <= kShortHeadBytesMax) {
    WEFT_TRY(const auto plain, copy_of(plain_));
    reply.head.insert(reply.head.end(), coded.begin(), coded.end());
    reply.head.insert(reply.head.end(), plain.begin(), plain.end());
    return reply;
  }
  if (!coded.empty()) {
    WEFT_TRY(auto window, WindowMemory::of_bytes(coded));
    reply.windows.push_back(std::move(window));
  }
  if (plain_.empty()) return reply;
  WEFT_TRY(auto windows, windows_on(plain_));
  for (auto& window : windows) reply.windows.push_back(std::move(window));
  return reply;
}

// Puts up to kShortHeadBytesMax bytes into the head of a reply, and more into a window.
Result<PeerReply> reply_with(std::vector<std::byte> bytes) {
  if (bytes.size() <= kShortHeadBytesMax) return PeerReply{std::move(bytes), {}};
  PeerReply reply;
  WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
  reply.windows.push_back(std::move(window));
  return reply;
}

Result<PeerReply> reply_with(std::span<const Run> segments) {
  if (segments.empty() || end_of(segments.back()) <= kShortHeadBytesMax) {
    WEFT_TRY(auto bytes, copy_of(segments));
    return reply_with(std::move(bytes));
  }
  PeerReply reply;
  WEFT_TRY(reply.windows, windows_on(segments));
  return reply;
}

Result<PeerReply> reply_with(PulledFiles* pulls, const PulledAsk& ask) {
  if (pulls == nullptr) return Error{Errc::not_found, "no pull runs here"};
  WEFT_TRY(const PulledPart part, pulls->read(ask));
  PeerReply reply{encode_received(part.got), {}};
  if (part.bytes.empty()) return reply;
  WEFT_TRY(auto window, WindowMemory::of_bytes(part.bytes));
  reply.windows.push_back(std::move(window));
  reply.subject = fmt::format("a pull: {}", printable(ask.path, kSubjectBytesMax));
  return reply;
}

}  // namespace

void PeerAnswers::begin(LocalBytes& bytes, SwarmServer* swarms) {
  const ExclusiveLock lock(gate_);
  bytes_ = &bytes;
  swarms_ = swarms;
}

void PeerAnswers::end() {
  const ExclusiveLock lock(gate_);
  bytes_ = nullptr;
  swarms_ = nullptr;
}

void PeerAnswers::receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) {
  auto asked = decode_request(request);
  if (!asked.ok()) return reply.give(asked.error());
  if (std::holds_alternative<Join>(*asked) || std::holds_alternative<Want>(*asked))
    return pass_on(node, *std::move(asked), std::move(reply));
  reply.give(answer(node, *asked));
}

void PeerAnswers::pass_on(std::string_view node, PeerRequest asked, PendingReply reply) {
  {
    const SharedLock lock(gate_);
    if (auto* join = std::get_if<Join>(&asked); join != nullptr && swarms_ != nullptr)
      return swarms_->receive(node, std::move(*join), std::move(reply));
    if (auto* want = std::get_if<Want>(&asked); want != nullptr && swarms_ != nullptr)
      return swarms_->receive(node, std::move(*want), std::move(reply));
  }
  reply.give(answer(node, asked));
}

void PeerAnswers::unwanted(std::string_view node) {
  const SharedLock lock(gate_);
  if (swarms_ != nullptr) swarms_->unwanted(node);
}

Result<PeerReply> PeerAnswers::answer(std::string_view node, std::span<const std::byte> request) {
  WEFT_TRY(const PeerRequest asked, decode_request(request));
  return answer(node, asked);
}

Result<PeerReply> PeerAnswers::answer(std::string_view node, const PeerRequest& asked) {
  const SharedLock lock(gate_);
  if (bytes_ == nullptr) return Error{Errc::unreachable, "this daemon begins or ends"};
  if (const auto* announce = std::get_if<Announce>(&asked)) {
    directory_.put(node, *announce);
    return PeerReply{};
  }
  if (const auto* ask = std::get_if<AskHolders>(&asked))
    return PeerReply{encode_holders(directory_.find(ask->manifest)), {}};
  if (const auto* ask = std::get_if<AskManifest>(&asked)) return give(*ask);
  if (const auto* ask = std::get_if<AskChunks>(&asked)) return give(*ask);
  if (const auto* ask = std::get_if<AskBytes>(&asked)) return give(*ask);
  if (const auto* ask = std::get_if<PulledAsk>(&asked)) return reply_with(pulls_, *ask);
  if (const auto* order = std::get_if<KeyOrder>(&asked); order != nullptr && keys_ != nullptr) {
    WEFT_CHECK(keys_->follow(*order));
    return PeerReply{};
  }
  if (const auto* ask = std::get_if<AskHealth>(&asked)) {
    WEFT_TRY(const PeerHealth facts, health_facts(store_, *ask));
    return PeerReply{encode_health(facts), {}};
  }
  if (const auto* keep = std::get_if<KeepVersion>(&asked); keep != nullptr && keeper_ != nullptr) {
    WEFT_CHECK(keeper_->keep(*keep));
    return PeerReply{};
  }
  return Error{Errc::unsupported, "this node takes no part in that"};
}

Result<PeerReply> PeerAnswers::give(const AskManifest& ask) {
  WEFT_TRY(const auto manifest, store_.open_manifest(ask.digest));
  auto bytes = manifest->bytes();
  if (ask.offset > bytes.size())
    return Error{Errc::invalid, fmt::format("a manifest of {} bytes, asked for from {} on", bytes.size(), ask.offset)};
  bytes = bytes.subspan(ask.offset);
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), kSourceReadMax));
  return reply_with({bytes.begin(), bytes.end()});
}

Result<PeerReply> PeerAnswers::give(const AskChunks& ask) {
  WEFT_TRY(const auto digests, bytes_->digests(ask.run.id));
  if (digests.size() != chunk_count(ask.run.id.length))
    return Error{Errc::internal,
                 fmt::format("{} digests of {} chunks", digests.size(), chunk_count(ask.run.id.length))};
  return reply_with(encode_digests(std::span(digests).subspan(ask.run.first, ask.run.count)));
}

// Returns the places of the bases. A base that is not local has no pack, or is Errc::absent with `must_code`.
Result<std::vector<OpenPlace>> PeerAnswers::bases_of(const AskBytes& ask) const {
  std::vector<OpenPlace> places(ask.runs.size());
  std::vector<ChunkRun> runs;
  for (std::size_t i = 0; i < ask.runs.size(); ++i) {
    if (ask.bases[i].width == 0) continue;
    runs.push_back(ask.runs[i]);
    runs.back().id.root = ask.bases[i].root;
  }
  auto found = here_if_any(*bytes_, runs);
  for (std::size_t i = 0, next = 0; i < ask.runs.size(); ++i) {
    if (ask.bases[i].width == 0) continue;
    places[i] = std::move(found[next++]);
    if (ask.must_code && !places[i].pack)
      return Error{Errc::absent, fmt::format("the base {} is not here", to_hex(ask.bases[i].root))};
  }
  return places;
}

Result<PeerReply> PeerAnswers::give(const AskBytes& ask) {
  WEFT_TRY(auto places, here_or_error(*bytes_, ask.runs));
  if (ask.bases.empty()) {
    const auto segments = segments_of(ask.runs, std::move(places), ask.skip);
    WEFT_TRY(PeerReply reply, reply_with(std::span<const Run>(segments)));
    reply.subject = ask.subject;
    return reply;
  }
  WEFT_TRY(auto bases, bases_of(ask));
  CodedAnswer answer(coding_, ask, std::move(places), std::move(bases));
  answer.code();
  WEFT_TRY(PeerReply reply, answer.reply());
  reply.subject = ask.subject;
  return reply;
}

}  // namespace weft
