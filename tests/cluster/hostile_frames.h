// What somebody sends who holds no key, but reaches a daemon, and may have overheard others.
#pragma once

#include <cstddef>
#include <string>

#include "weft/exchange.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft::hostile {

struct Victim {
  PeerAddress peer;
  std::string provider;
  std::string host;  // ours
};

struct Sent {
  std::size_t frames = 0;         // that were overheard, or made
  std::size_t messages = 0;       // sent without the key
  std::size_t answers = 0;        // to who holds the key, whose session was overheard
  std::size_t answers_after = 0;  // to the same, by the sessions that it made anew
};

// A session of somebody who holds the key, with bytes that are asked for and read, and all that it sent once more:
// while it lives, and `times` after its end. The first call after each must be answered: by a new session.
Result<Sent> replay(const Victim& victim, const std::string& key_file, Store& has, std::size_t times);

// `count` messages each of: random bytes; beginnings of a true hello; hellos with a flipped bit; hellos from addresses
// where nobody is; frames of each kind for sessions that nobody has.
Result<Sent> noise(const Victim& victim, std::size_t count);

// `count` hellos that name an address each where nobody is, slowly enough to be heard all. Made with the cluster's key,
// as who has overheard many can say them again, or with another where `key_file` is empty.
Result<Sent> crowd(const Victim& victim, const std::string& key_file, std::size_t count);

}  // namespace weft::hostile
