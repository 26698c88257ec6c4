// A change of the cluster's key, step by step (net/session/key_files.cc, daemon/peers.cc). Nodes order the steps of
// each other, through their sessions. Every step may be ordered twice, so a change that was interrupted can be done
// again from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kKeyNameDigits = 16;
inline constexpr const char* kNextKeySuffix = ".next";  // FILE.next: a key that is accepted and not used yet

// On the wire: never renumber. Nodes `accept` a new key, then `use` it for their own proofs, then `forget` the old one.
enum class KeyStep : std::uint8_t { accept = 1, use = 2, forget = 3 };

struct KeyOrder {
  KeyStep step = KeyStep::accept;
  std::string name;      // of the key: kKeyNameDigits hexadecimal digits (Exchange::key_names)
  std::string key = {};  // `accept`: the bytes of the file; else empty
  bool operator==(const KeyOrder&) const = default;
};

// The keys of a node, by name. While no change has begun, only the first.
struct KeyState {
  std::string proving;   // proved, and accepted
  std::string next;      // accepted, not used yet; or ""
  std::string previous;  // still accepted; or ""
  std::string made;      // made by this node for a change; or ""
  // The new key of a change that has not ended; "" without one.
  const std::string& changing() const { return previous.empty() ? next : proving; }
};

// Any thread.
class KeyFollower {
 public:
  virtual ~KeyFollower() = default;
  // Does the step on this node. Errc::exists: this node is in another change. Errc::not_found: it lacks the key.
  // Errc::invalid: it would forget the key that it proves. Others: the files of the keys cannot be written.
  virtual Status follow(const KeyOrder& order) = 0;
};

}  // namespace weft
