// Hostile data from etcd's gateway: answers, lines of streams, keys, and sealed values with any content.
#include <algorithm>

#include "diskformat/hash.h"
#include "diskformat/record.h"
#include "fuzzing.h"
#include "registry/etcd/etcd_wire.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"

namespace {

using namespace weft;

constexpr std::string_view kBound = "k";

void fuzz_answers(std::string_view text) {
  static_cast<void>(etcd::decode_range(text, "x"));
  static_cast<void>(etcd::decode_txn(text, 2, "x"));
  static_cast<void>(etcd::decode_lease_grant(text, "x"));
  static_cast<void>(etcd::decode_keep_alive(text, "x"));
  static_cast<void>(etcd::decode_watch(text, "x"));
  const Error error = etcd::error_of(400, text, "x");
  fuzzing::require(error.message.starts_with("x: ") && error.message.find('\n') == std::string::npos,
                   "messages are one line and begin with the place");
  if (const auto token = etcd::decode_login(text, "x"); token.ok())
    fuzzing::require(std::none_of(token->begin(), token->end(), [](char c) { return c <= ' ' || c > '~'; }),
                     "a token cannot end its header");
}

void fuzz_key(std::string_view text) {
  static const RegistryKeys keys("/weft", "main");
  const std::string key = "/weft/main/" + std::string(text);
  const auto parsed = keys.parse(key);
  if (parsed.ok() && parsed->kind == KeyKind::version)
    fuzzing::require(keys.version(parsed->model, parsed->number) == key, "a version has one key");
}

void fuzz_values(std::span<const std::byte> payload) {
  const std::uint64_t seed = xxh3_64(std::as_bytes(std::span(kBound)));
  auto sealed = [&](RecordKind kind) { return seal_record(kind, payload, seed); };
  if (const auto version = open_version(sealed(RecordKind::registry_version), kBound); version.ok())
    fuzzing::require(open_version(seal(*version, kBound), kBound).ok(), "a version is sealed as it was");
  static_cast<void>(open_tombstone(sealed(RecordKind::registry_tombstone), kBound));
  static_cast<void>(open_tag(sealed(RecordKind::registry_tag), kBound));
  static_cast<void>(open_head(sealed(RecordKind::registry_head), kBound));
  static_cast<void>(open_member(sealed(RecordKind::registry_member), kBound));
  static_cast<void>(open_node(sealed(RecordKind::registry_node), kBound));
  if (const auto holder = open_claim(sealed(RecordKind::registry_claim), kBound); holder.ok())
    fuzzing::require(open_claim(seal(*holder, kBound), kBound).value() == *holder, "a claim is sealed as it was");
  static_cast<void>(open_share(sealed(RecordKind::registry_mark), kBound));
  static_cast<void>(open_meta(sealed(RecordKind::registry_meta), kBound));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz_answers(text);
  fuzz_key(text);
  fuzz_values(std::as_bytes(std::span(data, size)));
  return 0;
}
