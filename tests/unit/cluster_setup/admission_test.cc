// Requests that are refused before the registry is asked: no etcd runs here.
#include "cluster_setup/admission.h"

#include <doctest/doctest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/json_value.h"
#include "testing.h"

using namespace weft;
using namespace weft::setup;
using namespace weft::testing;

namespace {

constexpr std::uint64_t kNow = 1'800'000'000;

struct Gate {
  Gate() {
    write_file(area / "cluster.key", std::string(32, 'k'));
    chmod_private(area / "cluster.key");
    AdmittingNode node;
    node.name = "n1";
    node.key_file = area / "cluster.key";
    node.etcd.endpoints = {"http://127.0.0.1:1"};
    node.etcd.connect_max = std::chrono::milliseconds(200);
    admission.emplace(AdmissionKeys{authority, token_key}, node, [] { return kNow; });
  }
  static void chmod_private(const std::string& path);

  JoinRequest request(const TokenKey& key, std::uint64_t expires_s = kNow + 60) const {
    JoinRequest out;
    const Digest pin = must(public_key_digest(authority.files().certificate));
    out.token = token_text(must(make_token({pin, "10.0.0.1:4712", expires_s, 1}, key)));
    out.name = "n2";
    out.host = "10.0.0.2";
    out.request = must(certificate_request(make_private_key(), "n2"));
    out.time_s = kNow;
    return out;
  }

  // Returns the status and the message of the refusal.
  std::pair<int, std::string> refusal(const std::string& body) {
    const auto reply = admission->answer(body);
    const auto refused = must(decode_fields<JoinRefusal>(must(JsonValue::parse(reply.body))));
    return {reply.status, refused.error};
  }
  std::pair<int, std::string> refusal(const JoinRequest& request) { return refusal(encode_fields(request)); }

  TempDir area;
  Authority authority = must(Authority::make("cluster", static_cast<std::uint64_t>(std::time(nullptr))));
  TokenKey token_key{};
  std::optional<Admission> admission;
};

void Gate::chmod_private(const std::string& path) {
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a token that another key made is refused") {
  Gate gate;
  TokenKey other;
  other.bytes.fill(1);
  const auto [status, error] = gate.refusal(gate.request(other));
  CHECK(status == 403);
  CHECK(error == "the token is not of this cluster");
}

TEST_CASE("a token is refused from the moment on when it expires") {
  Gate gate;
  CHECK(has(gate.refusal(gate.request(gate.token_key, kNow)).second, "has expired at 2027-01-15T08:00:00Z"));
  // One second before, the registry decides, which does not answer here.
  CHECK(gate.refusal(gate.request(gate.token_key, kNow + 1)).first == 503);
}

TEST_CASE("a clock that is too far off is refused, in both directions") {
  Gate gate;
  JoinRequest request = gate.request(gate.token_key);
  request.time_s = kNow - 86'400;
  CHECK(has(gate.refusal(request).second, "is 86400 s behind this node's"));
  request.time_s = kNow + 301;
  CHECK(has(gate.refusal(request).second, "is 301 s ahead of this node's"));
  request.time_s = UINT64_MAX;
  CHECK(gate.refusal(request).first == 403);
  request.time_s = kNow + 300;
  CHECK(gate.refusal(request).first == 503);
}

TEST_CASE("nobody joins while the cluster accepts a key that it does not use yet") {
  Gate gate;
  write_file(gate.area / "cluster.key.next", std::string(32, 'n'));
  const auto [status, error] = gate.refusal(gate.request(gate.token_key));
  CHECK(status == 503);
  CHECK(has(error, "the cluster changes its key; run this command again"));
  std::filesystem::remove(gate.area / "cluster.key.next");
  CHECK_FALSE(has(gate.refusal(gate.request(gate.token_key)).second, "changes its key"));
}

TEST_CASE("a request that is no request is refused") {
  Gate gate;
  for (const char* const body : {"", "{", "[]", "null", "{}", R"({"protocol":1})", "\xff"})
    CHECK(gate.refusal(body).first == 400);
  JoinRequest request = gate.request(gate.token_key);
  request.protocol = 2;
  CHECK(gate.refusal(request).first == 403);
  request = gate.request(gate.token_key);
  request.token.pop_back();
  CHECK(gate.refusal(request).first == 400);
}

TEST_CASE("the directory of the keys is read again, and others' access to it is refused") {
  Gate gate;
  const std::string directory = gate.area / "authority";
  write_file(directory + "/ca.pem", gate.authority.files().certificate);
  write_file(directory + "/ca.key", gate.authority.files().key);
  write_file(directory + "/token.key", std::string(32, 't'));
  Gate::chmod_private(directory + "/ca.key");
  CHECK(read_admission_keys(directory).error().code == Errc::permission);
  Gate::chmod_private(directory + "/token.key");
  CHECK(must(read_admission_keys(directory)).token_key.bytes[0] == 't');
  write_file(directory + "/token.key", "short");
  CHECK_FALSE(read_admission_keys(directory).ok());
}
