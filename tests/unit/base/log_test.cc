// Levels select lines, and categories select debug lines.
#include "base/log.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json_value.h"
#include "base/text.h"

#include "log_file.h"
#include "testing.h"

namespace weft::testing {
namespace {

TEST_CASE("without a category no debug line is written, and its arguments are not formatted") {
  const LogFile log("info");
  log_debug(LogCategory::fetch, "quiet");
  log_info("plain");
  CHECK_FALSE(log_debugs(LogCategory::fetch));
  CHECK_FALSE(log.has("quiet"));
  CHECK(log.has("info: plain"));
}

TEST_CASE("a category adds its debug lines, which begin with its name") {
  const LogFile log("warning,fetch=debug");
  log_debug(LogCategory::fetch, "transfer {} begins", 7);
  log_debug(LogCategory::peers, "search 8");
  log_info("plain");
  log_warning("serious");
  CHECK(log.has("debug: fetch: transfer 7 begins"));
  CHECK_FALSE(log.has("search 8"));
  CHECK_FALSE(log.has("plain"));
  CHECK(log.has("warning: serious"));
}

TEST_CASE("lines of a thread name its work, and those of categories that name their own do not") {
  const LogFile log("debug");
  log_debug(LogCategory::gc, "before");
  {
    const LogWork request("import", 12);
    log_debug(LogCategory::store, "publish of m");
    {
      const LogWork revision("up to revision", 7);
      log_debug(LogCategory::registry, "m@1");
    }
    log_debug(LogCategory::net, "session to peer n2");
    log_debug(LogCategory::fetch, "transfer 3 begins");
    log_debug(LogCategory::peers, "search 4 begins");
    CHECK(log_work() == "import 12");
    std::thread([] { log_debug(LogCategory::gc, "elsewhere"); }).join();
  }
  log_debug(LogCategory::gc, "after");
  CHECK(log_work().empty());
  CHECK(log.has("gc: before"));
  CHECK(log.has("store: import 12: publish of m"));
  CHECK(log.has("registry: up to revision 7: m@1"));
  CHECK(log.has("net: import 12: session to peer n2"));
  CHECK(log.has("fetch: import 12: transfer 3 begins"));
  CHECK(log.has("peers: search 4 begins"));
  CHECK(log.has("gc: elsewhere"));
  CHECK(log.has("gc: after"));
}

TEST_CASE("the level debug is for all categories that have no level of their own") {
  const LogFile log("debug,gc=info");
  CHECK(log_debugs(LogCategory::fetch));
  CHECK(log_debugs(LogCategory::drafts));
  CHECK_FALSE(log_debugs(LogCategory::gc));
  must(log_set_levels("gc=debug"));
  CHECK_FALSE(log_debugs(LogCategory::fetch));
  CHECK(log_debugs(LogCategory::gc));
}

TEST_CASE("an audit line is there at every level, with its fields and the node") {
  const TempDir directory;
  const std::string path = directory / "log";
  must(log_setup(path, "error", "test", {LogFormat::text, "node 7"}));
  log_audit({{"action", "tag"}, {"object", "m@1 best \"one\""}, {"reason", ""}});
  log_info("plain");
  must(log_setup("", "info", "test"));
  const std::string text = read_text(path);
  CHECK(text.find(R"(info: audit: action=tag object="m@1 best \"one\"" reason="" node="node 7")") != std::string::npos);
  CHECK(text.find("plain") == std::string::npos);
}

TEST_CASE("a value with a backslash has quotes, and no value can seem to end earlier than it does") {
  const TempDir directory;
  const std::string path = directory / "log";
  must(log_setup(path, "error", "test"));
  log_audit({{"action", "tag"}, {"object", R"(a\b)"}, {"reason", R"(c\" d)"}});
  must(log_setup("", "info", "test"));
  CHECK(read_text(path).find(R"(action=tag object="a\\b" reason="c\\\" d")") != std::string::npos);
}

TEST_CASE("in the format json each line is an object") {
  const TempDir directory;
  const std::string path = directory / "log";
  must(log_setup(path, "info,gc=debug", "test", {LogFormat::json, "n7"}));
  {
    const LogWork request("gc", 3);
    log_debug(LogCategory::gc, "pack \"1\"");
  }
  log_warning("two\nlines");
  log_audit({{"action", "pin"}, {"object", "m@1"}});
  must(log_setup("", "info", "test"));
  const std::string text = read_text(path);
  std::vector<JsonValue> lines;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) lines.push_back(must(JsonValue::parse(line)));
  REQUIRE(lines.size() == 3);
  for (const JsonValue& line : lines) {
    CHECK(must(line.text("program")) == "test");
    CHECK(must(line.text("node")) == "n7");
    CHECK(must(line.text("time")).size() > std::string_view("2024-05-01T12:00:00.000").size());
    CHECK(line.find("pid") != nullptr);
  }
  CHECK(must(lines[0].text("level")) == "debug");
  CHECK(must(lines[0].text("category")) == "gc");
  CHECK(must(lines[0].text("work")) == "gc 3");
  CHECK(must(lines[0].text("message")) == "pack \"1\"");
  CHECK(must(lines[1].text("level")) == "warning");
  CHECK(must(lines[1].text("message")) == R"(two\x0alines)");
  CHECK(must(lines[2].text("category")) == "audit");
  CHECK(must(lines[2].text("action")) == "pin");
  CHECK(must(lines[2].text("object")) == "m@1");
}

TEST_CASE("a program without a log has audit lines alone in the file") {
  const TempDir directory;
  const std::string path = directory / "log";
  must(audit_setup(path, "weft", {LogFormat::text, "n7"}));
  log_audit({{"action", "gc"}});
  log_error("to stderr");
  CHECK(!audit_setup(path + "/below", "weft").ok());
  const std::string text = read_text(path);
  CHECK(text.find("audit: action=gc node=n7") != std::string::npos);
  CHECK(text.find("to stderr") == std::string::npos);
  must(log_setup("", "info", "test"));
}

TEST_CASE("levels with a mistake change nothing") {
  const LogFile log("info,net=debug");
  for (const std::string_view wrong :
       {"", "loud", "info,", "info,net", "disk=debug", "net=warning", "net=", "=debug"}) {
    CHECK_MESSAGE(!check_log_levels(wrong).ok(), wrong);
    CHECK(!log_set_levels(wrong).ok());
    CHECK(log_debugs(LogCategory::net));
  }
  CHECK(check_log_levels("disk=debug").error().message ==
        "log level: expected one of fetch, peers, net, store, gc, registry, mount, drafts, got disk");
}

TEST_CASE("after log_reopen() lines go to a new file of the name, and the renamed one keeps the earlier lines") {
  const LogFile log("info");
  log_info("before");
  std::filesystem::rename(log.path(), log.path() + ".1");
  log_info("still before");
  CHECK(!std::filesystem::exists(log.path()));
  log_reopen();
  log_info("after");
  CHECK(log.has("info: after"));
  CHECK(!log.has("before"));
  std::filesystem::remove(log.path() + ".1");
}

TEST_CASE("each subject has a line a minute, and many subjects have no more than a few") {
  RareLines lines;
  const auto begin = RareLines::Clock::now();
  CHECK(lines.due("a", begin));
  CHECK(!lines.due("a", begin + std::chrono::seconds(59)));
  CHECK(lines.due("b", begin + std::chrono::seconds(59)));
  CHECK(lines.due("a", begin + std::chrono::seconds(60)));
  std::size_t written = 0;
  for (int i = 0; i < 1'000; ++i) written += lines.due(std::to_string(i), begin + std::chrono::seconds(61)) ? 1 : 0;
  CHECK(written == RareLines::kSubjectsMax - 2);
}

}  // namespace
}  // namespace weft::testing
