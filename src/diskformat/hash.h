// XXH3-64: the checksum of records, and the hint that finds known content early (index/blobs.h). It is never part of an
// identity: bytes with a given XXH3 are easily made. The only includer of libxxhash's headers is hash.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/content.h"

namespace weft {

std::uint64_t xxh3_64(std::span<const std::byte> bytes);
// With a seed, the hash of one part can cover another part too: xxh3_64(rest, xxh3_64(first)).
std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed);
// Computes xxh3_64 of bytes that arrive in pieces.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;  // hash of all bytes added so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// Returns Extent::head. `content` is the whole content, or at least its first kExtentHeadBytes bytes.
std::uint64_t head_of(std::span<const std::byte> content);

}  // namespace weft
