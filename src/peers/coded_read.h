// Decodes a peer's answer to a request with bases.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "peers/coded_cache.h"
#include "peers/messages.h"
#include "weft/bytes/source.h"
#include "weft/result.h"

namespace weft {

// For one answer and one thread.
class CodedRead {
 public:
  // The arguments outlive this. `bases`: this node's base for each run of `ask`.
  CodedRead(PeerCoding& coding, const AskBytes& ask, std::span<const RunBase> bases, const GivenChunks& given)
      : coding_(coding), ask_(ask), bases_(bases), given_(given) {}

  // `from`: the coded chunks, then the plain ones. `to`: the bytes of all runs. Errc::corrupt if a chunk does not
  // decode, Errc::io if a base cannot be read.
  Status place(std::span<const std::byte> from, std::span<std::byte> to);

  const CodedCounts& counts() const { return counts_; }
  const std::vector<std::size_t>& coded() const { return coded_; }  // numbers of the coded chunks
  // Coded chunks to cache for other peers, once the chunks are verified.
  using Keep = std::vector<std::pair<CodedKey, CodedCache::Bytes>>;
  Keep take_keep() { return std::move(keep_); }

 private:
  Status decode(const RunChunk& chunk, std::span<const std::byte> coded, std::span<std::byte> to);
  void sample(const RunChunk& chunk, std::span<const std::byte> plain);
  Status read_base(const RunChunk& chunk, std::span<std::byte> to) const;

  PeerCoding& coding_;
  const AskBytes& ask_;
  const std::span<const RunBase> bases_;
  const GivenChunks& given_;
  const std::shared_ptr<CodingDesk> desk_ = coding_.desk();
  CodedCounts counts_;
  std::vector<std::size_t> coded_;
  Keep keep_;
};

}  // namespace weft
