// The digest by which a hub lists the content of a file: the plain SHA-256 of a file in LFS, else the SHA-1 of the git
// blob. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>

#include "base/sha256.h"
#include "hub/hub_listing.h"

namespace weft {

class HubDigest {
 public:
  explicit HubDigest(const HubFile& file);

  void update(std::span<const std::byte> bytes);
  std::string finish();  // in hexadecimal; call it once

  static std::string expected(const HubFile& file);   // of the whole content, as finish() returns it
  static std::string_view name(const HubFile& file);  // "SHA-256" or "git SHA-1"

 private:
  std::variant<Sha256, Sha1> hash_;
};

}  // namespace weft
