#include "peers/coded_answer.h"

#include <utility>

#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kWhere = "a pack that a peer reads";

// The pack and the owner that a window keeps.
using Kept = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;

std::uint64_t size_of(std::span<const Run> segments) {
  std::uint64_t size = 0;
  for (const Run& segment : segments) size += segment.length;
  return size;
}

}  // namespace

Result<std::vector<std::byte>> copy_of(std::span<const Run> segments) {
  std::vector<std::byte> bytes(size_of(segments));
  std::span<std::byte> rest(bytes);
  for (const auto& [offset, length, place] : segments) {
    WEFT_CHECK(read_exact(place.pack->fd(), place.offset, rest.first(length), kWhere));
    rest = rest.subspan(length);
  }
  return bytes;
}

Result<std::vector<std::unique_ptr<WindowMemory>>> windows_on(std::span<const Run> segments,
                                                              const std::shared_ptr<const void>& owner) {
  std::vector<std::unique_ptr<WindowMemory>> windows;
  if (size_of(segments) <= kShortHeadBytesMax || segments.size() >= kAnswerWindowsMax) {
    WEFT_TRY(const auto bytes, copy_of(segments));
    WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
    windows.push_back(std::move(window));
    return windows;
  }
  for (const auto& [offset, length, place] : segments) {
    WEFT_TRY(auto window, WindowMemory::of_file(place.pack->fd(), place.offset, length,
                                                std::make_shared<const Kept>(place.pack, owner)));
    windows.push_back(std::move(window));
  }
  return windows;
}

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
  if (!read_exact(base_at.pack->fd(), base_at.offset, base, kWhere).ok()) return nullptr;
  if (!read_exact(now_at.pack->fd(), now_at.offset, now, kWhere).ok()) return nullptr;
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

Result<PeerReply> CodedAnswer::reply(const std::shared_ptr<const void>& owner) const {
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
  WEFT_TRY(auto windows, windows_on(plain_, owner));
  for (auto& window : windows) reply.windows.push_back(std::move(window));
  return reply;
}

}  // namespace weft
