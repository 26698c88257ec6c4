#include "fuse/process/options.h"

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
      parsed({"/srv/store", "/mnt", "-s", "-n", "-v", "-o", "rw,ro,noatime,nosuid,_netdev,x-systemd.automount"});
  CHECK(options.store == "/srv/store");
  CHECK(options.directory == "/mnt");
  CHECK_FALSE(options.foreground);
  CHECK_FALSE(options.allow_other);
  CHECK(options.uid == 1000);
  CHECK(options.gid == 100);
}

TEST_CASE("every option") {
  const auto options =
      parsed({"-f", "-oallow_other,uid=7,gid=8,umask=027", "-o", "xattr,trust_store,log=/x,loglevel=debug", "s", "d"});
  CHECK(options.foreground);
  CHECK(options.allow_other);
  CHECK(options.uid == 7);
  CHECK(options.gid == 8);
  CHECK(options.umask == 027);
  CHECK(options.xattr);
  CHECK(options.trust_store);
  CHECK(options.log_file == "/x");
  CHECK(options.log_level == "debug");
  CHECK_FALSE(options.assembly_cache_max);
  CHECK_FALSE(options.drafts_max);
  CHECK(parsed({"-oassembly_cache_max=20G", "s", "d"}).assembly_cache_max == std::uint64_t{20} << 30U);
  CHECK_FALSE(options.announce);
  CHECK(options.durability.empty());
  CHECK(parsed({"-odurability=memory", "s", "d"}).durability == "memory");
  CHECK(parsed({"-oannounce", "s", "d"}).announce);
  CHECK(parsed({"-ologlevel=warning:fetch=debug:net=debug", "s", "d"}).log_level == "warning,fetch=debug,net=debug");
  CHECK_FALSE(parsed({"-oannounce", "s", "d"}).publish);
  CHECK(parsed({"-opublish", "s", "d"}).announce);
  CHECK_FALSE(options.cold);
  CHECK(parsed({"-ocold=fetch", "s", "d"}).cold == ColdPolicy::fetch);
  CHECK(options.record_reads);
  CHECK_FALSE(parsed({"-orecord_reads=off", "s", "d"}).record_reads);
  CHECK(parsed({"-orecord_reads=off,record_reads=on", "s", "d"}).record_reads);
  CHECK(options.passthrough);
  CHECK_FALSE(parsed({"-opassthrough=off", "s", "d"}).passthrough);
  CHECK(parsed({"-opassthrough=off,passthrough=on", "s", "d"}).passthrough);
  CHECK(parsed({"-oassembly_cache_max=0", "s", "d"}).assembly_cache_max == 0U);
  CHECK(parsed({"-odrafts_max=20G", "s", "d"}).drafts_max == std::uint64_t{20} << 30U);
}

TEST_CASE("the kernel checks modes unless users must get EROFS from the server") {
  for (const char* const some : {"-oro", "-oumask=022", "-oumask=027"}) {
    CHECK(parsed({some, "s", "d"}).kernel_checks_modes());
    CHECK(parsed({some, "s", "d"}).allows_id_maps());
  }
  CHECK_FALSE(parsed({"-oannounce", "s", "d"}).kernel_checks_modes());
  CHECK_FALSE(parsed({"-opublish,umask=022", "s", "d"}).kernel_checks_modes());
  CHECK(parsed({"-oannounce,umask=077", "s", "d"}).kernel_checks_modes());
  for (const char* const some : {"-oannounce", "-opublish", "-opublish,umask=077"})
    CHECK_FALSE(parsed({some, "s", "d"}).allows_id_maps());
}

TEST_CASE("root lets others in, and WEFT_STORE names the store") {
  const auto options = parsed({"/mnt"}, {0, 0, "/srv/store"});
  CHECK(options.allow_other);
  CHECK(options.store == "/srv/store");
  CHECK(parsed({"/mnt", "-opublish"}, {0, 0, "/srv/store"}).allow_other);
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
  CHECK(message_of({"a", "b", "-o", "views=hidden"}).find("unknown option views") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "cold=ice"}).find("expected auto, stream or fetch") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "record_reads=maybe"}).find("record_reads=maybe: expected on or off") == 0);
  CHECK(message_of({"a", "b", "-o", "passthrough="}).find("passthrough=: expected on or off") == 0);
  CHECK(message_of({"a", "b", "-o", "assembly_cache_max=much"}).find("20G") != std::string::npos);
  CHECK(message_of({"a", "b", "-o", "publish,allow_other"}).find("needs root") != std::string::npos);
  CHECK(message_of({"a", "b", "--what"}).find("--what") != std::string::npos);
  CHECK(message_of({"a", "b", "-x"}).find("-x") != std::string::npos);
}

TEST_CASE("a passed descriptor leaves options of the mount to the program that mounts") {
  const auto options = parsed({"s", "/dev/fd/5", "-f", "-ocold=fetch,allow_other,nonempty,umask=027,xattr"});
  CHECK(options.directory == "/dev/fd/5");
  CHECK(options.cold == ColdPolicy::fetch);
  CHECK(parsed({"s", "/dev/fd/x"}).directory == "/dev/fd/x");  // refused when it is taken over
  CHECK(message_of({"s", "/dev/fd/5", "-oannounce"}).find("/dev/fd/5: announce needs") != std::string::npos);
  CHECK(message_of({"s", "/dev/fd/5", "-opublish"}).find("/dev/fd/5: publish needs") != std::string::npos);
  CHECK(message_of({"s", "/dev/fd/5", "-onoexec"}).find("/dev/fd/5: noexec: an option for") != std::string::npos);
  CHECK_FALSE(parse({"s", "/dev/fd/5", "-ocontext=a"}, {0, 0, ""}).ok());
  CHECK(parse({"s", "/mnt", "-ocontext=a"}, {0, 0, ""}).ok());
}

