#include "options.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace weft {
namespace {

Result<CommandLine> parse(const std::vector<const char*>& words, const Caller& caller = {1000, 100, ""}) {
  return parse_command_line(words, caller);
}

MountOptions parsed(const std::vector<const char*>& words, const Caller& caller = {1000, 100, ""}) {
  const auto line = parse(words, caller);
  REQUIRE(line.ok());
  CHECK(line->action == Action::mount);
  return line->mount;
}

std::string message_of(const std::vector<const char*>& words) {
  const auto line = parse(words);
  REQUIRE_FALSE(line.ok());
  CHECK(line.error().code == Errc::invalid);
  return line.error().message;
}

}  // namespace

TEST_CASE("what mount(8) passes on") {
  const auto options =
      parsed({"/srv/store", "/mnt", "-s", "-n", "-v", "-o", "rw,noatime,nosuid,_netdev,x-systemd.automount"});
  CHECK(options.store == "/srv/store");
  CHECK(options.directory == "/mnt");
  CHECK_FALSE(options.read_only);
  CHECK_FALSE(options.foreground);
  CHECK_FALSE(options.allow_other);
  CHECK(options.uid == 1000);
  CHECK(options.gid == 100);
  CHECK(options.show_views);
}

TEST_CASE("every option") {
  const auto options = parsed(
      {"-f", "-oro,allow_other,uid=7,gid=8,umask=027", "-o", "views=hidden,xattr,log=/x,loglevel=debug", "s", "d"});
  CHECK(options.foreground);
  CHECK(options.read_only);
  CHECK(options.allow_other);
  CHECK(options.uid == 7);
  CHECK(options.gid == 8);
  CHECK(options.umask == 027);
  CHECK_FALSE(options.show_views);
  CHECK(options.xattr);
  CHECK(options.log_file == "/x");
  CHECK(options.log_level == "debug");
  CHECK_FALSE(options.assembly_cache_max);
  CHECK(parsed({"-oassembly_cache_max=20G", "s", "d"}).assembly_cache_max == std::uint64_t{20} << 30U);
  CHECK(parsed({"-oassembly_cache_max=0", "s", "d"}).assembly_cache_max == 0U);
}

TEST_CASE("root lets others in, and WEFT_STORE names the store") {
  const auto options = parsed({"/mnt"}, {0, 0, "/srv/store"});
  CHECK(options.allow_other);
  CHECK(options.store == "/srv/store");
}

TEST_CASE("usage errors say what was wrong") {
  CHECK(message_of({}).find("STORE DIR") != std::string::npos);
  CHECK(message_of({"a", "b", "c"}).find("got 3") != std::string::npos);
  CHECK(message_of({"/mnt"}).find("WEFT_STORE") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "colour"}).find("unknown option colour") != std::string::npos);
  CHECK(message_of({"a", "b", "-o"}).find("-o needs") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "umask=9"}).find("octal") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "umask=7777"}).find("octal") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "uid=root"}).find("uid=root") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "views=some"}).find("hidden") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "assembly_cache_max=much"}).find("20G") != std::string::npos);
  CHECK(message_of({"a", "b", "--what"}).find("--what") != std::string::npos);
  CHECK(message_of({"a", "b", "-x"}).find("-x") != std::string::npos);
}

TEST_CASE("-s ignores unknown options, not bad values") {
  CHECK(parse({"a", "b", "-o", "colour,size=3", "-s"}).ok());
  CHECK_FALSE(parse({"a", "b", "-s", "-o", "views=some"}).ok());
}

TEST_CASE("help and version need nothing else") {
  CHECK(parse({"--help"})->action == Action::help);
  CHECK(parse({"-V"})->action == Action::version);
}

}  // namespace weft
