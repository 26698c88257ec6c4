// Attacks by a sender without the cluster's key, who can reach a daemon and may have overheard other nodes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/cluster/exchange.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft::hostile {

using Frame = std::vector<std::byte>;

struct Victim {
  PeerAddress peer;
  std::string provider;
  std::string host;  // address of this node
};

struct Sent {
  std::size_t frames = 0;         // frames overheard or made
  std::size_t messages = 0;       // messages sent without the key
  std::size_t answers = 0;        // answers to the holder of the key, in the overheard session
  std::size_t answers_after = 0;  // answers to the holder of the key, in new sessions
};

// Returns the manifest of one version of a store.
Result<Digest> first_manifest(Store& has);

// Runs a session of a holder of the key, which requests and reads bytes. Sends all of its frames again while the
// session lives, and `times` times after its end. The holder's later calls must be answered, in new sessions.
Result<Sent> replay(const Victim& victim, const std::string& key_file, Store& has, std::size_t times);

// Sends `count` messages of each kind: random bytes; prefixes of a valid hello; hellos with a flipped bit; hellos from
// unused addresses; frames of each kind for unknown sessions.
Result<Sent> noise(const Victim& victim, std::size_t count);

// Sends `count` hellos, each from another unused address, slowly enough that all are received. They are made with the
// cluster's key, like overheard hellos that are sent again, or with another key if `key_file` is empty.
Result<Sent> crowd(const Victim& victim, const std::string& key_file, std::size_t count);

}  // namespace weft::hostile
