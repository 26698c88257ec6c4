// Decodes the answers of etcd's JSON gateway.
#include <fmt/core.h>

#include "base/json_value.h"
#include "base/limits.h"
#include "base/text.h"
#include "registry/etcd/base64.h"
#include "registry/etcd/etcd_wire.h"

namespace weft::etcd {
namespace {

Error wrong(std::string_view where, std::string_view expected) {
  return Error{Errc::io, fmt::format("{}: expected etcd's JSON, {}", where, expected)};
}

Result<JsonValue> parse(std::string_view text, std::string_view where) {
  auto root = JsonValue::parse(text, {limits::kEtcdDepthMax, limits::kEtcdValuesMax});
  if (!root.ok()) return Error{Errc::io, fmt::format("{}: {}", where, root.error().message)};
  if (root->object() == nullptr) return wrong(where, "an object");
  return root;
}

// Reads the members of one object. A missing member is zero or empty; a member of another type is an error.
class Members {
 public:
  Members(const JsonValue& object, std::string_view where) : object_(object), where_(where) {}

  // Accepts strings too: etcd writes 64-bit numbers as strings. Revisions and ids are never negative.
  Status number(std::string_view name, std::uint64_t& out) const {
    const JsonValue* value = find(name);
    if (value == nullptr || value->text() == nullptr) return scalar(name, "a number", &JsonValue::number, out);
    const auto number = parse_u64(*value->text());
    if (!number) return wrong(where_, fmt::format("a number as \"{}\"", name));
    out = *number;
    return {};
  }
  Status flag(std::string_view name, bool& out) const { return scalar(name, "true or false", &JsonValue::flag, out); }
  Status text(std::string_view name, std::string& out) const { return scalar(name, "a text", &JsonValue::text, out); }
  Result<std::vector<std::byte>> bytes(std::string_view name) const {
    std::string encoded;
    WEFT_CHECK(text(name, encoded));
    auto decoded = from_base64(encoded);
    if (!decoded) return wrong(where_, fmt::format("base64 as \"{}\"", name));
    return std::move(*decoded);
  }
  Result<const JsonValue*> object(std::string_view name) const {  // nullptr if missing
    const JsonValue* value = find(name);
    if (value != nullptr && value->object() == nullptr) return wrong(where_, fmt::format("an object as \"{}\"", name));
    return value;
  }
  Result<const JsonValue::Array*> array(std::string_view name) const {
    static const JsonValue::Array kNone;
    const JsonValue* value = find(name);
    if (value == nullptr) return &kNone;
    if (value->array() == nullptr) return wrong(where_, fmt::format("an array as \"{}\"", name));
    return value->array();
  }
  Result<std::vector<std::string>> texts(std::string_view name) const {
    WEFT_TRY(const JsonValue::Array* items, array(name));
    std::vector<std::string> out;
    for (const JsonValue& item : *items) {
      if (item.text() == nullptr) return wrong(where_, fmt::format("texts as \"{}\"", name));
      out.push_back(*item.text());
    }
    return out;
  }

