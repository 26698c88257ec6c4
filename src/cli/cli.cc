#include "cli/cli.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/json.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/complete.h"
#include "cli/opened_command.h"
#include "os/beneath.h"

namespace weft {
namespace {

constexpr std::size_t kErrorBytesMax = 8192;  // enough for a message with two paths

// The arguments, split at the subcommand's name. Options such as --store may precede or follow the name.
struct Words {
  std::string command;  // "" if there is none
  std::vector<std::string> rest;
};

Words find_command(const std::vector<std::string>& args) {
  Words words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].starts_with('-')) {
      words.command += (words.command.empty() ? "" : " ") + args[i];
      if (group_named(words.command) != nullptr) continue;
      words.rest.insert(words.rest.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      return words;
    }
    words.rest.push_back(args[i]);
    if (args[i] == kStoreOption && i + 1 < args.size()) words.rest.push_back(args[++i]);
  }
  return words;
}

// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `b` into `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  std::iota(cost[0].begin(), cost[0].end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    cost[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

// Returns the subcommand that a mistyped name probably means; "" if that is not obvious.
std::string_view meant(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
      {"list", "ls"},        {"show", "info"},       {"remove", "rm"},  {"delete", "rm"},
      {"undo", "undelete"},  {"publish", "import"},  {"add", "import"}, {"push", "import"},
      {"unmount", "umount"}, {"checkout", "export"}, {"get", "export"}, {"create", "init"},
      {"check", "fsck"},     {"history", "log"},     {"prune", "gc"},   {"tags", "tag"},
  };
  for (auto [other, command] : kOtherNames)
    if (other == name) return command;
  std::string_view best;
  std::size_t best_distance = 3;  // two slips at most
  for (const CommandEntry* entry : all_commands()) {
    std::string_view candidate = entry->info.name;
    std::size_t distance = name.size() > 32 ? 3 : edit_distance(name, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

// Returns the message for a name that is no command of this program.
std::string no_command(std::string_view name) {
  for (const OptionalCommand& left_out : optional_commands())
    if (left_out.name == name)
      return fmt::format("no command \"{}\" in this program, built without {}; the Debian package weft has it", name,
                         left_out.libraries);
  const std::string_view other = meant(name);
  return fmt::format("no command \"{}\"; {}", printable(name),
                     other.empty() ? "see `weft --help`" : fmt::format("did you mean `weft {}`?", other));
}

std::string indented(std::string_view lines, std::string_view by) {
  std::string text;
  while (!lines.empty()) {
    std::size_t end = lines.find('\n') + 1;
    text += fmt::format("{}{}", by, lines.substr(0, end));
    lines.remove_prefix(end);
  }
  return text;
}

class Program {
 public:
  explicit Program(const CliEnvironment& environment) : environment_(environment) {}

  int run(const std::vector<std::string>& args) const {
    if (!args.empty() && args.front() == kCompleteOption)
      return print(completions({args.begin() + 1, args.end()}, environment_));
    Words words = find_command(args);
    if (words.command.empty() || words.command == "help") return without_command(words);
    if (const CommandEntry* entry = command_named(words.command)) return run_command(*entry, words.rest);
    if (const CommandGroup* group = group_named(words.command)) return without_subcommand(*group, words);
    return usage_error(args, no_command(words.command));
  }

 private:
  // `args` may have --json anywhere, because they are not parsed to their end.
  int usage_error(const std::vector<std::string>& args, std::string message) const {
    Context context(environment_);
    context.json = std::ranges::find(args, "--json") != args.end();
    const int code = context.wrong_usage({Errc::invalid, std::move(message)});
    environment_.out.flush();
    return code;
  }

  // Handles `weft --help`, `weft --version`, `weft help [COMMAND]`, and usage errors without a subcommand.
  int without_command(const Words& words) const {
    const auto given = [&](const ProgramOption& option) {
      return std::ranges::any_of(words.rest, [&](const std::string& word) { return option.is(word); });
    };
    if (words.command == "help" && !words.rest.empty()) {
      const Words named = find_command(words.rest);
      if (const CommandEntry* entry = command_named(named.command)) return run_command(*entry, {"--help"});
      if (const CommandGroup* group = group_named(named.command)) return print(group_help(*group));
      return usage_error(words.rest, no_command(named.command.empty() ? words.rest.front() : named.command));
    }
    if (given(kProgramVersion)) return print(fmt::format("weft {}, {}\n", environment_.version, environment_.program));
    if (words.command == "help" || given(kProgramHelp)) return print(program_help());
    const bool is_known = words.rest.empty() || std::ranges::any_of(kProgramOptions, [&](const ProgramOption& option) {
                            return option.is(words.rest.front());
                          });
    if (!is_known)
      return usage_error(words.rest,
                         fmt::format("unknown option {}; see `weft --help`", printable(words.rest.front())));
    return usage_error(words.rest, "expected a command; see `weft --help`");
  }

  // Handles `weft GROUP` and `weft GROUP --help`.
  int without_subcommand(const CommandGroup& group, const Words& words) const {
    const bool asks_help =
        std::ranges::any_of(words.rest, [](const std::string& word) { return kProgramHelp.is(word); });
    if (asks_help) return print(group_help(group));
    return usage_error(words.rest,
                       fmt::format("{}: expected a command after it; see `weft {} --help`", group.name, group.name));
  }

  static std::string group_help(const CommandGroup& group) {
    std::string text = fmt::format("Usage: weft {} COMMAND [options] ...\n\nCommands:\n", group.name);
    for (const CommandEntry* entry : all_commands())
      if (group_of(*entry) == group.name)
        text += fmt::format("  {:<12} {}\n", entry->info.name.substr(group.name.size() + 1), entry->info.summary);
    return text + fmt::format("\n`weft {} COMMAND --help` describes a command.\n", group.name);
  }

  int print(std::string_view text) const {
    environment_.out << text;
    return finish(kExitDone);
  }

  static std::string program_help() {
    std::string text = fmt::format(
        "weft (WEights as a File Tree) keeps deep-learning models in a store, each distinct\n"
        "tensor once, and shows them as ordinary files.\n\n"
        "Usage: weft [{} {}] [{}] COMMAND [options] ...\n\nCommands:\n",
        kProgramStore.names, kProgramStore.placeholder, kProgramTrust.names);
    for (const CommandEntry* entry : all_commands())
      if (group_of(*entry).empty()) text += fmt::format("  {:<12} {}\n", entry->info.name, entry->info.summary);
    for (const CommandGroup& group : all_groups()) text += fmt::format("  {:<12} {}\n", group.name, group.summary);
    std::vector<OptionSet::Row> rows;
    for (const auto& [names, placeholder, help, more] : kProgramOptions)
      rows.push_back({std::string(names),
                      std::string(placeholder),
                      more.empty() ? std::string(help) : fmt::format("{}; {}", help, more),
                      {}});
    text += OptionSet::table("Options", rows);
    text +=
        "\n`weft COMMAND --help` describes a command.\n"
        "MODEL[@V] names a version: V is a number, a tag or \"latest\". The default is the\n"
        "latest version. weft(1) is the manual.\n"
        "Exit codes: 0 success, 1 failure, 2 wrong usage, 128 + N stopped by signal N.\n";
    return text;
  }

  static std::string command_help(const CommandInfo& info, const OptionSet& options) {
    std::string text = fmt::format("Usage: {}\n\n{}.\n", options.usage(), info.summary);
    text[text.find("\n\n") + 2] = static_cast<char>(std::toupper(static_cast<unsigned char>(info.summary[0])));
    if (!info.description.empty()) text += fmt::format("\n{}", info.description);
    text += options.help();
    text += fmt::format("\nExamples:\n{}", indented(info.examples, "  "));
    if (!info.json.empty()) text += fmt::format("\nJSON:\n{}", indented(info.json, "  "));
    return text;
  }

  int run_command(const CommandEntry& entry, const std::vector<std::string>& args) const {
    OpenedCommand opened(entry, environment_);
    const CommandInfo& info = opened.info;
    const Context& context = opened.context;
    OptionSet& options = opened.options;
    Status usage = options.parse(args);
    // Print the help even if required arguments are missing.
    const auto asks_help = [](const std::string& word) { return kProgramHelp.is(word); };
    if (opened.help || (!usage.ok() && std::any_of(args.begin(), args.end(), asks_help)))
      return print(command_help(info, options));
    if (usage.ok()) usage = opened.command->check_usage();
    if (!usage.ok()) {
      std::string_view what = usage.error().message;
      const bool has_json = !info.json.empty();
      return usage_error(has_json ? args : std::vector<std::string>(),
                         fmt::format("{}: {}; see `weft {} --help`", info.name, what, info.name));
    }
    if (context.trusts_store()) trust_all_owners();
    if (!info.interrupted.empty()) environment_.catch_interrupts();
    Result<int> code = opened.command->run(opened.context);
    return code.ok() ? finish(*code) : failed(context, info, code.error());
  }

  int failed(const Context& context, const CommandInfo& info, const Error& error) const {
    if (context.json) context.print_json(error_json(error));
    environment_.out.flush();
    int signal = environment_.interrupt.load();
    if (error.code == Errc::cancelled && signal != 0) {
      environment_.err << fmt::format("weft: interrupted, {}\n", info.interrupted);
      return 128 + signal;
    }
    environment_.err << "weft: " << printable(error.message, kErrorBytesMax) << '\n';
    return kExitFailed;
  }

  // Returns kExitFailed if standard output could not be written, for example to a full disk.
  int finish(int code) const {
    environment_.out.flush();
    if (environment_.out.good()) return code;
    environment_.err << "weft: standard output: cannot be written\n";
    return kExitFailed;
  }

  const CliEnvironment& environment_;
};

}  // namespace

int run_weft(const std::vector<std::string>& args, const CliEnvironment& environment) {
  return Program(environment).run(args);
}

}  // namespace weft
