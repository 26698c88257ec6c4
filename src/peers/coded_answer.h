// The answer to a request with bases: each chunk coded against its base, or plain.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "peers/coded_cache.h"
#include "peers/messages.h"
#include "weft/exchange.h"
#include "weft/pack.h"
#include "weft/result.h"
#include "weft/run.h"

namespace weft {

// The bytes of `segments`, one after the other, in windows on their packs with `owner`. If they are few or too many
// segments, in one window on a copy.
Result<std::vector<std::unique_ptr<WindowMemory>>> windows_on(std::span<const Run> segments,
                                                              const std::shared_ptr<const void>& owner);
Result<std::vector<std::byte>> copy_of(std::span<const Run> segments);

// For one thread.
class CodedAnswer {
 public:
  // `places`: of the runs, all here. `bases`: of their bases; without a pack: not here. `coding` outlives this.
  CodedAnswer(PeerCoding& coding, const AskBytes& ask, std::vector<OpenPlace> places, std::vector<OpenPlace> bases);

  // Codes what is worth it.
  void code();
  bool is_all_coded() const { return plain_.empty(); }
  // `owner` is kept for as long as windows on packs.
  Result<PeerReply> reply(const std::shared_ptr<const void>& owner) const;

 private:
  CodedCache::Bytes code(const RunChunk& chunk);
  OpenPlace place_in(const std::vector<OpenPlace>& places, const RunChunk& chunk) const;

  PeerCoding& coding_;
  const AskBytes& ask_;
  const std::vector<OpenPlace> places_, bases_;
  std::shared_ptr<CodingDesk> desk_;  // once a chunk is coded
  std::vector<std::uint32_t> sizes_;  // given of each chunk
  std::vector<CodedCache::Bytes> coded_;
  std::vector<Run> plain_;  // the chunks that are given plain
};

}  // namespace weft
