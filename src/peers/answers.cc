#include "peers/answers.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "base/sha256.h"
#include "peers/coded_answer.h"
#include "weft/run.h"

namespace weft {
namespace {

// Returns the pack segments that hold the bytes of an answer, without the bytes that the asker skips.
std::vector<Run> segments_of(const AskBytes& ask, std::vector<OpenPlace> places) {
  std::vector<Run> segments;
  places.front().offset += ask.skip;
  for (std::size_t i = 0; i < ask.runs.size(); ++i) {
    const std::uint64_t length = ask.runs[i].length() - (i == 0 ? ask.skip : 0);
    append_run(segments, {segments.empty() ? 0 : end_of(segments.back()), length, std::move(places[i])});
  }
  return segments;
}

// Puts up to kShortHeadBytesMax bytes into the head of a reply, and more into a window.
Result<PeerReply> reply_with(std::vector<std::byte> bytes) {
  if (bytes.size() <= kShortHeadBytesMax) return PeerReply{std::move(bytes), {}};
  PeerReply reply;
  WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
  reply.windows.push_back(std::move(window));
  return reply;
}

Result<PeerReply> reply_with(std::span<const Run> segments, const std::shared_ptr<const void>& upload) {
  if (segments.empty() || end_of(segments.back()) <= kShortHeadBytesMax) {
    WEFT_TRY(auto bytes, copy_of(segments));
    return reply_with(std::move(bytes));
  }
  PeerReply reply;
  WEFT_TRY(reply.windows, windows_on(segments, upload));
  return reply;
}

}  // namespace

void PeerAnswers::begin(LocalBytes& bytes) {
  const ExclusiveLock lock(gate_);
  bytes_ = &bytes;
}

void PeerAnswers::end() {
  const ExclusiveLock lock(gate_);
  bytes_ = nullptr;
}

Result<PeerReply> PeerAnswers::answer(std::string_view node, std::span<const std::byte> request) {
  WEFT_TRY(const PeerRequest asked, decode_request(request));
  const SharedLock lock(gate_);
  if (bytes_ == nullptr) return Error{Errc::unreachable, "this daemon begins or ends"};
  if (const auto* announce = std::get_if<Announce>(&asked)) {
    for (const HadChunks& had : announce->had) directory_.put(node, had);
    if (!announce->asks || announce->had.empty()) return PeerReply{};
    return PeerReply{encode_holders(directory_.find(announce->had.front().manifest)), {}};
  }
  if (const auto* ask = std::get_if<AskHolders>(&asked))
    return PeerReply{encode_holders(directory_.find(ask->manifest)), {}};
  if (const auto* ask = std::get_if<AskManifest>(&asked)) return give(*ask);
  if (const auto* ask = std::get_if<AskChunks>(&asked)) return give(*ask);
  return give(node, std::get<AskBytes>(asked));
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

// Returns the places of all runs. Errc::not_found if a run is not local.
Result<std::vector<OpenPlace>> PeerAnswers::places_of(std::span<const ChunkRun> runs) const {
  WEFT_TRY(auto places, bytes_->here(runs));
  for (std::size_t i = 0; i < places.size(); ++i)
    if (!places[i].pack)
      return Error{Errc::not_found, fmt::format("chunks {} to {} of the blob {} are not here", runs[i].first,
                                                runs[i].first + runs[i].count, to_hex(runs[i].id.root))};
  return places;
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

// Takes an upload slot. Errc::exists: another node was just given the chunks, and can pass them on. Errc::busy: too
// many calls wait for a slot.
Result<std::shared_ptr<const void>> PeerAnswers::begin_upload(std::string_view node, const AskBytes& ask) {
  if (!recent_.record(node, ask.runs, ask.yields && slots_.is_busy()))
    return Error{Errc::exists, fmt::format("chunks of the blob {} were just given to another node",
                                           to_hex(ask.runs.front().id.root))};
  auto upload = slots_.begin(node, ask.waits);
  if (upload) return upload;
  recent_.forget(node, ask.runs);
  return Error{Errc::busy, "this node has no free upload slot"};
}

Result<PeerReply> PeerAnswers::give(std::string_view node, const AskBytes& ask) {
  WEFT_TRY(auto places, places_of(ask.runs));
  if (ask.bases.empty()) {
    WEFT_TRY(const auto upload, begin_upload(node, ask));
    const auto segments = segments_of(ask, std::move(places));
    WEFT_TRY(PeerReply reply, reply_with(std::span<const Run>(segments), upload));
    reply.subject = ask.subject;
    return reply;
  }
  WEFT_TRY(auto bases, bases_of(ask));
  CodedAnswer answer(coding_, ask, std::move(places), std::move(bases));
  answer.code();
  if (answer.is_all_coded()) return answer.reply(nullptr);  // so few bytes need no upload slot
  WEFT_TRY(const auto upload, begin_upload(node, ask));
  WEFT_TRY(PeerReply reply, answer.reply(upload));
  reply.subject = ask.subject;
  return reply;
}

}  // namespace weft
