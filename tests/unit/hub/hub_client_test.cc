// A client of hubs that answer as the real one does, and of hubs that lie.
#include "hub/hub_client.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <functional>
#include <string>

#include "base/limits.h"
#include "fakes/manual_time.h"
#include "fakes/responder.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;
using namespace std::chrono_literals;

namespace {

const std::string kToken = "hf_SecretSecretSecret";
const std::string kCommit(40, 'c');
const std::string kOther(40, 'd');
const std::string kSha1(40, 'a');
const std::string kContent = "0123456789abcdefghijklmnopqrstuvwxyz";
const HubName kBert{"org/bert", VersionKind::model};
const HubFile kFile{"sub/model.bin", 36, kSha1, std::nullopt};

std::string row(const std::string& path) {
  return fmt::format(R"({{"type":"file","path":"{}","size":36,"oid":"{}"}})", path, kSha1);
}

std::string info_of(const std::string& commit) {
  return fmt::format(R"({{"sha":"{}","private":false,"gated":false}})", commit);
}

// A hub, and a client of it.
struct World {
  explicit World(Responder::Answer answer, bool has_token = true) : hub(std::move(answer)) {
    HubSettings settings;
    settings.endpoint = hub.endpoint();
    settings.origin = must(parse_http_url(hub.endpoint())).origin;
    if (has_token) settings.token = kToken;
    client.emplace(settings, reading());
  }
  HttpReaderOptions reading() const {
    HttpReaderOptions out;
    out.http.connect_max = 60s;
    out.stall_max = 60s;
    out.time = &time;
    return out;
  }
  Status read(Range range, const HubFile& file = kFile) {
    body.clear();
    return client->read(kBert, kCommit, file, range, [this](std::span<const std::byte> bytes) {
      body += as_text(bytes);
      return Status();
    });
  }

  ManualTime time;
  Responder hub;
  std::optional<HubClient> client;
  std::string body;
};

// Checks an error of a hub: its kind, a line that names the repository, without the token.
void check_error(const Error& error, Errc code, const std::string& part = "") {
  CHECK(error.code == code);
  CHECK(error.message.starts_with("hf:org/bert: "));
  CHECK(error.message.find(part) != std::string::npos);
  CHECK(error.message.find('\n') == std::string::npos);
  CHECK(error.message.find("Secret") == std::string::npos);
}

// Returns the error of asking for a revision, whose answer is this one.
Error revision_error(const std::string& answer, bool has_token = true) {
  World world([&](const Asked&) { return answer; }, has_token);
  const auto revision = world.client->revision({kBert, "v1"});
  REQUIRE_FALSE(revision.ok());
  return revision.error();
}

Error files_error(Responder::Answer answer) {
  World world(std::move(answer));
  const auto files = world.client->files(kBert, kCommit);
  REQUIRE_FALSE(files.ok());
  return files.error();
}

std::string refusal(int status, const std::string& code, const std::string& message = "") {
  std::string fields;
  if (!code.empty()) fields += "X-Error-Code: " + code + "\r\n";
  if (!message.empty()) fields += "X-Error-Message: " + message + "\r\n";
  return http_answer(status, R"({"error":"no"})", fields);
}

}  // namespace

TEST_CASE("client: a revision is pinned to its commit, with the token") {
  World world([](const Asked&) { return http_answer(200, info_of(kCommit)); });
  CHECK(must(world.client->revision({kBert, "refs/pr/1"})).commit == kCommit);
  REQUIRE(world.hub.requests() == 1);
  const std::string head = world.hub.heads()[0];
  CHECK(head.starts_with("GET /api/models/org/bert/revision/refs%2Fpr%2F1 "));
  CHECK(head.find("\r\nAuthorization: Bearer " + kToken + "\r\n") != std::string::npos);
  CHECK(head.find("\r\nUser-Agent: weft/") != std::string::npos);
  CHECK(must(world.client->revision({{"org/c4", VersionKind::dataset}, "main"})).commit == kCommit);
  CHECK(world.hub.heads()[1].starts_with("GET /api/datasets/org/c4/revision/main "));
}

TEST_CASE("client: a hub that knows another commit of this name, or none") {
  World world([](const Asked&) { return http_answer(200, info_of(kOther)); });
  check_error(world.client->revision({kBert, kCommit}).error(), Errc::changed, kOther);
  check_error(revision_error(http_answer(200, "{}")), Errc::invalid, "sha");
  check_error(revision_error(http_answer(200, "<html>")), Errc::invalid);
  check_error(revision_error(http_answer(204, "")), Errc::io, "204");
}

