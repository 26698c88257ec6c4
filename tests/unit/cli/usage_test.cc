#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/opened_command.h"
#include "run.h"

using weft::testing::Cli;
using weft::testing::Outcome;

namespace {

void usage_error(const std::vector<std::string>& args, const std::string& part) {
  Outcome outcome = Cli()(args);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err.starts_with("weft: "));
  CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  CHECK(outcome.err.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("wrong usage with --json is also an object on standard output") {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"ls", "--frob", "--json"},
                                             {"rm", "m", "--json"},
                                             {"frobnicate", "--json"},
                                             {"--json"},
                                             {"find", "bad(", "--json"},
                                             {"lineage", "m", "--owners", "--json"},
                                             {"lineage", "--json", "m", "--dot"},
                                             {"lineage", "m", "--svg", "--json"}}) {
    const Outcome outcome = Cli()(args);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 2);
    REQUIRE(outcome.err.starts_with("weft: "));
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    const std::string message = outcome.err.substr(6, outcome.err.size() - 7);  // without "weft: " and the newline
    weft::JsonWriter json;
    json.begin_object().member("error", "invalid").member("message", message).end_object();
    CHECK(outcome.out == json.text() + "\n");
  }
}

TEST_CASE("bad usage is one line and exit code 2") {
  usage_error({}, "expected a command");
  usage_error({"--store", "/x"}, "expected a command");
  usage_error({"--frob"}, "unknown option --frob");
  usage_error({"frobnicate"}, "no command \"frobnicate\"; see `weft --help`");
  usage_error({"cluster"}, "cluster: expected a command after it; see `weft cluster --help`");
  usage_error({"cluster", "frobnicate"}, "no command \"cluster frobnicate\"; see `weft --help`");
  usage_error({"cluster", "rotate-key", "--frob"}, "cluster rotate-key: unknown option --frob");
  usage_error({"health", "n1"}, "health: expected no more arguments, got n1;");
  usage_error({"node"}, "node: expected a command after it; see `weft node --help`");
  usage_error({"node", "remove"}, "NODE");
  usage_error({"node", "list", "--frob"}, "node list: unknown option --frob");
  usage_error({"bundle"}, "bundle: expected a command after it; see `weft bundle --help`");
  usage_error({"bundle", "create"}, "bundle create: expected BUNDLE, got none;");
  usage_error({"bundle", "create", "b"}, "bundle create: expected MODEL[@V], --all or --tags;");
  usage_error({"bundle", "create", "b", "--all", "--tags"},
              "bundle create: --all and --tags: expected only one of them");
  usage_error({"bundle", "create", "-", "m", "--directory"}, "--directory: expected a BUNDLE other than -");
  usage_error({"keygen", "a", "b"}, "keygen: expected no more arguments, got b;");
  usage_error({"ls", "--frob"}, "ls: unknown option --frob");
  usage_error({"import", "path", "--nmae", "x"}, "import: unknown option --nmae");
  usage_error({"import", "path", "--name", "x", "--links", "all"}, "expected refuse, skip or follow, got \"all\"");
  usage_error({"import", "path", "--name", "x", "--links", "skip", "--move"}, "--move and --links");
  usage_error({"ls", "a", "b"}, "ls: expected no more arguments, got b;");
  usage_error({"ls", "--store"}, "ls: --store: expected a value, got none;");
  usage_error({"ls", "--names=x"}, "ls: --names: expected no value, got --names=x;");
  usage_error({"import", "--name", "x"}, "import: expected PATH, got none;");
  usage_error({"carry", "c", "d"}, "carry: expected -- COMMAND, got none;");
  usage_error({"carry", "c", "d", "--"}, "carry: expected -- COMMAND, got none;");
  usage_error({"carry", "c", "--", "true"}, "carry: expected DIR, got none;");
  usage_error({"carry", "c", "d", "true", "--", "true"}, "carry: expected no more arguments, got true;");
  usage_error({"carry", "c", "d", "--quiet-after", "0", "--", "true"}, "--quiet-after: expected a time of 1s to 1d");
  usage_error({"carry", "c", "d", "--keep", "0", "--", "true"}, "--keep: expected a number from 1");
  usage_error({"carry", "c", "d", "--key=", "--", "true"}, "--key: expected a text");
  usage_error({"carry", "c//d", "d", "--", "true"}, "carry: ");
  usage_error({"import", "path"}, "--name is required");
  usage_error({"import", "path", "--name", "x", "--metric", "accuracy"}, "expected KEY=VALUE, got \"accuracy\"");
  usage_error({"import", "path", "--name", "x", "--metric", "=1"}, "expected KEY=VALUE");
  usage_error({"export", "m"}, "export: expected DIR or --hub DIR, got none;");
  usage_error({"export", "m", "d", "--hub", "h"}, "export: DIR and --hub: expected only one of them");
  usage_error({"export", "m", "--safetensors", "--hub", "h"},
              "export: --safetensors and --hub: expected only one of them");
  usage_error({"rm", "m"}, "expected MODEL@V, got m");
  usage_error({"rm", "m@"}, "expected MODEL@V, got m@");
  usage_error({"rm", "--all", "m@1"}, "expected a model, got m@1");
  usage_error({"rm"}, "MODEL");
  usage_error({"undelete", "m@best"}, "expected MODEL@NUMBER, got m@best");
  usage_error({"undelete", "m"}, "expected MODEL@NUMBER, got m");
  usage_error({"ls", "--removed", "m@1"}, "--removed: expected a model or nothing");
  usage_error({"rm", "m@1", "--keep", "2"}, "--keep: expected a model, got m@1");
  usage_error({"rm", "m", "--keep", "0"}, "--keep: expected a number from 1");
  usage_error({"rm", "m", "--keep", "1", "--all"}, "--keep: expected neither --all nor --force");
  usage_error({"rm", "m@1", "--keep-best", "loss"}, "--keep-best: expected together with --keep");
  usage_error({"find", "--sort", "loss"}, "--sort: expected version, time, bytes or metric.NAME, got \"loss\"");
  usage_error({"find", "--top", "0"}, "--top: expected a number from 1");
  usage_error({"find", "--columns", "time,nosuch"}, "or metric.NAME, got \"nosuch\"");
  usage_error({"find", "-0", "--columns", "time"}, "--null and --columns: expected only one of them");
  usage_error({"tag", "m@1"}, "expected a TAG");
  usage_error({"tag", "--delete", "m"}, "got no TAG");
  usage_error({"tag", "--delete", "m@1", "t"}, "got a version");
  usage_error({"tag", "--log", "m@1"}, "--log: expected MODEL [TAG], got a version");
  usage_error({"tag", "--log", "m", "--names"}, "--log: expected neither --delete nor --names");
  usage_error({"completion", "tcsh"}, "expected bash, zsh or fish, got tcsh");
  usage_error({"debug", "index", "f"}, "expected pack, toc, journal or manifest, got index");
  usage_error({"debug", "toc"}, "FILE");
  usage_error({"mount", "--json", "/mnt"}, "--json");
}

