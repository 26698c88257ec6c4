#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/sha256_lanes.h"

namespace weft {

// Fetching the algorithm costs a lock and a lookup in OpenSSL 3; once is enough.
static const EVP_MD* sha256_md() {
  static const EVP_MD* md = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return md;
}

static void require(int ok) {
  if (ok != 1) std::abort();  // libcrypto fails here only without memory or without SHA-256
}

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { require(EVP_DigestInit_ex2(context, sha256_md(), nullptr)); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
}

Digest Sha256::finish() {
  Digest digest;
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(state_->context, digest.bytes.data(), &size));
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

namespace {

constexpr std::size_t kBlock = 64;
constexpr Sha256State kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

// The second lane works on a copy for nothing; it takes no time of its own.
void update_alone(Sha256State& state, std::span<const std::byte> blocks) {
  Sha256State idle = state;
  sha256_lanes_update(state, blocks.data(), idle, blocks.data(), blocks.size() / kBlock);
}

// `rest` is what of the message's `length` bytes the state has not seen, from a block's beginning on.
Digest finish_lane(Sha256State& state, std::span<const std::byte> rest, std::uint64_t length) {
  std::size_t whole = rest.size() / kBlock * kBlock;
  update_alone(state, rest.first(whole));
  std::array<std::byte, 2 * kBlock> tail{};
  rest = rest.subspan(whole);
  if (!rest.empty()) std::memcpy(tail.data(), rest.data(), rest.size());
  tail[rest.size()] = std::byte{0x80};
  std::size_t size = rest.size() + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (unsigned i = 0; i < 8; ++i) tail[size - 1 - i] = static_cast<std::byte>(length * 8 >> (8U * i));
  update_alone(state, std::span(tail).first(size));
  Digest digest;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i)
    digest.bytes[i] = static_cast<std::uint8_t>(state[i / 4] >> (24U - 8U * (i % 4)));
  return digest;
}

void sha256_pair(std::span<const std::byte> a, std::span<const std::byte> b, Digest& digest_a, Digest& digest_b) {
  Sha256State state_a = kStart;
  Sha256State state_b = kStart;
  std::size_t together = std::min(a.size(), b.size()) / kBlock * kBlock;
  sha256_lanes_update(state_a, a.data(), state_b, b.data(), together / kBlock);
  digest_a = finish_lane(state_a, a.subspan(together), a.size());
  digest_b = finish_lane(state_b, b.subspan(together), b.size());
}

}  // namespace

void sha256_each(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests) {
  std::vector<std::size_t> order(messages.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return messages[a].size() > messages[b].size(); });
  std::size_t i = 0;
  for (; sha256_lanes_usable() && i + 1 < order.size(); i += 2)
    sha256_pair(messages[order[i]], messages[order[i + 1]], digests[order[i]], digests[order[i + 1]]);
  for (; i < order.size(); ++i) digests[order[i]] = sha256(messages[order[i]]);
}

void sha256_chunks(std::span<const std::byte> bytes, std::span<Digest> digests) {
  std::vector<std::span<const std::byte>> chunks(digests.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    std::size_t begin = i * kDigestChunk;
    chunks[i] = bytes.subspan(begin, std::min<std::size_t>(kDigestChunk, bytes.size() - begin));
  }
  sha256_each(chunks, digests);
}

Digest tree_root(std::uint64_t length, std::span<const Digest> chunks) {
  constexpr std::string_view kDomain = "weft-tree-1";
  std::array<std::byte, 8> little{};
  for (unsigned i = 0; i < little.size(); ++i) little[i] = static_cast<std::byte>(length >> (8U * i));
  Sha256 hash;
  hash.update(std::as_bytes(std::span(kDomain)));
  hash.update(little);
  for (const Digest& chunk : chunks) hash.update(std::as_bytes(std::span(chunk.bytes)));
  return hash.finish();
}

Digest tree_sha256(std::span<const std::byte> bytes) {
  std::vector<Digest> chunks(chunk_count(bytes.size()));
  sha256_chunks(bytes, chunks);
  return tree_root(bytes.size(), chunks);
}

}  // namespace weft
