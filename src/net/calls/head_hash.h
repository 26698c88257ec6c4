// The hash of a head that is read from a window. Bytes of a window are not authenticated; the answer with the hash is.
#pragma once

#include <span>

#include "net/session/secret.h"

namespace weft::net {

inline Bytes32 head_hash(std::span<const std::byte> head) {
  return keyed_hash(Secret(), "weft head", std::span(&head, 1));
}

}  // namespace weft::net
