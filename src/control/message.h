// Messages between a daemon and the programs of its machine, over STORE/weftd.sock. A message is a length (u32,
// little-endian) and a JSON object of that many bytes:
//   to the daemon    {"id", "request": NAME, "body", "fds"}  begins a request; `id` differs from all in flight
//                    {"id", "more": true, "body", "fds"}     replies to an event of the request
//                    {"id", "cancel": true}                  cancels the request
//   from the daemon  {"id", "event": true, "body", "fds"}    any number of events, then
//                    {"id", "answer": true, "body", "fds"}   either an answer,
//                    {"id", "error": CODE, "message"}        or an error, which ends the request
// "body" is an optional object. "fds" is the number of descriptors of the message. They travel with its last byte, so
// that a daemon never holds descriptors of an incomplete message. An error with the id kConnectionId ends the
// connection: the daemon accepts no more connections of this user. Pure: bytes in, messages out. Every byte is hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft::control {

// A request that every daemon answers at once, as a sign of life.
inline constexpr std::string_view kAliveRequest = "alive";

inline constexpr std::string_view kSocketName = "weftd.sock";  // in the store's directory
inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::uint64_t kConnectionId = 0;  // no request has this id

enum class MessageKind : std::uint8_t { request, more, cancel, event, answer, error };

// A received message. Owns its descriptors.
struct Message {
  std::uint64_t id = 0;
  MessageKind kind = MessageKind::request;
  std::string name;          // request
  JsonValue body;            // always an object
  Error error;               // error
  std::size_t fd_count = 0;  // "fds" of the JSON; MessageReader adds the descriptors
  std::vector<Fd> fds;
  std::shared_ptr<void> share;  // the sender's share of descriptors in the daemon; null without descriptors
};

// A message to send. `body` is the JSON of an object, or empty.
struct Draft {
  std::uint64_t id = 0;
  MessageKind kind = MessageKind::request;
  std::string_view name = {};
  std::string_view body = {};
  std::size_t fd_count = 0;
};
// Returns length and JSON. Errc::invalid: larger than limits::kControlMessageMax, or too many descriptors.
Result<std::string> encode_message(const Draft& draft);
// Returns length and JSON of an error message. Truncates a long error text.
std::string encode_error(std::uint64_t id, const Error& error);

// Parses the JSON of one message, without the length. Errc::invalid: not a message of the grammar above.
Result<Message> parse_message(std::string_view json);

}  // namespace weft::control
