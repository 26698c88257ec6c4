#include <doctest/doctest.h>

#include <filesystem>

#include "cli/shared/carry_state.h"
#include "run.h"
#include "testing.h"

using weft::state_of_directory;
using weft::testing::Cli;
using weft::testing::must;
using weft::testing::Outcome;
using weft::testing::read_text;
using weft::testing::TempDir;
using weft::testing::write_file;

namespace fs = std::filesystem;

namespace {

// A store, and the directory that commands carry.
struct Carried {
  Carried() { REQUIRE(Cli()({"init", "--store", store}).code == 0); }

  Outcome run(const std::string& script, std::vector<std::string> options = {}) const {
    fs::remove_all(carried);
    return run_again(script, std::move(options));
  }
  Outcome run_again(const std::string& script, std::vector<std::string> options = {}) const {
    std::vector<std::string> words{"carry", "c", carried, "--store", store, "--key", "k"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", "cd \"$0\" && " + script, carried});
    return Cli()(words);
  }

  TempDir dir;
  std::string store = dir / "store";
  std::string carried = dir / "carried";
};

bool says(const Outcome& outcome, std::string_view text) {
  return outcome.err.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the next command finds what the last one left") {
  const Carried c;
  const Outcome first = c.run("mkdir sub && echo one >sub/file && chmod +x sub/file");
  CAPTURE(first.err);
  CHECK(first.code == 0);
  CHECK(first.out.empty());
  CHECK(says(first, "weft: the key is k\n"));
  CHECK(says(first, "begins empty"));
  CHECK(says(first, "@1 is published: 1 file"));
  const Outcome second = c.run("test -x sub/file && echo two >>sub/file");
  CHECK(second.code == 0);
  CHECK(says(second, "@1: 1 file"));
  CHECK(says(second, "@2 is published"));
  CHECK(read_text(c.carried + "/sub/file") == "one\ntwo\n");
}

TEST_CASE("a directory without a change makes no version") {
  const Carried c;
  CHECK(says(c.run("true"), "it has no files; no new version"));
  c.run("echo one >file");
  CHECK(says(c.run("cat file && touch made && rm made"), "nothing has changed; no new version"));
  CHECK(says(c.run("echo one >other && mv other file"), "@1 has this content already"));
}

TEST_CASE("a command that fails publishes with --always only, and its exit code is weft's") {
  const Carried c;
  const Outcome failed = c.run("echo one >file; exit 3");
  CHECK(failed.code == 3);
  CHECK(says(failed, "exited with 3"));
  CHECK(says(c.run("test ! -e file; exit 4", {"--always"}), "no new version"));
  const Outcome always = c.run("echo one >file; kill -9 $$", {"--always"});
  CHECK(always.code == 137);
  CHECK(says(always, "@1 is published"));
}

TEST_CASE("what weft cannot do has exit codes of its own") {
  const Carried c;
  write_file(c.carried + "/file", "there before");
  const Outcome full = c.run_again("echo never >>file");
  CHECK(full.code == 125);
  CHECK(says(full, "expected an empty directory"));
  CHECK(read_text(c.carried + "/file") == "there before");
  fs::remove_all(c.carried);
  const auto command = [&](const std::string& store, const std::string& word) {
    fs::remove_all(c.carried);
    return Cli()({"carry", "c", c.carried, "--store", store, "--", word}).code;
  };
  CHECK(command(c.store, "weft-no-such-command") == 127);
  CHECK(command(c.store, "/nowhere/command") == 127);
  CHECK(command(c.store, c.store) == 126);
  CHECK(command(c.dir / "nowhere", "/bin/true") == 125);
}

TEST_CASE("each key has versions of its own, and --keep removes old ones") {
  const Carried c;
  c.run("echo one >file");
  CHECK(says(c.run("test ! -e file", {"--key", "other"}), "begins empty"));
  for (const char* text : {"two", "three"}) c.run(std::string("echo ") + text + " >file", {"--keep", "2"});
  const Outcome listed = Cli()({"ls", "--store", c.store});
  CAPTURE(listed.out);
  CHECK(listed.out.find("data set       3         2") != std::string::npos);
}

TEST_CASE("a state differs after every change of a file") {
  const TempDir dir;
  const std::string root = dir / "d";
  write_file(root + "/sub/file", "1");
  auto last = must(state_of_directory(root));
  CHECK(last.files == 1);
  const auto changed = [&] { return std::exchange(last, must(state_of_directory(root))) != last; };
  CHECK_FALSE(changed());
  write_file(root + "/sub/file", "2");
  CHECK(changed());
  fs::permissions(root + "/sub/file", fs::perms::owner_exec, fs::perm_options::add);
  CHECK(changed());
  fs::rename(root + "/sub/file", root + "/sub/other");
  CHECK(changed());
  fs::create_directory(root + "/none");
  CHECK(changed());
  write_file(root + "/temporary", "");
  fs::remove(root + "/temporary");
  CHECK_FALSE(changed());
  CHECK_FALSE(state_of_directory(root + "/nowhere").ok());
}
