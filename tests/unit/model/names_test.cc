#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "weft/model/manifest.h"

namespace weft {
namespace {

// Checks that the status is Errc::invalid with a message of one line that contains `why`.
void check_refused(const Status& status, std::string_view why) {
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Errc::invalid);
  CAPTURE(status.error().message);
  CHECK(status.error().message.find(why) != std::string::npos);
  CHECK(status.error().message.find('\n') == std::string::npos);
}

TEST_CASE("model names") {
  for (const char* name : {"bert", "org/llama", "a/b/c/d", "Llama-3.1_8B+dpo", "3d", "0.5", "latest2"})
    CHECK(check_model_name(name).ok());
  CHECK(check_model_name(std::string(96, 'a')).ok());
  CHECK(check_model_name(std::string(96, 'a') + "/" + std::string(96, 'b') + "/abcdef").ok());

  check_refused(check_model_name(""), "empty");
  check_refused(check_model_name("/bert"), "empty");
  check_refused(check_model_name("org//bert"), "empty");
  check_refused(check_model_name("bert/"), "empty");
  check_refused(check_model_name("."), "letter or digit first");
  check_refused(check_model_name("org/../x"), "letter or digit first");
  check_refused(check_model_name("-x"), "letter or digit first");
  check_refused(check_model_name("a b"), "0x20");
  check_refused(check_model_name("bert@3"), "0x40");
  check_refused(check_model_name("na\nme"), "0x0a");
  check_refused(check_model_name("größe"), "0xc3");
  check_refused(check_model_name("latest"), "latest");
  check_refused(check_model_name("org/latest"), "latest");
  check_refused(check_model_name("org/42"), "digits");
  check_refused(check_model_name(std::string(97, 'a')), "at most 96 bytes, got 97");
  check_refused(check_model_name(std::string(96, 'a') + "/" + std::string(96, 'b') + "/abcdefg"), "at most 200");
}

TEST_CASE("tags") {
  CHECK(check_tag_name("prod").ok());
  CHECK(check_tag_name("v1.0").ok());
  check_refused(check_tag_name("3"), "digits");
  check_refused(check_tag_name("latest"), "latest");
  check_refused(check_tag_name("a/b"), "0x2f");
  check_refused(check_tag_name(""), "empty");
  check_refused(check_tag_name("versions.tsv"), "names a file");
  CHECK(check_tag_name("versions.tsv2").ok());
}

TEST_CASE("the hub's names of models and data sets, there and back") {
  using Pair = std::pair<const char*, const char*>;
  for (const auto& pair : {Pair("bert", "models--bert"), Pair("org/llama", "models--org--llama"),
                           Pair("a-b/c-d.e_f", "models--a-b--c-d.e_f"), Pair("o/a.git.b", "models--o--a.git.b"),
                           Pair("models", "models--models"), Pair("o/x.gitt", "models--o--x.gitt")}) {
    const auto [model, directory] = pair;
    CAPTURE(pair.first);
    CHECK(hub_name(model, VersionKind::model) == directory);
    CHECK(parse_hub_name(directory) == HubName{model, VersionKind::model});
  }
  CHECK(hub_name("org/c4", VersionKind::dataset) == "datasets--org--c4");
  CHECK(parse_hub_name("datasets--org--c4") == HubName{"org/c4", VersionKind::dataset});
}

TEST_CASE("a name that the hub refuses has no directory there") {
  for (const char* model : {"", "a/b/c", "a+b", "o/a+b", "a--b", "o/a--b", "a..b", "o-/m", "o/m-", "o./m", "o/m.",
                            "m.git", "o/m.git", "latest", "o/42", "-m", "a b"}) {
    CAPTURE(model);
    CHECK_FALSE(hub_name(model, VersionKind::model));
    CHECK_FALSE(hub_name(model, VersionKind::dataset));
  }
  for (const char* directory : {"", "bert", "models--", "models--a--b--c", "models----b", "models--a--", "models--a/b",
                                "models--a+b", "models-a", "Models--a", "models--a---b", "models--m.git",
                                "models--latest", "models--o--42", "datasets--", "datasets--a--", "dataset--a"}) {
    CAPTURE(directory);
    CHECK_FALSE(parse_hub_name(directory));
  }
}

std::string nested(std::size_t components) {
  std::string path = "a";
  while (--components > 0) path += "/a";
  return path;
}

TEST_CASE("file paths") {
  for (const char* path : {"config.json", "1_Pooling/config.json", ".gitattributes", "a b/ü.txt", "...", "-"})
    CHECK(check_file_path(path).ok());
  CHECK(check_file_path(std::string(255, 'a')).ok());
  CHECK(check_file_path(nested(64)).ok());

  check_refused(check_file_path(""), "empty");
  check_refused(check_file_path("/etc/passwd"), "relative");
  check_refused(check_file_path("a//b"), "empty");
  check_refused(check_file_path("a/"), "empty");
  check_refused(check_file_path("./a"), "\".\"");
  check_refused(check_file_path("a/../b"), "\"..\"");
  check_refused(check_file_path("a\nb"), "0x0a");
  check_refused(check_file_path(std::string_view("a\0b", 3)), "0x00");
  check_refused(check_file_path("a\x7f"), "0x7f");
  check_refused(check_file_path("\xff"), "UTF-8");
  check_refused(check_file_path(std::string(256, 'a')), "255 bytes, got 256");
  check_refused(check_file_path(nested(65)), "64 components, got 65");
  std::string long_path = std::string(200, 'a');
  while (long_path.size() <= 4000) long_path += "/" + std::string(200, 'a');
  check_refused(check_file_path(long_path), "at most 4000");
}

TEST_CASE("version specs") {
  auto spec = [](std::string_view text) {
    auto result = parse_version_spec(text);
    REQUIRE(result.ok());
    return std::pair(result->model, result->version);
  };
  using Pair = std::pair<std::string, std::string>;
  CHECK(spec("bert") == Pair("bert", ""));
  CHECK(spec("org/bert@latest") == Pair("org/bert", ""));
  CHECK(spec("bert@12") == Pair("bert", "12"));
  CHECK(spec("bert@prod") == Pair("bert", "prod"));

  auto refused = [](std::string_view text, std::string_view why) {
    auto result = parse_version_spec(text);
    check_refused(result.ok() ? Status() : Status(result.error()), why);
  };
  refused("", "empty");
  refused("@3", "empty");
  refused("bert@", "empty");
  refused("bert@0", "from 1 on");
  refused("bert@007", "from 1 on");
  refused("bert@99999999999999999999", "from 1 on");
  refused("bert@a@b", "0x40");
  refused("bert@a/b", "0x2f");
}

}  // namespace
}  // namespace weft
