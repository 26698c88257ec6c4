#include "net/calls/call_messages.h"

#include <utility>

#include "net/session/wire_tables.h"
#include "weft/cluster/exchange.h"

namespace weft::net {
namespace {

constexpr std::size_t kErrorTextMax = 1024;

using Builder = flatbuffers::FlatBufferBuilder;
using Encoded = std::pair<wire::Body, flatbuffers::Offset<void>>;

Encoded encode(Builder& builder, const CallMessage& call) {
  return {wire::Body::Call, wire::CreateCall(builder, call.id, packed(builder, call.request)).Union()};
}

Encoded encode(Builder& builder, const AnswerMessage& answer) {
  const auto head = packed(builder, answer.head);
  std::vector<flatbuffers::Offset<wire::OpenWindow>> windows;
  for (const RemoteWindow& window : answer.windows)
    windows.push_back(wire::CreateOpenWindow(builder, window.address, window.key, window.length));
  const auto opened = builder.CreateVector(windows);
  const wire::Bytes32 hash = packed(answer.head_hash.value_or(Bytes32{}));
  return {wire::Body::Answer,
          wire::CreateAnswer(builder, answer.id, head, answer.head_hash ? &hash : nullptr, opened).Union()};
}

Encoded encode(Builder& builder, const FailureMessage& failure) {
  const auto text = builder.CreateString(failure.error.message.substr(0, kErrorTextMax));
  const auto code = static_cast<std::uint8_t>(failure.error.code);
  return {wire::Body::Failure, wire::CreateFailure(builder, failure.id, code, text).Union()};
}

Encoded encode(Builder& builder, const DoneMessage& done) {
  return {wire::Body::Done, wire::CreateDone(builder, done.id, done.read_bytes).Union()};
}

Encoded encode(Builder& builder, const AskMessage& ask) {
  return {wire::Body::Ask, wire::CreateAsk(builder, ask.id, ask.number, ask.has_answer).Union()};
}

Encoded encode(Builder& builder, const KnownMessage& known) {
  const auto state = static_cast<std::uint8_t>(known.state);
  return {wire::Body::Known, wire::CreateKnown(builder, known.id, known.number, state).Union()};
}

Result<CallBody> decode(const wire::Call& call) {
  if (call.request()->size() > kRequestBytesMax)
    return Error{Errc::invalid, fmt::format("a request of {} bytes", call.request()->size())};
  return CallBody(CallMessage{call.id(), unpacked(*call.request())});
}

Result<CallBody> decode(const wire::Answer& answer) {
  AnswerMessage out;
  out.id = answer.id();
  if (answer.head() != nullptr) out.head = unpacked(*answer.head());
  if (answer.head_hash() != nullptr) out.head_hash = unpacked(*answer.head_hash());
  const std::size_t windows = answer.windows() == nullptr ? 0 : answer.windows()->size();
  if (windows > kAnswerWindowsMax + 1 || (out.head_hash && windows == 0))
    return Error{Errc::invalid, fmt::format("an answer with {} windows", windows)};
  for (std::size_t i = 0; i < windows; ++i) {
    const wire::OpenWindow* window = answer.windows()->Get(static_cast<flatbuffers::uoffset_t>(i));
    out.windows.push_back({window->address(), window->key(), window->length()});
  }
  if (out.head_hash && out.windows.front().length > kHeadBytesMax)
    return Error{Errc::invalid, fmt::format("an answer with a head of {} bytes", out.windows.front().length)};
  return CallBody(std::move(out));
}

// Returns a peer's text as one printable line, because it goes to logs and users.
std::string one_line(const flatbuffers::String* text) {
  std::string out = text == nullptr ? "" : text->str().substr(0, kErrorTextMax);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

Result<CallBody> decode(const wire::Failure& failure) {
  const bool known = failure.code() <= static_cast<std::uint8_t>(Errc::internal);
  return CallBody(FailureMessage{failure.id(),
                                 {known ? static_cast<Errc>(failure.code()) : Errc::io, one_line(failure.message())}});
}

Result<CallBody> decode(const wire::Done& done) {
  return CallBody(DoneMessage{done.id(), done.read_bytes()});
}

Result<CallBody> decode(const wire::Ask& ask) {
  return CallBody(AskMessage{ask.id(), ask.number(), ask.has_answer()});
}

Result<CallBody> decode(const wire::Known& known) {
  if (known.state() > static_cast<std::uint8_t>(CallState::answered))
    return Error{Errc::invalid, fmt::format("a call in state {}", known.state())};
  return CallBody(KnownMessage{known.id(), known.number(), static_cast<CallState>(known.state())});
}

}  // namespace

std::vector<std::byte> encode_body(const CallBody& body) {
  Builder builder(kPayloadBytesMax);
  const auto [type, offset] = std::visit([&](const auto& message) { return encode(builder, message); }, body);
  builder.Finish(wire::CreateMessage(builder, type, offset));
  return finished(builder);
}

Result<CallBody> decode_body(std::span<const std::byte> payload) {
  WEFT_TRY(const auto message, Decoded<wire::Message>::make(payload, "message of a session"));
  switch (message->body_type()) {
    case wire::Body::Call:
      return decode(*message->body_as_Call());
    case wire::Body::Answer:
      return decode(*message->body_as_Answer());
    case wire::Body::Failure:
      return decode(*message->body_as_Failure());
    case wire::Body::Done:
      return decode(*message->body_as_Done());
    case wire::Body::Ask:
      return decode(*message->body_as_Ask());
    case wire::Body::Known:
      return decode(*message->body_as_Known());
    case wire::Body::NONE:
      break;
  }
  return Error{Errc::invalid, fmt::format("a message of kind {}", static_cast<unsigned>(message->body_type()))};
}

}  // namespace weft::net
