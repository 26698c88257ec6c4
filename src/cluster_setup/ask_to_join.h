// The side of the machine that joins: asks the first node for what a node of its cluster needs.
#pragma once

#include <chrono>
#include <string>

#include "cluster_setup/join_messages.h"
#include "cluster_setup/token.h"
#include "weft/result.h"

namespace weft::setup {

struct JoinWish {
  std::string name;             // of this node
  std::string host;             // that it will listen at
  std::uint16_t peer_port = 0;  // as JoinRequest::peer_port
  std::uint64_t time_s = 0;     // its clock, seconds since 1970
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

// Asks the node that the token names. The secret goes only to a node with the key that the token names. `answer.etcd`
// gets its private key here, and `cluster_key` has
// bytes. Errc::unreachable: nothing was sent. Errc::timed_out:
// the token may be used up. Errc::permission: the node refused, or is another one; the message is for the user.
Result<JoinAnswer> ask_to_join(const Token& token, const JoinWish& wish);

}  // namespace weft::setup