TEST_CASE("help names a command that is meant") {
  usage_error({"help", "frobnicate"}, "no command \"frobnicate\"; see `weft --help`");
  usage_error({"help", "--frob"}, "no command \"--frob\"; see `weft --help`");
  usage_error({"help", "remove"}, "no command \"remove\"; did you mean `weft rm`?");
  usage_error({"help", "cluster", "jion"}, "no command \"cluster jion\"; did you mean `weft cluster join`?");
}

TEST_CASE("a command that this build lacks is named with the libraries that it needs") {
  for (const auto& [name, libraries] : weft::optional_commands()) {
    if (weft::command_named(name) != nullptr || weft::group_named(name) != nullptr) continue;
    const std::string why = fmt::format("no command \"{}\" in this program, built without {};", name, libraries);
    usage_error({std::string(name)}, why);
    usage_error({"help", std::string(name)}, why);
  }
}

TEST_CASE("values of options stand apart or after =, and may be empty or look like options") {
  for (const char* args : {"separate", "joined"}) {
    CAPTURE(args);
    bool separate = std::string(args) == "separate";
    weft::OptionSet options("weft test");
    std::string name = "before";
    std::vector<std::string> tags;
    std::vector<std::string> paths;
    bool flag = false;
    options.value("-n,--name", "NAME", name, "");
    options.values("--tag", "TAG", tags, "");
    options.flag("--flag", flag, "");
    options.arguments("PATH", paths, weft::OptionSet::Need::required, "");
    auto parsed = separate ? options.parse({"--name", "", "--tag", "--flag", "a", "--tag", "x=y", "--", "--tag=z"})
                           : options.parse({"--name=", "--tag=--flag", "a", "--tag=x=y", "--", "--tag=z"});
    REQUIRE(parsed.ok());
    CHECK(name.empty());
    CHECK(tags == std::vector<std::string>{"--flag", "x=y"});
    CHECK(paths == std::vector<std::string>{"a", "--tag=z"});
    CHECK_FALSE(flag);
  }
}

