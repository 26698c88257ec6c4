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

// Returns windows on the packs of `segments`, one for each, which keep `owner`. If the bytes are few, or the segments
// too many, returns one window on a copy.
Result<std::vector<std::unique_ptr<WindowMemory>>> windows_on(std::span<const Run> segments,
                                                              const std::shared_ptr<const void>& owner);
Result<std::vector<std::byte>> copy_of(std::span<const Run> segments);

// For one thread.
class CodedAnswer {
 public:
  // `places`: of the runs, all local. `bases`: of their bases; a base that is not local has no pack. `coding` outlives
  // this.
  CodedAnswer(PeerCoding& coding, const AskBytes& ask, std::vector<OpenPlace> places, std::vector<OpenPlace> bases);

  // Codes each chunk for which coding pays.
  void code();
  bool is_all_coded() const { return plain_.empty(); }
  // Windows on packs keep `owner`.
  Result<PeerReply> reply(const std::shared_ptr<const void>& owner) const;

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

}  // namespace weft
