// What the verifier of FlatBuffers leaves to its callers: whether structs lie where their numbers may be read.
#pragma once

#include <cstdint>

namespace weft {

// `structs` is a flatbuffers::Vector of them.
template <class Struct, class Vector>
bool lies_aligned(const Vector& structs) {
  return reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

}  // namespace weft
