#include <doctest/doctest.h>

#include <set>

#include "cli/commands/commands.h"
#include "cli/commands/completions.h"
#include "run.h"
#include "testing.h"

using weft::testing::Cli;

namespace {

// The long options that a command's help shows.
std::set<std::string> options_of(const std::string& command) {
  std::string help = Cli()({command, "--help"}).out;
  std::istringstream lines(help.substr(help.find("\nOptions:\n")));
  std::set<std::string> options;
  for (std::string line; std::getline(lines, line);)
    if (auto at = line.find("--"); line.starts_with("  ") && at <= 6)
      options.insert(line.substr(at + 2, line.find(' ', at) - at - 2));
  return options;
}

std::string part(const std::string& text, const std::string& from, const std::string& to) {
  auto at = text.find(from);
  return at == std::string::npos ? "" : text.substr(at, text.find(to, at + from.size()) - at);
}

std::string script(const std::string& shell) {
  return Cli()({"completion", shell}).out;
}

}  // namespace

TEST_CASE("completions are the files that are kept, and leave out no option of any command") {
  std::string bash = script("bash");
  std::string zsh = script("zsh");
  std::string fish = script("fish");
  CHECK(bash == weft::testing::read_text(WEFT_SOURCE_DIR "/scripts/completions/weft.bash"));
  for (const weft::CommandEntry* command : weft::all_commands()) {
    std::string name(command->info.name);
    auto options = options_of(name);
    CHECK(options.contains("store"));
    for (const std::string& option : options) {
      CAPTURE(name);
      CAPTURE(option);
      CHECK(part(bash, "\n    " + name + ") echo", ";;").find("--" + option) != std::string::npos);
      const bool common = option == "help" || option == "store" || option == "trust-store" || option == "quiet";
      std::string in_zsh = part(zsh, "\n    " + name + ") ", ";;");
      CHECK(in_zsh.find(common ? "$common" : option == "json" ? "$json" : "--" + option) != std::string::npos);
      std::string condition =
          common ? "complete -c weft -" : "complete -c weft -n '__fish_seen_subcommand_from " + name + "'";
      bool in_fish = false;
      std::istringstream lines(fish);
      for (std::string line; std::getline(lines, line);)
        in_fish =
            in_fish || (line.starts_with(condition) && (line + " ").find("-l " + option + " ") != std::string::npos);
      CHECK(in_fish);
    }
  }
}
