// The names of a revision in a store.
#include "pull/pull_names.h"

#include <doctest/doctest.h>

#include <string>

#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("names: a repository keeps its name if a version can have it") {
  CHECK(must(version_name_of({"org/bert-Base_1.0", VersionKind::model})) == "org/bert-Base_1.0");
  CHECK(must(version_name_of({"gpt2", VersionKind::model})) == "gpt2");
  CHECK(must(version_name_of({"org/c4", VersionKind::dataset})) == "org/c4");
  for (const char* name : {"org/_x", "2024", "org/123", "org/latest"}) {
    CAPTURE(name);
    const auto refused = version_name_of({name, VersionKind::model});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == Errc::invalid);
    CHECK(refused.error().message.starts_with(std::string("hf:") + name + ": "));
    CHECK(refused.error().message.ends_with("--name"));
  }
}

TEST_CASE("names: a description has the endpoint, the revision and the commit, which stands there once") {
  const std::string commit(40, 'c');
  CHECK(description_of("https://hub.example", {{"org/bert"}, "main"}, commit) ==
        "hf:org/bert of https://hub.example, revision main, commit " + commit);
  CHECK(description_of("https://hub.example", {{"org/c4", VersionKind::dataset}, commit}, commit) ==
        "hf:datasets/org/c4 of https://hub.example, commit " + commit);
}

TEST_CASE("names: a key has 32 digits, and other sources have other keys") {
  const std::string key = pull_key("https://hub.example hf:org/bert");
  CHECK(key.size() == 32);
  CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(key == pull_key("https://hub.example hf:org/bert"));
  CHECK(key != pull_key("https://hub.example hf:datasets/org/bert"));
}