TEST_CASE("options of libfuse and of SELinux") {
  const auto options = parsed({"s", "d", "-oauto_unmount,fsname=x,subtype=y,noexec"});
  CHECK(options.no_exec);
  CHECK(options.security.empty());
  const Caller root{0, 0, ""};
  const auto labelled = parsed({"s", "d", "-oro,context=\"a:b:c:s0:c1,c2\",noexec,rootcontext=d"}, root);
  CHECK(labelled.security == "context=\"a:b:c:s0:c1,c2\",rootcontext=d");
  CHECK(labelled.no_exec);
  const auto words = to_words(labelled);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  CHECK(parsed(argv, root).security == labelled.security);
  CHECK(message_of({"s", "d", "-ocontext=a"}).find("needs root") != std::string::npos);
  CHECK(message_of({"s", "d", "-oallow_root"}).find("allow_other") != std::string::npos);
}

TEST_CASE("-s ignores unknown options, not bad values") {
  CHECK(parse({"a", "b", "-o", "colour,size=3", "-s"}).ok());
  CHECK_FALSE(parse({"a", "b", "-s", "-o", "cold=ice"}).ok());
}

TEST_CASE("help and version need nothing else") {
  CHECK(parse({"--help"})->action == Action::help);
  CHECK(parse({"-V"})->action == Action::version);
}

TEST_CASE("options become words that give the same options, whoever calls") {
  const std::string list =
      "ro,noexec,allow_other,uid=5,gid=6,umask=027,xattr,trust_store,announce,loglevel=info:fetch=debug,"
      "stall=7,attr_timeout=3,cold=stream,record_reads=off,passthrough=off,assembly_cache_max=5,drafts_max=6,"
      "durability=origin,log=/x/y";
  const MountOptions options = parsed({"/a store", "/d,ir", "-f", "-o", list.c_str()});
  MountOptions with_comma = options;
  with_comma.log_file = "/a,b/log";
  for (const MountOptions& given : {options, with_comma, parsed({"/s", "/d"})}) {
    const auto words = to_words(given);
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    const MountOptions again = parsed(argv, {12, 34, "/other"});
    CHECK(to_words(again) == words);
    CHECK(again.store == given.store);
    CHECK(again.directory == given.directory);
    CHECK(again.log_file == given.log_file);
    CHECK(again.umask == given.umask);
    CHECK(again.assembly_cache_max == given.assembly_cache_max);
    CHECK(again.drafts_max == given.drafts_max);
    CHECK(again.durability == given.durability);
    CHECK(again.cold == given.cold);
    CHECK(again.record_reads == given.record_reads);
    CHECK(again.passthrough == given.passthrough);
    CHECK(again.uid == given.uid);
    CHECK(again.stall_s == given.stall_s);
    CHECK(again.attr_timeout_s == given.attr_timeout_s);
    CHECK(again.foreground == given.foreground);
    CHECK(again.xattr == given.xattr);
    CHECK(again.trust_store == given.trust_store);
    CHECK(again.announce == given.announce);
    CHECK(again.publish == given.publish);
  }
}

TEST_CASE("the options --serve, --supervise and --announce pass descriptors on") {
  const auto serve = parse({"/s", "/d", "--serve=3,4,5"});
  REQUIRE(serve.ok());
  CHECK(serve->action == Action::serve);
  CHECK(serve->ends.channel == 3);
  CHECK(serve->ends.state == 4);
  CHECK(serve->ends.open == 5);
  const auto supervise = parse({"/s", "/d", "--supervise=3,4,5,6,7,8,800"});
  REQUIRE(supervise.ok());
  CHECK(supervise->action == Action::supervise);
  CHECK(supervise->inherited.device == 3);
  CHECK(supervise->inherited.open == 5);
  CHECK(supervise->inherited.server_pid == 800);
  const auto announce = parse({"/s", "/d", "--announce=6"});
  REQUIRE(announce.ok());
  CHECK(announce->action == Action::announce);
  CHECK(announce->announced_state == 6);
  CHECK_FALSE(parse({"/s", "/d", "--announce=6,7"}).ok());
  CHECK_FALSE(parse({"/s", "/d", "--serve=3,4"}).ok());
  CHECK_FALSE(parse({"/s", "/d", "--serve=3,4,x"}).ok());
  CHECK_FALSE(parse({"/s", "/d", "--serve=3,4,99999999999"}).ok());
}

TEST_CASE("the time that link and block counts are kept") {
  CHECK(parsed({"/s", "/d"}).attr_timeout_s == 30);
  CHECK(parsed({"/s", "/d", "-o", "attr_timeout=1"}).attr_timeout_s == 1);
  CHECK(message_of({"/s", "/d", "-o", "attr_timeout=86401"}).find("attr_timeout") != std::string::npos);
}

TEST_CASE("the patience with a server") {
  CHECK(parsed({"/s", "/d"}).stall_s == 60);
  CHECK(parsed({"/s", "/d", "-o", "stall=0"}).stall_s == 0);
  CHECK(message_of({"/s", "/d", "-o", "stall=soon"}).find("stall") != std::string::npos);
}

}  // namespace weft
