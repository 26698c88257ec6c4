#include "cluster_setup/crypto.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"

namespace weft::setup {
namespace {

constexpr std::uint64_t kValidSeconds = 10ULL * 365 * 86'400;
constexpr std::uint64_t kEarlySeconds = 3'600;  // clocks of nodes differ
constexpr long kX509Version3 = 2;
constexpr int kSerialBits = 127;

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Request = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;

Error crypto_error(std::string_view what) {
  ERR_clear_error();  // its texts name functions of libcrypto, and not what the user gave
  return {Errc::invalid, fmt::format("{}: libcrypto refuses it", what)};
}

Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(const Bio& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

// A wrong passphrase callback would ask the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*user*/) {
  return 0;
}

Result<Key> read_key(const std::string& pem) {
  Key key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_passphrase, nullptr));
  if (!key) return crypto_error("private key");
  return key;
}

Result<Certificate> read_certificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, no_passphrase, nullptr));
  if (!certificate) return crypto_error("certificate");
  return certificate;
}

std::string key_text(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(out);
}

bool set_name(X509_NAME* name, const std::string& text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

bool set_serial(X509* certificate) {
  const Number number(BN_new());
  return number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_times(X509* certificate, std::uint64_t now_s) {
  const auto begin = static_cast<time_t>(now_s - std::min(now_s, kEarlySeconds));
  const auto end = static_cast<time_t>(now_s + kValidSeconds);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), begin) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), end) != nullptr;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Begins a certificate for a key, which the caller completes and signs.
Result<Certificate> begin_certificate(EVP_PKEY* key, const std::string& name, std::uint64_t now_s) {
  Certificate certificate(X509_new());
  const bool made = certificate && X509_set_version(certificate.get(), kX509Version3) == 1 &&
                    set_serial(certificate.get()) && set_times(certificate.get(), now_s) &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    set_name(X509_get_subject_name(certificate.get()), name);
  if (!made) return crypto_error("certificate of " + printable(name));
  return certificate;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Returns the value of subjectAltName. A host with a character that has a meaning there is refused.
Result<std::string> alternative_names(const std::vector<std::string>& hosts) {
  std::string text;
  for (const std::string& host : hosts) {
    const auto is_plain = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    };
    const bool digits = is_address(host);
    if (!digits && (host.empty() || host.size() > limits::kJoinHostMax || !std::ranges::all_of(host, is_plain)))
      return Error{Errc::invalid, fmt::format("certificate: expected a host, got \"{}\"", printable(host))};
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", digits ? "IP" : "DNS", host);
  }
  return text;
}

Result<std::string> signed_text(X509* certificate, EVP_PKEY* key) {
  if (X509_sign(certificate, key, EVP_sha256()) == 0) return crypto_error("signature");
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_of(out);
}

}  // namespace

Digest hmac_sha256(const Digest& key, std::string_view text) {
  Digest out{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.bytes.data(), static_cast<int>(key.bytes.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.bytes.data()), &size);
  return out;
}

bool equals_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

void random_fill(std::span<std::byte> out) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size())) != 1) std::abort();
}

std::string make_private_key() {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) std::abort();  // without memory or random bytes
  return key_text(key.get());
}

Result<std::string> certificate_request(const std::string& key_pem, const std::string& name) {
  WEFT_TRY(const Key key, read_key(key_pem));
  const Request request(X509_REQ_new());
  const bool made = request && X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                    set_name(X509_REQ_get_subject_name(request.get()), name) &&
                    X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0;
  if (!made) return crypto_error("request for a certificate of " + printable(name));
  const Bio out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_REQ(out.get(), request.get());
  return text_of(out);
}

Result<Authority> Authority::make(const std::string& name, std::uint64_t now_s) {
  const std::string key_pem = make_private_key();
  WEFT_TRY(const Key key, read_key(key_pem));
  WEFT_TRY(const Certificate own, begin_certificate(key.get(), name, now_s));
  X509* const self = own.get();
  const bool made = X509_set_issuer_name(self, X509_get_subject_name(self)) == 1 &&
                    add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign,digitalSignature") &&
                    add_extension(self, self, NID_subject_key_identifier, "hash");
  if (!made) return crypto_error("certificate of the authority");
  WEFT_TRY(std::string certificate, signed_text(self, key.get()));
  return Authority({std::move(certificate), key_pem});
}

Result<Authority> Authority::open(const KeyedCertificate& files) {
  WEFT_TRY(const Certificate certificate, read_certificate(files.certificate));
  WEFT_TRY(const Key key, read_key(files.key));
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return Authority(files);
  return crypto_error("key of the authority: expected the one of its certificate, got another one");
}

Result<std::string> Authority::sign(const std::string& request_pem, const NodeSubject& subject,
                                    std::uint64_t now_s) const {
  WEFT_TRY(const Certificate issuer, read_certificate(files_.certificate));
  WEFT_TRY(const Key key, read_key(files_.key));
  const Request request(PEM_read_bio_X509_REQ(reader(request_pem).get(), nullptr, no_passphrase, nullptr));
  EVP_PKEY* const theirs = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  if (theirs == nullptr || X509_REQ_verify(request.get(), theirs) != 1)
    return crypto_error("request for a certificate");
  WEFT_TRY(const std::string hosts, alternative_names(subject.hosts));
  WEFT_TRY(const Certificate made, begin_certificate(theirs, subject.name, now_s));
  X509* const leaf = made.get();
  const bool complete = X509_set_issuer_name(leaf, X509_get_subject_name(issuer.get())) == 1 &&
                        add_extension(leaf, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                        add_extension(leaf, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
                        add_extension(leaf, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") &&
                        add_extension(leaf, issuer.get(), NID_authority_key_identifier, "keyid") &&
                        (hosts.empty() || add_extension(leaf, issuer.get(), NID_subject_alt_name, hosts));
  if (!complete) return crypto_error("certificate of " + printable(subject.name));
  return signed_text(leaf, key.get());
}

Result<Digest> public_key_digest(const std::string& certificate_pem) {
  WEFT_TRY(const Certificate certificate, read_certificate(certificate_pem));
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate.get()), &der);
  if (size <= 0) return crypto_error("public key of a certificate");
  const Digest digest = sha256(std::as_bytes(std::span(der, static_cast<std::size_t>(size))));
  OPENSSL_free(der);
  return digest;
}

}  // namespace weft::setup
