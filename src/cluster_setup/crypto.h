// Hashes, random bytes and certificates of a cluster's setup, by libcrypto. Only the .cc includes it.
//
// The authority of a cluster is an elliptic curve key (P-256) with a certificate that it has signed itself. It signs
// one certificate for each node, which serves as server and as client: etcd admits only clients with one, and its
// gateway is a client of its own. Certificates are X.509 version 3 in PEM, private keys PKCS #8 in PEM. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"

namespace weft::setup {

Digest hmac_sha256(const Digest& key, std::string_view text);
bool equals_in_constant_time(const Digest& a, const Digest& b);
void random_fill(std::span<std::byte> out);

struct KeyedCertificate {
  std::string certificate;  // PEM
  std::string key;          // PEM; a secret
};

// What a certificate is for.
struct NodeSubject {
  std::string name;                // the common name: a node's name
  std::vector<std::string> hosts;  // addresses in digits, and names, that the node serves at
};

std::string make_private_key();  // PEM
// Returns a request (PKCS #10, PEM) for a certificate of the key's owner, which shows that the owner has the key.
Result<std::string> certificate_request(const std::string& key, const std::string& name);

class Authority {
 public:
  // Makes a key, and a certificate for it that holds ten years from `now_s` on (seconds since 1970).
  static Result<Authority> make(const std::string& name, std::uint64_t now_s);
  // Errc::invalid: not PEM, or the key is another one's.
  static Result<Authority> open(const KeyedCertificate& files);

  const KeyedCertificate& files() const { return files_; }
  // Signs a certificate for the key of a request, valid from an hour before `now_s` and for ten years. Errc::invalid:
  // no request, or its signature is wrong. The subject is the caller's: the request's own is not read.
  Result<std::string> sign(const std::string& request, const NodeSubject& subject, std::uint64_t now_s) const;

 private:
  explicit Authority(KeyedCertificate files) : files_(std::move(files)) {}
  KeyedCertificate files_;
};

// Returns the SHA-256 of the public key of a certificate (of its SubjectPublicKeyInfo in DER), as HttpOptions::pinned
// and tokens have it. Errc::invalid: not PEM.
Result<Digest> public_key_digest(const std::string& certificate);

}  // namespace weft::setup