 private:
  template <class T>
  Status scalar(std::string_view name, std::string_view what, const T* (JsonValue::*kind)() const, T& out) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return {};
    const T* found = (value->*kind)();
    if (found == nullptr) return wrong(where_, fmt::format("{} as \"{}\"", what, name));
    out = *found;
    return {};
  }
  const JsonValue* find(std::string_view name) const {
    const JsonValue* value = object_.find(name);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  const JsonValue& object_;
  std::string_view where_;
};

Result<Header> read_header(const JsonValue& answer, std::string_view where) {
  Header header;
  WEFT_TRY(const JsonValue* value, Members(answer, where).object("header"));
  if (value == nullptr) return wrong(where, "a header");
  Members members(*value, where);
  WEFT_CHECK(members.number("cluster_id", header.cluster));
  WEFT_CHECK(members.number("revision", header.revision));
  return header;
}

Result<KeyValue> read_item(const JsonValue& value, std::string_view where) {
  if (value.object() == nullptr) return wrong(where, "a key with its value");
  Members members(value, where);
  KeyValue item;
  WEFT_TRY(std::vector<std::byte> key, members.bytes("key"));
  if (key.empty()) return wrong(where, "a key, got an empty one");
  item.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  WEFT_TRY(item.value, members.bytes("value"));
  WEFT_CHECK(members.number("mod_revision", item.mod_revision));
  WEFT_CHECK(members.number("create_revision", item.create_revision));
  return item;
}

Result<RangeAnswer> read_range(const JsonValue& value, std::string_view where) {
  RangeAnswer answer;
  Members members(value, where);
  WEFT_TRY(const JsonValue::Array* items, members.array("kvs"));
  for (const JsonValue& one : *items) {
    WEFT_TRY(KeyValue item, read_item(one, where));
    answer.items.push_back(std::move(item));
  }
  WEFT_CHECK(members.flag("more", answer.more));
  return answer;
}

Result<Event> read_event(const JsonValue& value, std::string_view where) {
  if (value.object() == nullptr) return wrong(where, "an event");
  Members members(value, where);
  Event event;
  std::string type;
  WEFT_CHECK(members.text("type", type));
  if (!type.empty() && type != "PUT" && type != "DELETE") return wrong(where, "PUT or DELETE as \"type\"");
  event.deleted = type == "DELETE";
  WEFT_TRY(const JsonValue* item, members.object("kv"));
  if (item == nullptr) return wrong(where, "an event with a key");
  WEFT_TRY(event.item, read_item(*item, where));
  return event;
}

// Returns the result of a stream's message, {"result": …}.
Result<const JsonValue*> read_result(const JsonValue& root, std::string_view text, std::string_view where) {
  Members members(root, where);
  if (root.find("error") != nullptr) return error_of(0, text, where);
  WEFT_TRY(const JsonValue* result, members.object("result"));
  if (result == nullptr) return wrong(where, "a result");
  return result;
}

Result<LeaseAnswer> read_lease(const JsonValue& value, std::string_view where) {
  LeaseAnswer answer;
  WEFT_TRY(answer.header, read_header(value, where));
  Members members(value, where);
  WEFT_CHECK(members.number("ID", answer.id));
  WEFT_CHECK(members.number("TTL", answer.ttl_s));
  return answer;
}

}  // namespace

Result<RangeAnswer> decode_range(std::string_view text, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(text, where));
  WEFT_TRY(RangeAnswer answer, read_range(root, where));
  WEFT_TRY(answer.header, read_header(root, where));
  return answer;
}

Result<TxnAnswer> decode_txn(std::string_view text, std::size_t ops, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(text, where));
  TxnAnswer answer;
  WEFT_TRY(answer.header, read_header(root, where));
  Members members(root, where);
  WEFT_CHECK(members.flag("succeeded", answer.succeeded));
  WEFT_TRY(const JsonValue::Array* responses, members.array("responses"));
  if (!answer.succeeded) return answer;
  if (responses->size() != ops) return wrong(where, fmt::format("{} responses, got {}", ops, responses->size()));
  for (const JsonValue& response : *responses) {
    RangeAnswer range;
    WEFT_TRY(const JsonValue* value, Members(response, where).object("response_range"));
    if (value != nullptr) {
      WEFT_TRY(range, read_range(*value, where));
    }
    answer.ranges.push_back(std::move(range));
  }
  return answer;
}

Result<LeaseAnswer> decode_lease_grant(std::string_view text, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(text, where));
  WEFT_TRY(LeaseAnswer answer, read_lease(root, where));
  if (answer.id == 0) return wrong(where, "the id of a lease");
  return answer;
}

Result<std::vector<EtcdMember>> decode_members(std::string_view text, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(text, where));
  WEFT_TRY(const JsonValue::Array* items, Members(root, where).array("members"));
  std::vector<EtcdMember> all;
  for (const JsonValue& item : *items) {
    if (item.object() == nullptr) return wrong(where, "a member");
    EtcdMember one;
    const Members fields(item, where);
    WEFT_CHECK(fields.number("ID", one.id));
    WEFT_CHECK(fields.text("name", one.name));
    WEFT_CHECK(fields.flag("isLearner", one.is_learner));
    WEFT_TRY(one.peer_urls, fields.texts("peerURLs"));
    WEFT_TRY(one.client_urls, fields.texts("clientURLs"));
    if (one.id == 0 || one.peer_urls.empty()) return wrong(where, "a member with an id and a URL");
    all.push_back(std::move(one));
  }
  return all;
}

Result<LeaseAnswer> decode_keep_alive(std::string_view line, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(line, where));
  WEFT_TRY(const JsonValue* result, read_result(root, line, where));
  return read_lease(*result, where);
}