TEST_CASE("a slip in a command's name is understood, but not obeyed") {
  usage_error({"improt", "x"}, "did you mean `weft import`?");
  usage_error({"stauts"}, "did you mean `weft status`?");
  usage_error({"list"}, "did you mean `weft ls`?");
  usage_error({"delete", "x@1"}, "did you mean `weft rm`?");
  usage_error({"unmount", "/mnt"}, "did you mean `weft umount`?");
  usage_error({std::string(100'000, 'x')}, "see `weft --help`");
}

TEST_CASE("the program's help names every command, and --version the version") {
  Outcome help = Cli()({"--help"});
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  for (const weft::CommandEntry* command : weft::all_commands()) {
    CAPTURE(command->info.name);
    const std::string_view group = weft::group_of(*command);
    const std::string_view name = command->info.name.substr(group.empty() ? 0 : group.size() + 1);
    const std::string table = group.empty() ? help.out : Cli()({std::string(group), "--help"}).out;
    CHECK(table.find("  " + std::string(name) + " ") != std::string::npos);
    if (!group.empty()) CHECK(help.out.find("  " + std::string(group) + " ") != std::string::npos);
  }
  CHECK(Cli()({"help"}).out == help.out);
  CHECK(Cli()({"--store", "/x", "-h"}).out == help.out);
  CHECK(Cli()({"--version"}).out.starts_with("weft "));
}

TEST_CASE("the options of the program are in its help, and are completed, by all their names") {
  const std::string help = Cli()({"--help"}).out;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 84, line);
  for (const weft::ProgramOption& option : weft::kProgramOptions)
    for (const std::string_view name : weft::split(option.names, ',')) {
      CAPTURE(name);
      CHECK(option.is(name));
      CHECK(help.find(" " + std::string(name)) != std::string::npos);
      const std::string answer = Cli()({"--complete", std::string(name)}).out;
      CHECK(answer == std::string(name) + "\t" + std::string(option.help) + "\n");
    }
  CHECK(!weft::kProgramHelp.is("-h,--help"));
  CHECK(!weft::kProgramHelp.is(""));
}

TEST_CASE("each command's help is whole: usage, options, examples, lines that fit") {
  for (const weft::CommandEntry* command : weft::all_commands()) {
    std::string name(command->info.name);
    CAPTURE(name);
    Outcome help = Cli()({name, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(help.out.starts_with("Usage: weft " + name + " [options]"));
    CHECK(help.out.find("--store DIR") != std::string::npos);
    CHECK(help.out.find("\nExamples:\n") != std::string::npos);
    CHECK((help.out.find("\nJSON:\n") != std::string::npos) == (help.out.find("--json") != std::string::npos));
    CHECK(Cli()({"help", name}).out == help.out);
    CHECK(Cli()({"--store", "/x", name, "-h"}).out == help.out);
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(line.size() <= 84, line);
  }
}

TEST_CASE("output that cannot be written is a failure") {
  std::ostringstream err;
  std::ostream out(nullptr);
  std::atomic<int> interrupt = 0;
  weft::CliEnvironment environment{.out = out, .err = err, .interrupt = interrupt};
  CHECK(weft::run_weft({"--version"}, environment) == 1);
  CHECK(err.str() == "weft: standard output: cannot be written\n");
}
