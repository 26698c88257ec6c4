#include "base/text.h"

#include <doctest/doctest.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/plain_text.h"

using namespace weft;

namespace {

// Control characters in UTF-8: C1 controls, direction marks, line separators.
constexpr std::string_view kSteering[] = {
    "\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",     "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f",
    "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad",
    "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9"};

}  // namespace

TEST_CASE("text without blanks at its ends, and small letters") {
  CHECK(trimmed(" \t a b\t", " \t") == "a b");
  CHECK(trimmed("a\r", " \t") == "a\r");
  CHECK(trimmed(" \t", " \t").empty());
  CHECK(trimmed("", " ").empty());
  CHECK(lower_ascii('Z') == 'z');
  CHECK(lower_ascii('[') == '[');
  CHECK(lower_ascii('a') == 'a');
}

TEST_CASE("text for terminals: what steers one is written as bytes") {
  CHECK(printable("größe 重み → ‖Δ‖") == "größe 重み → ‖Δ‖");
  CHECK(printable("a\x1b[1m\n\x7f") == "a\\x1b[1m\\x0a\\x7f");
  CHECK(printable("a\xff\xc3") == "a\\xff\\xc3");
  CHECK(printable("\xc2\xa0") == "\xc2\xa0");  // the first character after C1
  for (std::string_view one : kSteering) {
    std::string shown;
    for (char c : one) shown += printable({&c, 1});  // a single byte is no UTF-8
    CHECK(printable(one) == shown);
    CHECK(printable_lines(one) == shown);
  }
  CHECK(printable_lines("a\n\tb\r\x1b\xff größe") == "a\n\tb\\x0d\\x1b\\xff größe");
  CHECK(printable_lines("").empty());
}

TEST_CASE("JSON keeps what steers a terminal as escapes") {
  CHECK(json_quote("a\xe2\x80\xae\xc2\x9b\x7f") == "\"a\\u202e\\u009b\\u007f\"");
  CHECK(json_quote("größe 重み 𝄞") == "\"größe 重み 𝄞\"");
  CHECK(json_quote("\xff") == "\"\xef\xbf\xbd\"");
}

TEST_CASE("code points are read as UTF-8 says") {
  CHECK(first_code_point("").length == 0);
  CHECK(first_code_point("\xff").length == 0);
  CHECK(first_code_point("ab").value == U'a');
  CHECK(first_code_point("ö").value == U'ö');
  CHECK(first_code_point("重み").value == U'重');
  CHECK(first_code_point("𝄞").value == U'𝄞');
  CHECK(first_code_point("𝄞").length == 4);
}

TEST_CASE("plain text has no control characters") {
  CHECK(plain_text("größe \xe2\x80\x8f", TextLines::one));
  CHECK(plain_text("a\n\tb", TextLines::many));
  for (std::string_view bad : {"a\nb", "a\tb"}) CHECK_FALSE(plain_text(bad, TextLines::one));
  for (std::string_view bad : {"\x1b", "\x7f", "\xc2\x80", "\xc2\x9f", "\xff", "\r"})
    CHECK_FALSE(plain_text(bad, TextLines::many));
}

TEST_CASE("a change of a message is later than the one before, and never after the last time") {
  VersionRow row;
  row.described_ns = 100;
  const auto at = [&](std::uint64_t time_ns) { return described(row, {"text", {}}, time_ns); };
  CHECK((*at(500))->described_ns == 500);
  CHECK((*at(7))->described_ns == 101);
  row.described_ns = limits::kTimeNsMax - 1;
  CHECK((*at(7))->described_ns == limits::kTimeNsMax);
  row.described_ns = limits::kTimeNsMax;
  CHECK(at(7).error().code == Errc::invalid);
  row.message = "text";
  CHECK_FALSE(at(7).value());  // it has this message already
}

TEST_CASE("each byte but the plain ones is encoded, and decoding gives it back") {
  CHECK(percent_encoded("aZ09_.~-") == "aZ09_.~-");
  CHECK(percent_encoded("a b/c%\xc3\xa9") == "a%20b%2Fc%25%C3%A9");
  CHECK(percent_encoded("a/b c", "/") == "a/b%20c");
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(percent_decoded(percent_encoded(all)).value() == all);
}

TEST_CASE("decoding is done once, and refuses what is no escape") {
  CHECK(percent_decoded("%2fa%2Fb+c").value() == "/a/b+c");
  CHECK(percent_decoded("%252e").value() == "%2e");
  CHECK(percent_decoded("").value().empty());
  for (const char* raw : {"%", "%2", "a%", "%zz", "%2g", "%%20"}) {
    CAPTURE(raw);
    CHECK(percent_decoded(raw).error().code == Errc::invalid);
  }
  CHECK(percent_decoded("a%00b").error().code == Errc::invalid);
  CHECK(percent_decoded(std::string_view("a\0b", 3)).error().code == Errc::invalid);
}
