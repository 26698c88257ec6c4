// The program weftd.
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "base/version/version.h"
#include "daemon/check.h"
#include "daemon/config.h"
#include "daemon/daemon.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kDefaultFile = "/etc/weft/weft.conf";

struct CommandLine {
  enum class Action : unsigned char { serve, check, help, version };
  Action action = Action::serve;
  DaemonOptions daemon;
};

std::string help_text() {
  std::string text =
      "Usage: weftd [options]\n\nThe daemon of a node. While it runs, it is the only process that writes to the "
      "store.\n\nOptions:\n";
  const auto row = [&](std::string_view option, std::string_view help) {
    text += fmt::format("  {:<28}{}{}\n", option, option.size() >= 28 ? "\n                              " : "", help);
  };
  row("-c, --config FILE", fmt::format("the settings (default: {}, if it exists)", kDefaultFile));
  for (const Setting& setting : settings())
    row(fmt::format("{} {}", option_of(setting), setting.placeholder), setting.help);
  row("--check", "check the settings and what they name, print all that is wrong, and exit");
  row("-h, --help", "print this text and exit");
  row("-V, --version", "print the version, the build and the path of this program, and exit");
  return text;
}

Error usage(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}

const Setting* setting_of_option(std::string_view option) {
  for (const Setting& setting : settings())
    if (option_of(setting) == option) return &setting;
  return nullptr;
}

// Parses the command line.
class Parser {
 public:
  explicit Parser(std::span<const char* const> words) : words_(words) {}

  Result<CommandLine> parse() {
    while (at_ < words_.size()) WEFT_CHECK(option(words_[at_++]));
    if (line_.daemon.config_file.empty() && stat_file(std::string(kDefaultFile)).ok())
      line_.daemon.config_file = kDefaultFile;
    return std::move(line_);
  }

 private:
  Status option(std::string_view word) {
    using Action = CommandLine::Action;
    if (word == "-h" || word == "--help") return act(Action::help);
    if (word == "-V" || word == "--version") return act(Action::version);
    if (word == "--check") return act(Action::check);
    const auto equals = word.starts_with("--") ? word.find('=') : std::string_view::npos;
    const std::string name(word.substr(0, equals));
    const bool config = name == "-c" || name == "--config";
    const Setting* setting = setting_of_option(name);
    if (!config && setting == nullptr) return usage(fmt::format("unknown option {}", printable(word)));
    std::string value;
    if (equals != std::string_view::npos)
      value = word.substr(equals + 1);
    else if (at_ < words_.size())
      value = words_[at_++];
    else
      return usage(fmt::format("{}: expected a value after it", name));
    if (config)
      line_.daemon.config_file = value;
    else
      put(*setting, name, value);
    return {};
  }

  Status act(CommandLine::Action action) {
    line_.action = action;
    return {};
  }

  void put(const Setting& setting, const std::string& name, const std::string& text) {
    SettingValue& value = line_.daemon.flags[std::string(setting.key)];
    value.where = name;
    if (setting.kind != SettingKind::list && setting.kind != SettingKind::rules) value.texts.clear();
    value.texts.push_back(text);
  }

  std::span<const char* const> words_;
  std::size_t at_ = 0;
  CommandLine line_;
};

// Call before any thread starts, because threads inherit the mask.
void block_signals() {
  const sigset_t set = daemon_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

Status serve(const DaemonOptions& options) {
  block_signals();
  raise_file_limit();
  WEFT_TRY(const bool drained, run_daemon(options));
  if (!drained) ::_exit(1);
  return {};
}

Status act(const CommandLine& line) {
  switch (line.action) {
    case CommandLine::Action::help:
      std::cout << help_text();
      return {};
    case CommandLine::Action::version:
      std::cout << "weftd " << version_text() << ", " << own_program() << '\n';
      return {};
    case CommandLine::Action::check:  // run_weftd() does it
      return {};
    case CommandLine::Action::serve:
      return serve(line.daemon);
  }
  return {};
}

// Prints each mistake on a line of its own. Returns the exit code.
int check(const DaemonOptions& options) {
  const Mistakes mistakes = check_node(options);
  for (const Error& mistake : mistakes) std::cerr << "weftd: " << printable(mistake.message, 4096) << '\n';
  return mistakes.empty() ? 0 : 1;
}

// Returns the exit code: 0 after a clean shutdown, 1 after a failure, 2 for bad usage.
int run_weftd(std::span<const char* const> arguments) {
  auto line = Parser(arguments).parse();
  if (!line.ok()) {
    std::cerr << "weftd: " << printable_lines(line.error().message) << "\nTry 'weftd --help'.\n";
    return 2;
  }
  const char* socket = std::getenv("NOTIFY_SOCKET");
  line->daemon.notify_socket = socket == nullptr ? "" : socket;
  line->daemon.commit = version_commit();
  if (line->action == CommandLine::Action::check) return check(line->daemon);
  const Status done = act(*line);
  if (done.ok()) return 0;
  std::cerr << "weftd: " << printable(done.error().message, 4096) << '\n';
  return 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::survive_size_limit();
  const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
  return weft::run_weftd(all.subspan(all.empty() ? 0 : 1));
}
