#include "cli/complete.h"

#include <algorithm>
#include <span>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/commands/commands.h"
#include "cli/opened_command.h"
#include "os/mounts.h"

namespace weft {
namespace {

constexpr std::string_view kOpen = ":open";

// The offers for a value by its name in --help.
constexpr std::pair<std::string_view, std::string_view> kByName[] = {
    {"MODEL", kOfferModels},
    {"MODEL[@V]", kOfferModels},
    {"BASE[@V]", kOfferModels},
    {"BEFORE", kOfferModels},
    {"AFTER", kOfferModels},
    {"PREFIX", kOfferModels},
    {"MODEL[@V]|DIR|FILE", kOfferModels},
    {"MODEL[@V]|DIR|FILE", kOfferFiles},
    {"MODEL@V", kOfferRemoved},
    {"DIR", kOfferDirectories},
    {"ORIGIN", kOfferDirectories},
    {"FILE", kOfferFiles},
    {"PATH", kOfferFiles},
};

bool is_option(std::string_view word) {
  return word.size() > 1 && word.starts_with('-');
}

// A word with a control character would be two answers, or control the terminal.
bool can_be_answer(std::string_view word) {
  return std::ranges::none_of(word, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

class Completer {
 public:
  Completer(std::span<const std::string> before, std::string_view word, const CliEnvironment& environment)
      : before_(before), word_(word), prefix_(word), environment_(environment) {}

  std::string answers() {
    read_words();
    const CommandEntry* entry = command_named(command_);
    if (entry != nullptr)
      complete_command(OpenedCommand(*entry, environment_).options);
    else if (command_.empty())
      complete_program();
    else if (group_named(command_) != nullptr)
      add_commands();
    else if (command_ == "help" && rest_.empty())
      add_commands();
    return std::move(text_);
  }

 private:
  // Finds the store, the command, and the words behind it.
  void read_words() {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      const std::string_view word = before_[i];
      if (word == kStoreOption && i + 1 < before_.size()) {
        store_ = before_[i + 1];
        if (command_.empty()) ++i;
      } else if (word.starts_with("--store=")) {
        store_ = word.substr(kStoreOption.size() + 1);
      } else if ((command_.empty() || group_named(command_) != nullptr) && !word.starts_with('-')) {
        command_ += (command_.empty() ? "" : " ") + std::string(word);
        rest_ = before_.subspan(i + 1);
      }
    }
  }

  void complete_program() {
    if (!before_.empty() && before_.back() == kStoreOption) return offer(kOfferDirectories);
    if (word_.starts_with("--store=")) return offer(kOfferDirectories);
    if (!word_.starts_with('-')) return add_commands();
    for (const ProgramOption& option : kProgramOptions)
      for (const std::string_view name : split(option.names, ',')) add(name, option.help);
  }

  void add_commands() {
    const bool in_group = group_named(command_) != nullptr;
    const std::string_view group = in_group ? std::string_view(command_) : std::string_view();
    for (const CommandEntry* entry : all_commands())
      if (group_of(*entry) == group) add(entry->info.name.substr(in_group ? group.size() + 1 : 0), entry->info.summary);
    if (in_group) return;
    for (const CommandGroup& one : all_groups()) add(one.name, one.summary);
    if (command_.empty()) add("help", "describe a command");
  }

  void complete_command(const OptionSet& options) {
    std::size_t arguments = 0;
    bool only_arguments = false;                 // behind "--"
    const OptionSet::Row* with_value = nullptr;  // the option that the next word is the value of
    for (const std::string& word : rest_) {
      if (with_value != nullptr) {
        with_value = nullptr;
      } else if (only_arguments || !is_option(word)) {
        ++arguments;
      } else if (word == "--") {
        only_arguments = true;
      } else if (const OptionSet::Row* row = option(options, word); row != nullptr && !row->placeholder.empty()) {
        with_value = row;
      }
    }
    if (with_value != nullptr) return offer(*with_value);
    if (only_arguments || !word_.starts_with('-')) return complete_argument(options, arguments);
    if (const auto equals = word_.find('='); equals != std::string_view::npos) {
      prefix_ = word_.substr(equals + 1);
      if (const OptionSet::Row* row = option(options, word_.substr(0, equals)); row != nullptr) offer(*row);
      return;
    }
    for (const OptionSet::Row& row : options.option_rows())
      for (const std::string_view name : split(row.names, ',')) add(name, row.help);
  }

  void complete_argument(const OptionSet& options, std::size_t number) {
    const auto& rows = options.argument_rows();
    if (number < rows.size())
      offer(rows[number]);
    else if (!rows.empty() && rows.back().many)
      offer(rows.back());
  }

  static const OptionSet::Row* option(const OptionSet& options, std::string_view name) {
    for (const OptionSet::Row& row : options.option_rows())
      for (const std::string_view own : split(row.names, ','))
        if (own == name) return &row;
    return nullptr;
  }

  void offer(const OptionSet::Row& row) {
    for (const std::string_view word : row.offers) offer(word);
    if (!row.offers.empty()) return;
    for (const auto& [name, word] : kByName)
      if (name == row.placeholder) offer(word);
  }

  void offer(std::string_view word) {
    if (word == kOfferModels) {
      add_models();
    } else if (word == kOfferRemoved) {
      add_lines(names_by({"ls", "--removed", "--names"}));
    } else if (word == kOfferMounts) {
      add_mounts();
    } else if (word.starts_with(':')) {
      text_ += word;
      text_ += '\n';
    } else {
      add(word, "");
    }
  }

  void add_models() {
    const auto at = prefix_.find('@');
    if (at == std::string_view::npos) {
      text_ += kOpen;
      text_ += '\n';
      return add_lines(names_by({"ls", "--names"}));
    }
    const std::string model(prefix_.substr(0, at));
    const std::string numbers = names_by({"ls", model, "--names"});
    if (numbers.empty()) return;
    add_lines(numbers);
    add_lines(names_by({"tag", model, "--names"}));
    add(model + "@latest", "");
  }

  void add_mounts() {
    const auto mounts = weft_mounts();
    if (!mounts.ok()) return;
    for (const WeftMount& mount : *mounts) add(mount.directory, "");
  }

  void add_lines(const std::string& lines) {
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) add(line, "");
  }

  void add(std::string_view word, std::string_view help) {
    if (!word.starts_with(prefix_) || !can_be_answer(word)) return;
    text_ += word;
    text_ += '\t';
    text_ += help;
    text_ += '\n';
  }

  // Returns the lines that another command prints for the store of this command line; "" if it fails.
  std::string names_by(std::vector<std::string> words) const {
    if (!store_.empty()) words.insert(words.end(), {std::string(kStoreOption), without_tilde(store_)});
    std::ostringstream out;
    std::ostream nowhere(nullptr);
    const CliEnvironment inner{.out = out,
                               .err = nowhere,
                               .variable = environment_.variable,
                               .is_root = environment_.is_root,
                               .config_file = environment_.config_file,
                               .interrupt = environment_.interrupt};
    return run_weft(words, inner) == kExitDone ? out.str() : "";
  }

  // The shell has not replaced the ~ yet.
  std::string without_tilde(std::string_view path) const {
    const auto home = environment_.variable("HOME");
    const bool own = path == "~" || path.starts_with("~/");
    return own && home ? *home + std::string(path.substr(1)) : std::string(path);
  }

  const std::span<const std::string> before_;
  const std::string_view word_;
  std::string_view prefix_;  // the part of word_ that answers begin with
  const CliEnvironment& environment_;
  std::string_view store_;
  std::string command_;
  std::span<const std::string> rest_;  // the words behind the command, without the last one
  std::string text_;
};

}  // namespace

std::string completions(const std::vector<std::string>& words, const CliEnvironment& environment) {
  if (words.empty()) return Completer({}, "", environment).answers();
  return Completer(std::span(words).first(words.size() - 1), words.back(), environment).answers();
}

}  // namespace weft
