#include "hub/hub_settings.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "base/limits.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Set = std::map<std::string, std::string>;

Result<HubSettings> settings_of(const Set& set) {
  return read_hub_settings([&](const std::string& name) -> std::optional<std::string> {
    const auto at = set.find(name);
    return at == set.end() ? std::nullopt : std::optional(at->second);
  });
}

std::string token_of(const Set& set) {
  return must(settings_of(set)).token;
}

}  // namespace

TEST_CASE("settings: the public hub without a token, unless variables say otherwise") {
  TempDir home;
  const HubSettings plain = must(settings_of({{"HOME", home.path()}}));
  CHECK(plain.endpoint == "https://huggingface.co");
  CHECK(plain.origin == "https://huggingface.co:443");
  CHECK(plain.token.empty());
  CHECK_FALSE(plain.offline);
  const HubSettings other = must(settings_of({{"HOME", home.path()}, {"HF_ENDPOINT", "http://127.0.0.1:8080/hub//"}}));
  CHECK(other.endpoint == "http://127.0.0.1:8080/hub");
  CHECK(other.origin == "http://127.0.0.1:8080");
  CHECK(must(settings_of({{"HOME", home.path()}, {"HF_ENDPOINT", ""}})).endpoint == "https://huggingface.co");
}

TEST_CASE("settings: an endpoint that is no URL is refused") {
  for (const char* endpoint :
       {"huggingface.co", "file:///x", "http://", "http://user:sesame@h", "https://h/?x=1", "https://h/#x"}) {
    CAPTURE(endpoint);
    const auto settings = settings_of({{"HOME", "/nonexistent"}, {"HF_ENDPOINT", endpoint}});
    REQUIRE_FALSE(settings.ok());
    CHECK(settings.error().code == Errc::invalid);
    CHECK(settings.error().message.find("sesame") == std::string::npos);
  }
}

TEST_CASE("settings: the token of the environment comes before the one of a file") {
  TempDir dir;
  write_file(dir / ".cache/huggingface/token", "  hf_of_home \n");
  write_file(dir / "hf/token", "hf_of_hf_home\r\n");
  write_file(dir / "xdg/huggingface/token", "hf_of_xdg");
  write_file(dir / "mine", "hf_of_path");
  Set set = {{"HOME", dir.path()}};
  CHECK(token_of(set) == "hf_of_home");
  set["XDG_CACHE_HOME"] = dir / "xdg";
  CHECK(token_of(set) == "hf_of_xdg");
  set["HF_HOME"] = "~/hf";
  CHECK(token_of(set) == "hf_of_hf_home");
  set["HF_HOME"] = "$HOME/hf";
  CHECK(token_of(set) == "hf_of_hf_home");
  set["HF_TOKEN_PATH"] = "${HOME}/mine";
  CHECK(token_of(set) == "hf_of_path");
  set["HUGGING_FACE_HUB_TOKEN"] = "hf_old";
  CHECK(token_of(set) == "hf_old");
  set["HF_TOKEN"] = " hf_new\n";
  CHECK(token_of(set) == "hf_new");
  set["HF_TOKEN"] = "";
  CHECK(token_of(set) == "hf_old");
  set["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  CHECK(token_of(set).empty());
}

TEST_CASE("settings: paths with variables that are not set, and files that are not there") {
  TempDir dir;
  CHECK(token_of({{"HOME", dir.path()}, {"HF_TOKEN_PATH", "/nonexistent/$UNSET/${UNSET}/$/${/x$"}}).empty());
  write_file(dir / "$UNSET", "hf_odd");
  CHECK(token_of({{"HF_TOKEN_PATH", dir / "$UNSET"}}) == "hf_odd");
  write_file(dir / "empty", "\n");
  CHECK(token_of({{"HF_TOKEN_PATH", dir / "empty"}}).empty());
}

TEST_CASE("settings: a token that would break a header is refused, and not repeated") {
  for (const std::string& token : {std::string("hf_a b"), std::string("hf_a\x01"), std::string("hf_\xc3\xa4"),
                                   "hf_" + std::string(limits::kHubTokenMax, 'a')}) {
    const auto settings = settings_of({{"HF_TOKEN", token}});
    REQUIRE_FALSE(settings.ok());
    CHECK(settings.error().code == Errc::invalid);
    CHECK(settings.error().message.find("hf_") == std::string::npos);
  }
  CHECK(token_of({{"HF_TOKEN", "hf_a\r\nX-Evil: 1"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "yes"}}).empty());
  CHECK_FALSE(settings_of({{"HF_TOKEN", "hf_a\r\nX-Evil: 1"}}).ok());
}

TEST_CASE("settings: offline, and authorities") {
  for (const char* value : {"1", "on", "YES", "True"})
    CHECK(must(settings_of({{"HF_TOKEN", "t"}, {"HF_HUB_OFFLINE", value}})).offline);
  for (const char* value : {"0", "off", "no", "false", "2", ""})
    CHECK_FALSE(must(settings_of({{"HF_TOKEN", "t"}, {"HF_HUB_OFFLINE", value}})).offline);
  CHECK(must(settings_of({{"HF_TOKEN", "t"}, {"TRANSFORMERS_OFFLINE", "1"}})).offline);
  CHECK_FALSE(must(settings_of({{"HF_TOKEN", "t"}, {"HF_HUB_OFFLINE", "0"}, {"TRANSFORMERS_OFFLINE", "1"}})).offline);
  const HubSettings authorities =
      must(settings_of({{"HF_TOKEN", "t"}, {"CURL_CA_BUNDLE", "/a"}, {"SSL_CERT_FILE", "/b"}, {"SSL_CERT_DIR", "/c"}}));
  CHECK(authorities.ca == "/a");
  CHECK(authorities.ca_directory == "/c");
  CHECK(must(settings_of({{"HF_TOKEN", "t"}, {"SSL_CERT_FILE", "/b"}})).ca == "/b");
}
