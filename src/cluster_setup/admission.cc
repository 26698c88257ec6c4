#include "cluster_setup/admission.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "cluster_setup/private_files.h"
#include "os/sys.h"
#include "registry/etcd/base64.h"
#include "registry/join_uses.h"
#include "weft/cluster/key_change.h"

namespace weft::setup {
namespace {

constexpr auto kUsesKept = std::chrono::hours(24);  // after the token has expired: this node's clock may be set back

std::string hex_of(const TokenId& id) {
  std::string text;
  for (const std::uint8_t byte : id) text += fmt::format("{:02x}", byte);
  return text;
}

int status_of(Errc code) {
  switch (code) {
    case Errc::invalid:
      return 400;
    case Errc::permission:
      return 403;
    default:
      return 503;
  }
}

Error refused(std::string message) {
  return {Errc::permission, std::move(message)};
}

Status check_clock(std::uint64_t theirs_s, std::uint64_t own_s) {
  const std::uint64_t apart = std::max(theirs_s, own_s) - std::min(theirs_s, own_s);
  if (apart <= limits::kJoinClockMax) return {};
  return refused(
      fmt::format("the clock of the machine that joins is {} s {} this node's, and certificates would not be "
                  "valid there: expected at most {} s; set the clock",
                  apart, theirs_s < own_s ? "behind" : "ahead of", limits::kJoinClockMax));
}

}  // namespace

Result<AdmissionKeys> read_admission_keys(const std::string& directory) {
  const auto path = [&](std::string_view name) { return fmt::format("{}/{}", directory, name); };
  KeyedCertificate files;
  WEFT_TRY(files.certificate, read_setup_file(path(kAuthorityCertificate)));
  WEFT_TRY(files.key, read_private_file(path(kAuthorityKey)));
  WEFT_TRY(Authority authority, Authority::open(files));
  WEFT_TRY(const std::string key, read_private_file(path(kTokenKeyFile)));
  AdmissionKeys keys{std::move(authority), {}};
  if (key.size() != keys.token_key.bytes.size())
    return Error{Errc::invalid, fmt::format("{}: expected {} bytes, got {}", path(kTokenKeyFile),
                                            keys.token_key.bytes.size(), key.size())};
  std::ranges::copy(key, keys.token_key.bytes.begin());
  return keys;
}

Admission::Admission(AdmissionKeys keys, AdmittingNode node, Clock clock)
    : keys_(std::move(keys)),
      node_(std::move(node)),
      clock_(std::move(clock)),
      client_(node_.etcd),
      registry_keys_(node_.etcd.prefix, node_.etcd.cluster) {}

Admission::Reply Admission::answer(std::string_view body) {
  const auto admitted = [&]() -> Result<JoinAnswer> {
    WEFT_TRY(const JsonValue json, JsonValue::parse(body));
    WEFT_TRY(const JoinRequest request, decode_fields<JoinRequest>(json));
    return admit(request);
  }();
  if (admitted.ok()) return {200, encode_fields(*admitted)};
  return {status_of(admitted.error().code), encode_fields(JoinRefusal{admitted.error().message})};
}

Result<JoinAnswer> Admission::admit(const JoinRequest& request) {
  WEFT_TRY(const Token token, check(request));
  JoinAnswer answer{node_.name, node_.etcd.cluster, {}, node_.origin, {}, {}};
  WEFT_TRY(const std::string key, read_private_file(node_.key_file));
  WEFT_CHECK(check_key_stays());
  answer.cluster_key = to_base64(std::as_bytes(std::span(key)));
  WEFT_TRY(answer.etcd, access_for(request));
  const auto kept = std::chrono::seconds(token.expires_s - std::min(token.expires_s, clock_())) + kUsesKept;
  WEFT_TRY(const bool counted, count_join(client_, registry_keys_, hex_of(token.id), token.uses, kept));
  if (!counted)
    return refused(fmt::format("the token was used {} already; make another one on {} (weft cluster token)",
                               token.uses == 1 ? "once" : fmt::format("{} times", token.uses), node_.name));
  answer.initial_cluster = member_for(request);
  log_info("{} joins the cluster, at {}", printable(request.name), printable(request.host));
  return answer;
}

Result<Token> Admission::check(const JoinRequest& request) const {
  if (request.protocol != kJoinProtocol)
    return refused(
        fmt::format("expected weft {} on the machine that joins: it speaks version {} of the protocol of "
                    "joins, this node version {}",
                    WEFT_VERSION, request.protocol, kJoinProtocol));
  WEFT_TRY(Token token, parse_token(request.token));
  if (!is_made_by(token, keys_.token_key)) return refused("the token is not of this cluster");
  const std::uint64_t now_s = clock_();
  WEFT_CHECK(check_clock(request.time_s, now_s));
  if (now_s >= token.expires_s)
    return refused(fmt::format("the token has expired at {}; make another one on {} (weft cluster token)",
                               utc_time(token.expires_s * 1'000'000'000), node_.name));
  return token;
}

// A machine that gets a key just before the cluster uses the next one would be refused by all nodes.
Status Admission::check_key_stays() const {
  const auto next = stat_file(node_.key_file + kNextKeySuffix);
  if (!next.ok() && next.error().code == Errc::not_found) return {};
  return Error{Errc::busy, fmt::format("the cluster changes its key; run this command again, with the same token, when "
                                       "weft cluster rotate-key has ended (on {})",
                                       node_.name)};
}

bool Admission::has_own_etcd() const {
  const auto ca = read_setup_file(node_.etcd.ca);
  return ca.ok() && *ca == keys_.authority.files().certificate;
}

// Returns the members of etcd with the node that joins, if it becomes one.
std::string Admission::member_for(const JoinRequest& request) {
  if (node_.etcd_members < 2 || request.peer_port == 0 || !has_own_etcd()) return "";
  const std::string url = "https://" + place_text({request.host, static_cast<std::uint16_t>(request.peer_port)});
  return add_member(client_, {request.name, url}, node_.etcd_members, learner_);
}

Result<EtcdAccess> Admission::access_for(const JoinRequest& request) {
  EtcdAccess access{node_.etcd.endpoints, node_.etcd.prefix, node_.etcd.user, node_.etcd.password, {}, {}, {}};
  const auto read = [](const std::string& path, std::string& into) -> Status {
    if (path.empty()) return {};
    WEFT_TRY(into, read_setup_file(path));
    return {};
  };
  WEFT_CHECK(read(node_.etcd.ca, access.ca));
  if (has_own_etcd()) {
    access.endpoints = member_endpoints(client_, std::move(access.endpoints));
    WEFT_TRY(access.certificate, keys_.authority.sign(request.request, {request.name, {request.host}}, clock_()));
    return access;
  }
  WEFT_CHECK(read(node_.etcd.cert, access.certificate));
  WEFT_CHECK(read(node_.etcd.key, access.key));
  return access;
}

}  // namespace weft::setup
