// XXH3: the checksum of records and the key of content. The only includer of libxxhash's headers is hash.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/content.h"

namespace weft {

std::uint64_t xxh3_64(std::span<const std::byte> bytes);
// A second part whose hash covers a first: xxh3_64(rest, xxh3_64(first)).
std::uint64_t xxh3_64(std::span<const std::byte> bytes, std::uint64_t seed);
Hash128 xxh3_128(std::span<const std::byte> bytes);

// The same over bytes that come in pieces. Move-only; one thread.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Hash128 digest128() const;  // of what came so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