TEST_CASE("client: refusals of the hub in clear words") {
  check_error(revision_error(refusal(403, "GatedRepo")), Errc::permission, "gated");
  check_error(revision_error(refusal(401, "GatedRepo"), false), Errc::permission, "set HF_TOKEN");
  check_error(revision_error(refusal(404, "RepoNotFound")), Errc::not_found, "no such model");
  check_error(revision_error(refusal(401, "RepoNotFound"), false), Errc::not_found, "HF_TOKEN");
  check_error(revision_error(refusal(404, "RevisionNotFound")), Errc::not_found, "\"v1\"");
  check_error(revision_error(refusal(404, "")), Errc::not_found);
  check_error(revision_error(refusal(401, "", "Invalid credentials in Authorization header")), Errc::permission,
              "Invalid credentials");
  check_error(revision_error(refusal(403, "", "no, " + kToken)), Errc::permission, "no, [token]");
  check_error(revision_error(refusal(403, "", std::string(290, 'x') + kToken)), Errc::permission);
  check_error(revision_error(refusal(400, "Odd")), Errc::io, "Odd");
  check_error(revision_error(refusal(500, "")), Errc::unreachable, "500");
  check_error(revision_error(refusal(429, "")), Errc::busy, "429");
  World world([](const Asked&) { return refusal(404, "EntryNotFound"); });
  check_error(world.read({0, 5}).error(), Errc::not_found, "sub/model.bin");
}

TEST_CASE("client: a listing is read over its pages") {
  World world([](const Asked& asked) {
    if (asked.path == "/api/models/org/bert/tree/" + kCommit + "?recursive=true")
      return http_answer(200, "[" + row("b") + "]", "Link: </next?cursor=2>; rel=\"next\"\r\n");
    CHECK(asked.path == "/next?cursor=2");
    CHECK(asked.has(kToken));
    return http_answer(200, "[" + row("a") + "]", "Link: <http://elsewhere/>; rel=\"prev\"\r\n");
  });
  const auto files = must(world.client->files(kBert, kCommit));
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "a");
  CHECK(files[1].path == "b");
  CHECK(world.hub.requests() == 2);
}

TEST_CASE("client: pages in a circle, on another server, or of another protocol") {
  auto link = [](const std::string& reference) { return "Link: <" + reference + ">; rel=\"next\"\r\n"; };
  check_error(files_error([&](const Asked& asked) {
                return http_answer(200, "[]", link(asked.path == "/two" ? "/one" : "/two"));
              }),
              Errc::io, "page");
  Responder other([](const Asked&) { return http_answer(200, "[]"); });
  check_error(files_error([&](const Asked&) { return http_answer(200, "[]", link(other.endpoint() + "/")); }), Errc::io,
              "page");
  CHECK(other.requests() == 0);
  check_error(files_error([&](const Asked&) { return http_answer(200, "[]", link("file:///etc/passwd")); }), Errc::io,
              "page");
}

TEST_CASE("client: bad listings name the repository and the file") {
  check_error(files_error([](const Asked&) { return http_answer(200, "[" + row("../up") + "]"); }), Errc::invalid,
              "../up");
  check_error(files_error([](const Asked&) { return http_answer(200, "[" + row("m") + "," + row("m") + "]"); }),
              Errc::invalid, "\"m\"");
  check_error(
      files_error([](const Asked&) { return http_answer(200, "[" + std::string(limits::kHubPageMax, ' ') + "]"); }),
      Errc::io, "at most");
  check_error(files_error([](const Asked&) { return http_answer(200, "[]", "Content-Encoding: gzip\r\n"); }), Errc::io,
              "gzip");
}

