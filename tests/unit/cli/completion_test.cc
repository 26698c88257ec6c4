#include <doctest/doctest.h>

#include <map>
#include <set>

#include "cli/commands/commands.h"
#include "cli/shared/completions.h"
#include "run.h"
#include "testing.h"

using weft::testing::Cli;

namespace {

using Words = std::set<std::string>;

// The options that a command's help shows, short and long.
Words options_of(const std::string& command) {
  const std::string help = Cli()({command, "--help"}).out;
  std::istringstream lines(help.substr(help.find("\nOptions:\n")));
  Words options;
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("--");
    if (!line.starts_with("  ") || at == std::string::npos || at > 6) continue;
    options.insert(line.substr(at, line.find(' ', at) - at));
    if (at == 6 && line[2] == '-') options.insert(line.substr(2, 2));
  }
  return options;
}

// The answers without their help.
Words answers(std::vector<std::string> words) {
  words.insert(words.begin(), "--complete");
  const auto outcome = Cli()(words);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  std::istringstream lines(outcome.out);
  Words found;
  for (std::string line; std::getline(lines, line);) found.insert(line.substr(0, line.find('\t')));
  return found;
}

}  // namespace

TEST_CASE("completions are the files that are kept") {
  for (const std::string shell : {"bash", "zsh", "fish"})
    CHECK(Cli()({"completion", shell}).out ==
          weft::testing::read_text(WEFT_SOURCE_DIR "/scripts/completions/weft." + shell));
}

TEST_CASE("the answers have every command, and every option of it") {
  Words commands = {"help"};
  std::map<std::string, Words> of_groups;
  for (const weft::CommandEntry* command : weft::all_commands()) {
    const std::string name(command->info.name);
    const std::string group(weft::group_of(*command));
    CAPTURE(name);
    CHECK(options_of(name).contains("--store"));
    if (group.empty()) {
      CHECK(answers({name, "-"}) == options_of(name));
      commands.insert(name);
      continue;
    }
    const std::string second = name.substr(group.size() + 1);
    CHECK(answers({group, second, "-"}) == options_of(name));
    of_groups[group].insert(second);
    commands.insert(group);
  }
  for (const auto& [group, names] : of_groups) CHECK(answers({group, ""}) == names);
  CHECK(answers({""}) == commands);
  CHECK(answers({}) == commands);
  CHECK(answers({"--trust-store", "--store", "/x", "st"}) == Words{"stage-out", "status"});
  CHECK(answers({"--"}) == Words{"--store", "--trust-store", "--help", "--version"});
  commands.erase("help");
  CHECK(answers({"help", ""}) == commands);
  CHECK(Cli()({"--complete", "stat"}).out == "status\tshow the store, its content, its mounts and its daemon\n");
}

TEST_CASE("the answers for a value") {
  CHECK(answers({"import", ".", "--durability", ""}) == Words{"memory", "local", "origin"});
  CHECK(answers({"import", ".", "--durability", "l"}) == Words{"local"});
  CHECK(answers({"import", ".", "--durability=l"}) == Words{"local"});
  CHECK(answers({"find", "--sort", "-m"}) == Words{"-metric."});
  CHECK(answers({"init", "--group", ""}) == Words{":groups"});
  CHECK(answers({"--store", ""}) == Words{":directories"});
  CHECK(answers({"--store=/"}) == Words{":directories"});
  CHECK(answers({"ls", "--store", ""}) == Words{":directories"});
  CHECK(answers({"import", ".", "--message", ""}).empty());
  CHECK(answers({"import", ".", "--none=x"}).empty());
}

TEST_CASE("the answers for an argument, by its place") {
  CHECK(answers({"debug", ""}) == Words{"pack", "toc", "journal", "manifest"});
  CHECK(answers({"debug", "pack", ""}) == Words{":files"});
  CHECK(answers({"debug", "--json", "pack", "x", ""}).empty());
  CHECK(answers({"import", ""}) == Words{":files"});
  CHECK(answers({"import", "a", "-n", "m", "b", ""}) == Words{":files"});
  CHECK(answers({"import", "--", "-"}) == Words{":files"});
  CHECK(answers({"mount", ""}) == Words{":directories"});
  CHECK(answers({"no-such-command", ""}).empty());
  CHECK(answers({"completion", "z"}) == Words{"zsh"});
}

TEST_CASE("without a store there are no models") {
  CHECK(answers({"info", "--store", "/nowhere/at/all", ""}) == Words{":open"});
  CHECK(answers({"info", "--store=/nowhere/at/all", "m@"}).empty());
  CHECK(answers({"match", "--store", "/nowhere/at/all", ""}) == Words{":open", ":files"});
  CHECK(answers({"undelete", "--store", "/nowhere/at/all", ""}).empty());
}
