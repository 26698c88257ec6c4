#include "base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace weft {

static const EVP_MD* fetch_md(const char* name) {
#ifdef WEFT_STATIC
  // The settings of this machine's OpenSSL may name modules for its own libcrypto, which a static program cannot load.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
#endif
  return EVP_MD_fetch(nullptr, name, nullptr);
}

// EVP_MD_fetch() costs a lock and a lookup in OpenSSL 3, so it is called once.
static const EVP_MD* sha256_md() {
  static const EVP_MD* md = fetch_md("SHA256");
  return md;
}

static const EVP_MD* sha1_md() {
  static const EVP_MD* md = fetch_md("SHA1");
  return md;
}

static void require(int ok) {
  if (ok != 1) std::abort();  // libcrypto fails here only without memory or without the digest
}

namespace {

// A digest that libcrypto computes.
class DigestContext {
 public:
  explicit DigestContext(const EVP_MD* md) { require(EVP_DigestInit_ex2(context_, md, nullptr)); }
  ~DigestContext() { EVP_MD_CTX_free(context_); }
  DigestContext(const DigestContext&) = delete;
  DigestContext& operator=(const DigestContext&) = delete;

  void update(std::span<const std::byte> bytes) { require(EVP_DigestUpdate(context_, bytes.data(), bytes.size())); }
  void finish(std::span<std::uint8_t> digest) {
    unsigned int size = 0;
    require(EVP_DigestFinal_ex(context_, digest.data(), &size));
  }

 private:
  EVP_MD_CTX* const context_ = EVP_MD_CTX_new();
};

}  // namespace

struct Sha256::State {
  DigestContext context{sha256_md()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  state_->context.update(bytes);
}

Digest Sha256::finish() {
  Digest digest;
  state_->context.finish(digest.bytes);
  return digest;
}

struct Sha1::State {
  DigestContext context{sha1_md()};
};

Sha1::Sha1() : state_(std::make_unique<State>()) {}
Sha1::~Sha1() = default;
Sha1::Sha1(Sha1&&) noexcept = default;
Sha1& Sha1::operator=(Sha1&&) noexcept = default;

void Sha1::update(std::span<const std::byte> bytes) {
  state_->context.update(bytes);
}

Sha1Digest Sha1::finish() {
  Sha1Digest digest{};
  state_->context.finish(digest);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
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