TEST_CASE("client: facts of a file in git, and of one in LFS that lies on another server") {
  Responder away([](const Asked&) { return http_answer(200, ""); });
  World world([&](const Asked& asked) {
    CHECK(asked.head.starts_with("HEAD /org/bert/resolve/" + kCommit + "/"));
    const std::string commit = "X-Repo-Commit: " + kCommit + "\r\n";
    if (asked.path.ends_with("git"))
      return "HTTP/1.1 200 X\r\nContent-Length: 36\r\nETag: W/\"" + kSha1 + "\"\r\n" + commit + "\r\n";
    return redirect_to(away.endpoint() + "/blob", commit + "X-Linked-Size: 7\r\nX-Linked-Etag: \"" +
                                                      std::string(64, 'b') + "\"\r\nETag: \"x\"\r\n");
  });
  const HubFileFacts git = must(world.client->facts(kBert, kCommit, "git"));
  CHECK(git.size == 36);
  CHECK(git.etag == kSha1);
  const HubFileFacts lfs = must(world.client->facts(kBert, kCommit, "lfs"));
  CHECK(lfs.size == 7);
  CHECK(lfs.etag == std::string(64, 'b'));
  CHECK(away.requests() == 0);
}

TEST_CASE("client: facts that are missing, or of another commit") {
  auto facts_error = [](const std::string& fields) {
    World world([&](const Asked&) { return http_answer(200, "", fields); });
    const auto facts = world.client->facts(kBert, kCommit, "m");
    REQUIRE_FALSE(facts.ok());
    return facts.error();
  };
  const std::string commit = "X-Repo-Commit: " + kCommit + "\r\n";
  check_error(facts_error("ETag: \"x\"\r\n"), Errc::io, "X-Repo-Commit");
  check_error(facts_error("X-Repo-Commit: " + kOther + "\r\nETag: \"x\"\r\n"), Errc::changed, kOther);
  check_error(facts_error(commit), Errc::io, "ETag");
  check_error(facts_error(commit + "ETag: \"x\"\r\nX-Linked-Size: -1\r\n"), Errc::io, "size");
}

TEST_CASE("client: a range of a file is read at its commit, from another server without the token") {
  Responder away([](const Asked& asked) {
    return asked.head.find("uthorization") == std::string::npos ? range_answer(asked, kContent) : http_answer(400, "");
  });
  World world([&](const Asked& asked) {
    CHECK(asked.path == "/org/bert/resolve/" + kCommit + "/sub/model.bin");
    CHECK(asked.has(kToken));
    return redirect_to(away.endpoint() + "/blob?sig=1", "X-Repo-Commit: " + kCommit + "\r\n");
  });
  REQUIRE(world.read({30, 6}).ok());
  CHECK(world.body == kContent.substr(30));
  REQUIRE(away.requests() == 1);
  CHECK(away.heads()[0].find(kToken) == std::string::npos);
}

TEST_CASE("client: a read goes on after a connection that ends") {
  World world([](const Asked& asked) { return range_answer(asked, kContent, asked.number == 1 ? 4 : 100); });
  REQUIRE(world.read({0, 36}).ok());
  CHECK(world.body == kContent);
  CHECK(world.hub.requests() == 2);
}

TEST_CASE("client: another size, another commit, and a server behind the hub that refuses") {
  World grown([](const Asked& asked) { return range_answer(asked, kContent + "more"); });
  check_error(grown.read({0, 5}).error(), Errc::changed, "sub/model.bin");
  World whole([](const Asked&) { return http_answer(200, kContent); });
  check_error(whole.read({0, 5}).error(), Errc::io, "206");
  World moved([](const Asked& asked) {
    std::string answer = range_answer(asked, kContent);
    return answer.insert(answer.find("\r\n") + 2, "X-Repo-Commit: " + kOther + "\r\n");
  });
  check_error(moved.read({0, 5}).error(), Errc::changed, kOther);
  Responder away([](const Asked&) { return http_answer(403, "expired", "X-Error-Code: GatedRepo\r\n"); });
  World behind([&](const Asked&) { return redirect_to(away.endpoint() + "/blob"); });
  check_error(behind.read({0, 5}).error(), Errc::io, "403");
}

TEST_CASE("client: offline nothing is sent") {
  Responder hub([](const Asked&) { return http_answer(200, info_of(kCommit)); });
  HubSettings settings;
  settings.endpoint = hub.endpoint();
  settings.offline = true;
  HubClient client(settings);
  check_error(client.revision({kBert, "main"}).error(), Errc::unreachable, "HF_HUB_OFFLINE");
  CHECK_FALSE(client.files(kBert, kCommit).ok());
  CHECK_FALSE(client.facts(kBert, kCommit, "m").ok());
  CHECK_FALSE(client.read(kBert, kCommit, kFile, {0, 1}, [](std::span<const std::byte>) { return Status(); }).ok());
  CHECK(hub.requests() == 0);
}
