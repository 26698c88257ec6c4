// A check that FlatBuffers' verifier leaves to its callers: whether structs are aligned for the numbers in them.
#pragma once

#include <cstdint>

namespace weft {

// `structs` is a flatbuffers::Vector of Struct. An empty one may lie anywhere.
template <class Struct, class Vector>
bool lies_aligned(const Vector& structs) {
  return structs.size() == 0 || reinterpret_cast<std::uintptr_t>(structs.Data()) % alignof(Struct) == 0;
}

}  // namespace weft
