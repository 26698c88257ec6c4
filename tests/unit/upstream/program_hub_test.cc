#include "upstream/program_hub.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "fakes/http_server.h"
#include "fakes/responder.h"
#include "testing.h"

namespace weft {
namespace {

using testing::http_answer;
using testing::must;

const std::string kCommit(40, 'c');

struct Place {
  testing::TempDir dir;
  std::string token = dir / "token";

  // A hub whose `weft` is this script.
  std::unique_ptr<UpstreamHub> hub(const std::string& endpoint, const std::string& script = "exit 0",
                                   bool with_token = false) const {
    testing::write_file(dir / "weft", "#!/bin/sh\n" + script + "\n");
    REQUIRE(::chmod((dir / "weft").c_str(), 0700) == 0);
    testing::write_file(token, "hf_secret\n");
    return must(program_hub({endpoint, with_token ? token : "", dir / "store", dir / "weft"}));
  }
  std::string text(const std::string& name) const { return testing::read_text(dir / name); }
};

HubSource source(const std::string& revision = "main") {
  return {{"org/m", VersionKind::model}, revision};
}

testing::Responder::Answer answers(const std::string& gated = "false", const std::string& closed = "false") {
  return [gated, closed](const testing::Asked& asked) {
    const std::string missing = "X-Error-Code: RevisionNotFound\r\n";
    if (asked.path.find("/none") != std::string::npos) return http_answer(404, "", "X-Error-Code: RepoNotFound\r\n");
    if (asked.path.find("/revision/v9") != std::string::npos) return http_answer(404, "", missing);
    if (asked.path.find("/revision/") != std::string::npos)
      return http_answer(200, R"({"sha": ")" + kCommit + R"(", "private": )" + closed + R"(, "gated": )" + gated + "}");
    if (asked.path.find("/tree/") != std::string::npos)
      return http_answer(200,
                         R"([{"type": "file", "path": "a", "size": 1, "oid": ")" + std::string(40, 'd') + R"("}])");
    return http_answer(403, "", "X-Error-Code: GatedRepo\r\n");
  };
}

TEST_CASE("a question gives the commit and the files, or tells what is missing") {
  const Place place;
  testing::Responder responder(answers());
  const auto hub = place.hub(responder.endpoint());
  const auto commit = must(hub->ask(source()));
  REQUIRE(commit.has_value());
  CHECK(commit->commit == kCommit);
  CHECK(commit->files.front().path == "a");
  CHECK(commit->access.empty());
  CHECK_FALSE(must(hub->ask(source("v9"))).has_value());
  const std::size_t before = responder.requests();
  CHECK(hub->ask({{"org/none", VersionKind::model}, "main"}).error().code == Errc::not_found);
  CHECK(responder.requests() == before + 1);
  CHECK(hub->ask({{"org/none", VersionKind::model}, "v1"}).error().code == Errc::not_found);
}

TEST_CASE("a gated repository whose files the token does not open is refused before a pull") {
  const Place place;
  testing::Responder responder(answers("\"auto\""));
  CHECK(place.hub(responder.endpoint())->ask(source()).error().code == Errc::permission);
}

TEST_CASE("the answer says that a repository is private or gated") {
  const Place place;
  testing::Responder closed(answers("false", "true"));
  CHECK(must(place.hub(closed.endpoint())->ask(source()))->access == "private");
  testing::Responder gated([](const testing::Asked& asked) {
    const std::string fields = "X-Repo-Commit: " + kCommit + "\r\nETag: \"" + std::string(40, 'd') + "\"\r\n";
    return asked.head.starts_with("HEAD ") ? http_answer(200, "", fields) : answers("\"auto\"")(asked);
  });
  CHECK(must(place.hub(gated.endpoint())->ask(source()))->access == "gated");
}

TEST_CASE("a refusal without a token says that there is no such repository, and with one that it is closed") {
  const Place place;
  testing::Responder responder(
      [](const testing::Asked&) { return http_answer(401, R"({"error": "Invalid username or password."})"); });
  for (const char* revision : {"main", "v1"}) {
    CHECK(place.hub(responder.endpoint())->ask(source(revision)).error().code == Errc::not_found);
    CHECK(place.hub(responder.endpoint(), "exit 0", true)->ask(source(revision)).error().code == Errc::permission);
  }
}

TEST_CASE("the token of the file goes to the hub, and that of the environment does not") {
  const Place place;
  testing::Responder responder(answers());
  REQUIRE(::setenv("HF_TOKEN", "hf_of_another", 1) == 0);
  must(place.hub(responder.endpoint())->ask(source()));
  must(place.hub(responder.endpoint(), "exit 0", true)->ask(source()));
  ::unsetenv("HF_TOKEN");
  const auto heads = responder.heads();
  CHECK(heads.front().find("Authorization") == std::string::npos);
  CHECK(heads.back().find("Authorization: Bearer hf_secret\r\n") != std::string::npos);
}

TEST_CASE("a pull runs the program with the source, the store, and the hub in its environment") {
  const Place place;
  const std::string here = place.dir / "";
  const auto hub =
      place.hub("http://127.0.0.1:9", "echo \"$@\" > " + here + "words; env > " + here + "variables; echo noise", true);
  must(hub->pull({{"org/c4", VersionKind::dataset}, "v1"}, kCommit));
  CHECK(place.text("words") ==
        "--store " + (place.dir / "store") + " pull hf:datasets/org/c4@" + kCommit + " --tag v1\n");
  for (const std::string& untagged : {std::string("refs/pr/1"), kCommit}) {
    must(hub->pull({{"org/m", VersionKind::model}, untagged}, kCommit));
    CHECK(place.text("words") == "--store " + (place.dir / "store") + " pull hf:org/m@" + kCommit + "\n");
  }
  const std::string variables = "\n" + place.text("variables");
  CHECK(variables.find("\nHF_ENDPOINT=http://127.0.0.1:9\n") != std::string::npos);
  CHECK(variables.find("\nHF_TOKEN_PATH=" + place.token + "\n") != std::string::npos);
  CHECK(variables.find("hf_secret") == std::string::npos);
}

TEST_CASE("a pull that fails says the last line of the program") {
  const Place place;
  CHECK(place.hub("http://127.0.0.1:9", "echo a note >&2; echo 'weft: no space' >&2; exit 1")
            ->pull(source(), kCommit)
            .error()
            .message == "weft: no space");
  CHECK(place.hub("http://127.0.0.1:9", "yes 'left out: a file' | head -n 1000 >&2; echo 'weft: late' >&2; exit 1")
            ->pull(source(), kCommit)
            .error()
            .message == "weft: late");
  CHECK(place.hub("http://127.0.0.1:9", "exit 3")->pull(source(), kCommit).error().message ==
        "hf:org/m@" + kCommit + ": weft pull ended with exit code 3");
}

TEST_CASE("stop ends the program, and later calls fail at once") {
  const Place place;
  const auto hub = place.hub("http://127.0.0.1:9", "touch " + (place.dir / "runs") + "; exec sleep 1000");
  Status ended;
  std::thread pulling([&] { ended = hub->pull(source(), kCommit); });
  while (::access((place.dir / "runs").c_str(), F_OK) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  hub->stop();
  pulling.join();
  CHECK(ended.error().code == Errc::cancelled);
  CHECK(hub->pull(source(), kCommit).error().code == Errc::cancelled);
  CHECK(hub->ask(source()).error().code == Errc::cancelled);
}

TEST_CASE("an endpoint or a token that cannot be is refused, without a word of the token") {
  const Place place;
  CHECK(program_hub({"ftp://hub", "", place.dir / "store", "weft"}).error().code == Errc::invalid);
  testing::write_file(place.token, "hf secret\n");
  const auto refused = program_hub({"http://127.0.0.1:9", place.token, place.dir / "store", "weft"});
  CHECK(refused.error().code == Errc::invalid);
  CHECK(refused.error().message.find("secret") == std::string::npos);
}

}  // namespace
}  // namespace weft
