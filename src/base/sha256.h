// SHA-256 by libcrypto (with SHA-NI if the CPU has it), and the tree of weft/content.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/content.h"

namespace weft {

Digest sha256(std::span<const std::byte> bytes);
// Computes the digests of independent messages: sixteen or two at a time if the CPU can, which is two to three times as
// fast. `digests` has as many elements as `messages`.
void sha256_each(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests);

// Returns the number of messages of about one size from which on sha256_each() has its full speed.
std::size_t sha256_each_best();

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Digest finish();  // call it once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// SHA-1, by which git names its objects. Others can make two files of one SHA-1, so it finds damage and is no identity.
using Sha1Digest = std::array<std::uint8_t, 20>;
class Sha1 {
 public:
  Sha1();
  ~Sha1();
  Sha1(Sha1&&) noexcept;
  Sha1& operator=(Sha1&&) noexcept;
  void update(std::span<const std::byte> bytes);
  Sha1Digest finish();  // call it once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Computes the digests of the chunks of a blob, or of a part that begins at a chunk. `digests` has one element for
// each.
void sha256_chunks(std::span<const std::byte> bytes, std::span<Digest> digests);

// Returns the root over the digests of all chunks of a blob of `length` bytes.
Digest tree_root(std::uint64_t length, std::span<const Digest> chunks);
// Returns the root of `bytes`, computed on this thread.
Digest tree_sha256(std::span<const std::byte> bytes);
// Returns the number of chunks of a blob; at least 1.
constexpr std::uint64_t chunk_count(std::uint64_t length) {
  return length == 0 ? 1 : length / kDigestChunk + (length % kDigestChunk != 0 ? 1 : 0);
}

}  // namespace weft
