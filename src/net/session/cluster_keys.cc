#include "net/session/cluster_keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace weft::net {

ClusterKey::ClusterKey(const Secret& key)
    : psk_(derive(key, "weft noise psk", {})), id_(keyed_hash(key, "weft key id", {})), proofs_(key) {}

std::string ClusterKey::name() const {
  constexpr std::size_t kNameBytes = 8;
  std::string out;
  for (const std::byte one : std::span(id_).first<kNameBytes>())
    out += fmt::format("{:02x}", std::to_integer<unsigned>(one));
  return out;
}

KeyRing::KeyRing(const Secret& proving, const std::optional<Secret>& other) {
  keys_.emplace_back(proving);
  if (!other) return;
  ClusterKey second(*other);
  if (second.id() != keys_.front().id()) keys_.push_back(std::move(second));
}

const ClusterKey* KeyRing::find(const Bytes32& id) const {
  const auto found = std::ranges::find(keys_, id, &ClusterKey::id);
  return found == keys_.end() ? nullptr : &*found;
}

KeyRing KeyRing::proving_by(const Bytes32& id) const {
  KeyRing out(*this);
  std::rotate(out.keys_.begin(), std::ranges::find(out.keys_, id, &ClusterKey::id), out.keys_.end());
  return out;
}

Result<KeyRing> read_key_ring(const std::string& file) {
  WEFT_TRY(const Secret proving, read_cluster_key(file));
  std::optional<Secret> other;
  for (const char* suffix : {kNextKeySuffix, kPreviousKeySuffix}) {
    auto key = read_cluster_key(file + suffix);
    if (!key.ok() && key.error().code == Errc::not_found) continue;
    if (!key.ok()) return std::move(key).error();
    if (equal_in_constant_time(key->bytes(), proving.bytes())) continue;
    if (other && !equal_in_constant_time(key->bytes(), other->bytes()))
      return Error{Errc::invalid, fmt::format("key file {}: expected two keys at most, got three with {}{} and {}{}",
                                              file, file, kNextKeySuffix, file, kPreviousKeySuffix)};
    other = *key;
  }
  return KeyRing(proving, other);
}

}  // namespace weft::net
