#include "cluster_setup/ask_to_join.h"

#include <fmt/core.h>

#include <span>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "cluster_setup/crypto.h"
#include "http/client/http_client.h"
#include "registry/etcd/base64.h"

namespace weft::setup {
namespace {

HttpOptions options_for(const Token& token, const JoinWish& wish) {
  HttpOptions options;
  options.connect_max = wish.patience;
  options.answer_max = limits::kJoinAnswerMax;
  options.pinned_key = "sha256//" + to_base64(std::as_bytes(std::span(token.key.bytes)));
  return options;
}

// Returns the refusal of an answer that is not 200.
Error refusal_in(const HttpAnswer& answer, const std::string& where) {
  const auto json = JsonValue::parse(answer.body);
  auto refusal = json.ok() ? decode_fields<JoinRefusal>(*json) : Result<JoinRefusal>(json.error());
  if (refusal.ok()) return {Errc::permission, fmt::format("{}: {}", where, printable(refusal->error, 500))};
  return {Errc::io,
          fmt::format("{}: expected a node that admits others, got an answer with status {}", where, answer.status)};
}

Error explained(Error error, const std::string& where) {
  if (error.code == Errc::permission)
    error.message = fmt::format("{}: expected the node that made the token, got one with another key", where);
  if (error.code == Errc::timed_out)
    error.message += "; the node may have counted this use of the token: if it refuses the token now, make another one";
  return error;
}

// Checks an answer, and puts the bytes of the cluster's key in the place of their Base64.
Status complete(JoinAnswer& answer) {
  if (answer.etcd.endpoints.empty()) return Error{Errc::io, "the answer has no endpoint of etcd"};
  const auto key = from_base64(answer.cluster_key);
  if (!key || key->empty()) return Error{Errc::io, "the answer has no key of the cluster"};
  answer.cluster_key.assign(reinterpret_cast<const char*>(key->data()), key->size());
  return {};
}

}  // namespace

Result<JoinAnswer> ask_to_join(const Token& token, const JoinWish& wish) {
  const std::string key = make_private_key();
  JoinRequest request;
  request.token = token_text(token);
  request.name = wish.name;
  request.host = wish.host;
  request.peer_port = wish.peer_port;
  request.time_s = wish.time_s;
  WEFT_TRY(request.request, certificate_request(key, wish.name));
  HttpClient client(options_for(token, wish));
  auto answer = client.post(fmt::format("https://{}{}", token.endpoint, kJoinPath), encode_fields(request), "",
                            HttpClient::Clock::now() + wish.patience);
  if (!answer.ok()) return explained(std::move(answer).error(), token.endpoint);
  if (answer->status != 200) return refusal_in(*answer, token.endpoint);
  WEFT_TRY(const JsonValue json, JsonValue::parse(answer->body));
  WEFT_TRY(JoinAnswer joined, decode_fields<JoinAnswer>(json));
  if (const Status whole = complete(joined); !whole.ok())
    return Error{whole.error().code, fmt::format("{}: {}", token.endpoint, whole.error().message)};
  if (joined.etcd.key.empty() && !joined.etcd.certificate.empty()) joined.etcd.key = key;
  return joined;
}

}  // namespace weft::setup
