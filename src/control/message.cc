#include "control/message.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/errc_names.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "os/unix_socket.h"

namespace weft::control {
namespace {

constexpr std::size_t kErrorTextMax = 16U << 10U;
constexpr std::size_t kNameMax = 64;

// Kinds whose JSON member is `true`. The members of the other kinds are texts.
constexpr std::array<std::pair<MessageKind, std::string_view>, 4> kFlags = {{
    {MessageKind::more, "more"},
    {MessageKind::cancel, "cancel"},
    {MessageKind::event, "event"},
    {MessageKind::answer, "answer"},
}};

std::string framed(const std::string& json) {
  std::string frame;
  for (unsigned i = 0; i < kLengthBytes; ++i) frame += static_cast<char>(json.size() >> (8 * i));
  return frame + json;
}

Error not_a_message(std::string_view what) {
  return Error{Errc::invalid, fmt::format("a control message: {}", what)};
}

Status read_kind(const JsonValue& json, Message& message) {
  std::size_t kinds = 0;
  for (const auto& [kind, name] : kFlags) {
    if (json.find(name) == nullptr) continue;
    WEFT_TRY(const bool said, json.flag(name));
    if (!said) return not_a_message(fmt::format("expected \"{}\": true", name));
    message.kind = kind;
    ++kinds;
  }
  if (json.find("request") != nullptr) {
    WEFT_TRY(message.name, json.text("request"));
    message.kind = MessageKind::request;
    ++kinds;
  }
  if (json.find("error") != nullptr) {
    WEFT_TRY(const std::string code, json.text("error"));
    WEFT_TRY(message.error.message, json.text("message"));
    message.error.code = errc_named(code).value_or(Errc::internal);
    message.kind = MessageKind::error;
    ++kinds;
  }
  if (kinds != 1) return not_a_message(fmt::format("expected one kind, got {}", kinds));
  return {};
}

}  // namespace

Result<std::string> encode_message(const Draft& draft) {
  JsonWriter json;
  json.begin_object().member("id", draft.id);
  if (draft.kind == MessageKind::request) json.member("request", draft.name);
  for (const auto& [kind, name] : kFlags)
    if (draft.kind == kind) json.member(name, true);
  if (!draft.body.empty()) json.key("body").raw(draft.body);
  if (draft.fd_count > 0) json.member("fds", std::uint64_t{draft.fd_count});
  json.end_object();
  if (json.text().size() > limits::kControlMessageMax || draft.fd_count > kFdsAtOnceMax)
    return not_a_message(fmt::format("expected at most {} bytes and {} descriptors, got {} and {}",
                                     limits::kControlMessageMax, kFdsAtOnceMax, json.text().size(), draft.fd_count));
  return framed(json.text());
}

std::string encode_error(std::uint64_t id, const Error& error) {
  JsonWriter json;
  json.begin_object().member("id", id).member("error", errc_name(error.code));
  json.member("message", printable(error.message, kErrorTextMax)).end_object();
  return framed(json.text());
}

Result<Message> parse_message(std::string_view text) {
  if (text.size() > limits::kControlMessageMax)
    return not_a_message(fmt::format("expected at most {} bytes, got {}", limits::kControlMessageMax, text.size()));
  WEFT_TRY(const JsonValue json, JsonValue::parse(text, {limits::kControlDepthMax, limits::kControlValuesMax}));
  if (!json.is_object()) return not_a_message(fmt::format("expected an object, got {}", json.kind()));
  Message message;
  WEFT_TRY(message.id, json.number("id"));
  WEFT_CHECK(read_kind(json, message));
  if (message.kind == MessageKind::request && (message.name.empty() || message.name.size() > kNameMax))
    return not_a_message(fmt::format("expected a name of at most {} bytes", kNameMax));
  const JsonValue* body = json.find("body");
  message.body = body != nullptr ? *body : JsonValue(JsonValue::Object());
  if (!message.body.is_object()) return not_a_message(fmt::format("expected an object as body, got {}", body->kind()));
  WEFT_TRY(const std::uint64_t fds, json.number_or("fds", 0));
  if (fds > kFdsAtOnceMax)
    return not_a_message(fmt::format("expected at most {} descriptors, got {}", kFdsAtOnceMax, fds));
  message.fd_count = static_cast<std::size_t>(fds);
  return message;
}

}  // namespace weft::control
