// What a daemon and the programs of its machine say to each other over STORE/weftd.sock. Each message is a length (u32,
// little-endian) and so many bytes of JSON, an object:
//   to the daemon    {"id", "request": NAME, "body", "fds"}  begins a request; no other in flight has `id`
//                    {"id", "more": true, "body", "fds"}     goes on with it, as the daemon's events ask
//                    {"id", "cancel": true}                  the answer is no longer wanted
//   from the daemon  {"id", "event": true, "body", "fds"}    any number, before
//                    {"id", "answer": true, "body", "fds"}   or
//                    {"id", "error": CODE, "message"}        which end the request
// "body" is an object, and may be left out. "fds" counts the descriptors that belong to the message; they travel with
// its last byte, so that a daemon never holds descriptors of a message that does not end. An error with the id
// kConnectionId ends the connection: the daemon takes no more of this user. Pure: bytes in, messages out. Every byte is
// hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft::control {

// A request that every daemon answers at once: it lives.
inline constexpr std::string_view kAliveRequest = "alive";

inline constexpr std::string_view kSocketName = "weftd.sock";  // in the store's directory
inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::uint64_t kConnectionId = 0;  // of no request

enum class MessageKind : std::uint8_t { request, more, cancel, event, answer, error };

// As it came in. Owns its descriptors.
struct Message {
  std::uint64_t id = 0;
  MessageKind kind = MessageKind::request;
  std::string name;          // request
  JsonValue body;            // always an object
  Error error;               // error
  std::size_t fd_count = 0;  // as the message says; `fds` is filled in by who has them
  std::vector<Fd> fds;
  std::shared_ptr<void> share;  // of what its sender may hold in the daemon; null when it has no descriptors
};

// As it goes out: length and JSON. `body` is the JSON of an object, or empty.
struct Draft {
  std::uint64_t id = 0;
  MessageKind kind = MessageKind::request;
  std::string_view name = {};
  std::string_view body = {};
  std::size_t fd_count = 0;
};
// Errc::invalid when it would be larger than limits::kControlMessageMax, or has too many descriptors.
Result<std::string> encode_message(const Draft& draft);
// An error's text is cut where it would be too long.
std::string encode_error(std::uint64_t id, const Error& error);

// One message's JSON, without its length. Errc::invalid for anything that is not as above.
Result<Message> parse_message(std::string_view json);

}  // namespace weft::control
