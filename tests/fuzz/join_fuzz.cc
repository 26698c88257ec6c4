// Hostile words and messages of a join: tokens, requests to the first node, its answers, and the record of a setup. The
// first byte chooses. The checksum of a token is made right for one choice, so that its fields are reached.
#include <span>
#include <string>

#include "base/json_value.h"
#include "base/sha256.h"
#include "cluster_setup/join_messages.h"
#include "cluster_setup/setup.h"
#include "cluster_setup/token.h"
#include "fuzzing.h"
#include "registry/etcd/base64.h"

namespace {

using namespace weft;
using namespace weft::setup;

constexpr std::size_t kCheckBytes = 4;

void fuzz_token(std::string_view text) {
  const auto token = parse_token(text);
  if (!token.ok()) return fuzzing::require(token.error().message.find('\n') == std::string::npos, "one line");
  const auto again = parse_token(token_text(*token));
  fuzzing::require(again.ok() && token_text(*again) == token_text(*token), "a token has one text");
  fuzzing::require(again->endpoint == token->endpoint && again->uses > 0, "a token keeps its fields");
  const auto place = parse_place(token->endpoint);
  fuzzing::require(place.ok(), "a token leads to a place");
  const auto same = parse_place(place_text(*place));
  fuzzing::require(same.ok() && same->host == place->host && same->port == place->port, "a place has a text");
}

std::string with_checksum(std::string_view fields) {
  std::string bytes(fields);
  const Digest digest = sha256(std::as_bytes(std::span(bytes)));
  bytes.append(reinterpret_cast<const char*>(digest.bytes.data()), kCheckBytes);
  std::string text = to_base64(std::as_bytes(std::span(bytes)));
  while (text.ends_with('=')) text.pop_back();
  for (char& letter : text) letter = letter == '+' ? '-' : letter == '/' ? '_' : letter;
  return "weft1." + text;
}

void fuzz_messages(std::string_view text) {
  const auto json = JsonValue::parse(text);
  if (!json.ok()) return;
  if (const auto request = decode_fields<JoinRequest>(*json); request.ok())
    fuzzing::require(request->name.size() <= limits::kJoinNameMax && request->host.size() <= limits::kJoinHostMax,
                     "the texts of a request are bounded");
  static_cast<void>(decode_fields<JoinAnswer>(*json));
  static_cast<void>(decode_fields<JoinRefusal>(*json));
}

void fuzz_record(std::string_view text) {
  const auto record = parse_record(text);
  if (!record.ok()) return;
  const auto again = parse_record(record_text(*record));
  fuzzing::require(again.ok() && record_text(*again) == record_text(*record), "a record has one text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      fuzz_token(text);
      break;
    case 1:
      fuzz_token(with_checksum(text));
      break;
    case 2:
      fuzz_messages(text);
      break;
    default:
      fuzz_record(text);
  }
  return 0;
}
