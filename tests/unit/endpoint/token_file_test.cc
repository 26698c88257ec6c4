#include "endpoint/token_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "base/limits.h"
#include "testing.h"

namespace weft {
namespace {

using testing::must;

struct TokenFile {
  testing::TempDir dir;
  std::string path = dir / "token";

  Result<HubToken> read(std::string_view text, mode_t mode = 0600) const {
    testing::write_file(path, text);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return HubToken::read(path);
  }
};

TEST_CASE("the first line is the token") {
  const TokenFile file;
  for (const char* text : {"hf_abc", "hf_abc\n", " hf_abc \r\nmore\n"}) {
    CAPTURE(text);
    const HubToken token = must(file.read(text));
    CHECK(token.opens("Bearer hf_abc"));
    CHECK(token.opens("bearer  hf_abc"));
    for (const char* other : {"", "Bearer", "Bearer ", "Bearer hf_ab", "Bearer hf_abcd", "Bearer HF_ABC",
                              "Basic hf_abc", "hf_abc", "Bearer hf_abc, x"}) {
      CAPTURE(other);
      CHECK_FALSE(token.opens(other));
    }
    CHECK_FALSE(token.opens(std::nullopt));
  }
}

TEST_CASE("a file that others read, or without a token, is refused, and no message has the token") {
  const TokenFile file;
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    const auto token = file.read("hf_abc", mode);
    CHECK(token.error().code == Errc::permission);
    CHECK(token.error().message.find("hf_abc") == std::string::npos);
  }
  CHECK(file.read("hf_abc", 0400).ok());
  ::chmod(file.path.c_str(), 0600);
  for (const std::string& text :
       {std::string(), std::string("\nhf_abc"), std::string("hf abc"), std::string("hf\x01") + "abc",
        std::string("hf_\xc3\xa9"), std::string(limits::kHubTokenMax + 1, 'a')}) {
    const auto token = file.read(text);
    REQUIRE(!token.ok());
    CHECK(token.error().code == Errc::invalid);
    CHECK(token.error().message.find("hf") == std::string::npos);
  }
  CHECK(file.read(std::string(limits::kHubTokenMax, 'a')).ok());
  CHECK(HubToken::read(file.dir / "none").error().code == Errc::not_found);
  CHECK(HubToken::read(file.dir / "").error().code == Errc::invalid);
}

}  // namespace
}  // namespace weft