Result<std::string> decode_login(std::string_view text, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(text, where));
  std::string token;
  WEFT_CHECK(Members(root, where).text("token", token));
  auto printing = [](char c) { return c > 0x20 && c < 0x7f; };
  for (char c : token)
    if (!printing(c)) return wrong(where, "a token without spaces and control characters");
  if (token.empty() || token.size() > limits::kEtcdTokenMax) return wrong(where, "a token");
  return token;
}

Result<WatchAnswer> decode_watch(std::string_view line, std::string_view where) {
  WEFT_TRY(JsonValue root, parse(line, where));
  WEFT_TRY(const JsonValue* result, read_result(root, line, where));
  WatchAnswer answer;
  WEFT_TRY(answer.header, read_header(*result, where));
  Members members(*result, where);
  WEFT_CHECK(members.flag("created", answer.created));
  WEFT_CHECK(members.flag("canceled", answer.canceled));
  WEFT_CHECK(members.flag("fragment", answer.fragment));
  WEFT_CHECK(members.number("compact_revision", answer.compacted));
  WEFT_CHECK(members.text("cancel_reason", answer.reason));
  WEFT_TRY(const JsonValue::Array* events, members.array("events"));
  for (const JsonValue& one : *events) {
    WEFT_TRY(Event event, read_event(one, where));
    answer.events.push_back(std::move(event));
  }
  return answer;
}

namespace {

// The gRPC status codes that etcd uses.
enum : std::uint64_t {
  kCanceled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

constexpr int kRequestTimeout = 408;

// Errors from before a change is proposed to the etcd members. Other UNAVAILABLE errors, such as a stopping server or a
// closed transport, may come after the proposal.
constexpr std::string_view kNotProposed[] = {"etcdserver: no leader", "etcdserver: not capable",
                                             "all SubConns are in TransientFailure"};

constexpr std::string_view kLoginStale[] = {"invalid auth token", "revision of auth store is old"};
constexpr std::string_view kTooLarge = "larger than max";
constexpr std::string_view kTooLargeHere = "expected an answer of at most";  // of HttpClient

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Errc code_of(std::uint64_t grpc, int http, std::string_view message) {
  switch (grpc) {
    case kOutOfRange:
      return has(message, "revision") ? Errc::changed : Errc::invalid;
    case kPermissionDenied:
    case kUnauthenticated:
      return Errc::permission;
    case kInvalidArgument:
      return has(message, "auth") || has(message, "user name") ? Errc::permission : Errc::invalid;
    case kResourceExhausted:
      if (has(message, "space exceeded")) return Errc::no_space;
      return has(message, "too many requests") ? Errc::busy : Errc::invalid;
    case kUnavailable:
      for (std::string_view said : kNotProposed)
        if (has(message, said)) return Errc::unreachable;
      return Errc::timed_out;
    case kFailedPrecondition:
      return has(message, "auth") ? Errc::permission : Errc::invalid;
    case kCanceled:
    case kUnknown:
    case kDeadlineExceeded:
    case kAborted:
    case kInternal:
    case kDataLoss:
      return Errc::timed_out;
    default:
      return http >= 500 || http == 0 || http == kRequestTimeout ? Errc::timed_out : Errc::invalid;
  }
}

}  // namespace

Error error_of(int http_status, std::string_view text, std::string_view where) {
  auto root = JsonValue::parse(text, {limits::kEtcdDepthMax, limits::kEtcdErrorValuesMax});
  std::uint64_t grpc = 0;
  std::string message;
  if (root.ok()) {
    const JsonValue* error = root->find("error");
    const JsonValue& fields = error != nullptr && error->object() != nullptr ? *error : *root;
    for (const char* name : {"code", "grpc_code"})
      if (const JsonValue* code = fields.find(name); code != nullptr && code->number() != nullptr)
        grpc = *code->number();
    if (const JsonValue* said = fields.find("message"); said != nullptr && said->text() != nullptr)
      message = printable(*said->text());
  }
  if (message.empty()) message = fmt::format("HTTP status {}, and no reason", http_status);
  return Error{code_of(grpc, http_status, message), fmt::format("{}: {}", where, message)};
}

bool is_stale_login(const Error& error) {
  return error.code == Errc::permission && (has(error.message, kLoginStale[0]) || has(error.message, kLoginStale[1]));
}

bool is_too_large(const Error& error) {
  return (error.code == Errc::invalid && has(error.message, kTooLarge)) ||
         (error.code == Errc::io && has(error.message, kTooLargeHere));
}

}  // namespace weft::etcd
