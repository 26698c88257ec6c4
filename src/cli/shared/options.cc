#include "cli/shared/options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kHelpColumns = 80;

// Wraps `text` at kHelpColumns and indents all lines except the first.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::istringstream words{std::string(text)};
  std::string out;
  std::size_t column = indent;
  for (std::string word; words >> word;) {
    bool first = out.empty();
    if (!first && column + 1 + word.size() > kHelpColumns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

// Formats "-f,--force" for the help as "-f, --force", and an argument as its name.
std::string shown(const OptionSet::Row& row) {
  if (row.names.empty()) return row.placeholder + (row.many ? "..." : "");
  std::string names = row.names;
  const auto comma = names.find(',');
  names = comma == std::string::npos ? "    " + names : names.replace(comma, 1, ", ");
  return row.placeholder.empty() ? names : names + " " + row.placeholder;
}

}  // namespace

struct OptionSet::Parser {
  explicit Parser(const std::string& command) : app("", command) { app.set_help_flag(); }
  CLI::App app;
  std::vector<std::string>* behind_dashes = nullptr;  // takes the words behind "--"
};

OptionSet::OptionSet(std::string command) : command_(std::move(command)), parser_(std::make_unique<Parser>(command_)) {}

OptionSet::~OptionSet() = default;

void OptionSet::argument(const std::string& name, std::string& into, Need need, std::string_view help, Offers offers) {
  parser_->app.add_option(name, into)->required(need == Need::required);
  if (need == Need::required) require(name, [&into] { return !into.empty(); });
  positionals_ += need == Need::required ? " " + name : " [" + name + "]";
  arguments_.push_back({"", name, std::string(help), std::move(offers)});
}

void OptionSet::arguments(const std::string& name, std::vector<std::string>& into, Need need, std::string_view help) {
  parser_->app.add_option(name, into)->required(need == Need::required);
  if (need == Need::required) require(name, [&into] { return !into.empty(); });
  positionals_ += need == Need::required ? " " + name + "..." : " [" + name + "...]";
  arguments_.push_back({"", name, std::string(help), {}, true});
}

void OptionSet::command(const std::string& name, std::vector<std::string>& into, std::string_view help) {
  parser_->behind_dashes = &into;
  require("-- " + name, [&into] { return !into.empty(); });
  positionals_ += " -- " + name + "...";
  arguments_.push_back({"", name, std::string(help), {}, true});
}

void OptionSet::flag(const std::string& names, bool& into, std::string_view help) {
  parser_->app.add_flag(names, into);
  options_.push_back({names, "", std::string(help), {}});
}

void OptionSet::hidden_flag(const std::string& name, bool& into) {
  parser_->app.add_flag(name, into);
}

void OptionSet::value(const std::string& names, const std::string& placeholder, std::string& into,
                      std::string_view help, Offers offers) {
  takes_value(names);
  parser_->app.add_option(names, into)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  options_.push_back({names, placeholder, std::string(help), std::move(offers)});
}

void OptionSet::value(const std::string& names, const std::string& placeholder, std::optional<std::string>& into,
                      std::string_view help, Offers offers) {
  takes_value(names);
  parser_->app.add_option_function<std::string>(names, [&into](const std::string& given) { into = given; })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  options_.push_back({names, placeholder, std::string(help), std::move(offers)});
}

void OptionSet::values(const std::string& names, const std::string& placeholder, std::vector<std::string>& into,
                       std::string_view help) {
  takes_value(names);
  parser_->app.add_option(names, into)->allow_extra_args(false);
  options_.push_back({names, placeholder, std::string(help), {}});
}

void OptionSet::require(const std::string& name, std::function<bool()> is_given) {
  required_.emplace_back(name, std::move(is_given));
}

// Returns the first required argument that was not given; "" if all were.
std::string OptionSet::missing() const {
  for (const auto& [name, is_given] : required_)
    if (!is_given()) return name;
  return "";
}

void OptionSet::takes_value(const std::string& names) {
  for (std::string_view name : split(names, ',')) value_options_.emplace(name);
}

// Splits "--tag=x" into "--tag" and "x": CLI11 reads an empty value "--tag=" as an option with the next word as value.
std::vector<std::string> OptionSet::with_values_apart(std::vector<std::string> args) const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    auto equals = args[i].find('=');
    if (args[i] == "--") {
      words.insert(words.end(), args.begin() + static_cast<std::ptrdiff_t>(i), args.end());
      break;
    }
    if (equals != std::string::npos && value_options_.contains(args[i].substr(0, equals))) {
      words.push_back(args[i].substr(0, equals));
      words.push_back(args[i].substr(equals + 1));
      continue;
    }
    words.push_back(args[i]);
    if (value_options_.contains(args[i]) && i + 1 < args.size()) words.push_back(args[++i]);
  }
  return words;
}

// Says what the parser refused, in words of weft. Reports a mistyped option before a missing argument: the argument may
// be missing because of the typo.
Error OptionSet::explain(const std::vector<std::string>& words, std::string_view otherwise) const {
  const auto refused = [](std::string text) { return Error{Errc::invalid, std::move(text)}; };
  const std::vector<std::string> unknown = parser_->app.remaining();
  for (const std::string& word : unknown)
    if (word.size() > 1 && word.starts_with('-')) return refused(fmt::format("unknown option {}", printable(word)));
  if (!words.empty() && value_options_.contains(words.back()))
    return refused(fmt::format("{}: expected a value, got none", words.back()));
  if (const std::string name = missing(); !name.empty()) return refused(fmt::format("expected {}, got none", name));
  if (!unknown.empty()) return refused(fmt::format("expected no more arguments, got {}", printable(unknown.front())));
  for (const std::string& word : words)
    if (const auto equals = word.find('='); word.starts_with("--") && equals != std::string::npos)
      return refused(fmt::format("{}: expected no value, got {}", word.substr(0, equals), printable(word)));
  return refused(std::string(otherwise));
}

Status OptionSet::parse(std::vector<std::string> args) {
  if (parser_->behind_dashes != nullptr) {
    const auto dashes = std::find(args.begin(), args.end(), "--");
    if (dashes != args.end()) parser_->behind_dashes->assign(dashes + 1, args.end());
    args.erase(dashes, args.end());
  }
  args = with_values_apart(std::move(args));
  const std::vector<std::string> words = args;
  std::reverse(args.begin(), args.end());  // CLI11 parses from the back
  try {
    parser_->app.parse(std::move(args));
  } catch (const CLI::Error& error) {
    return explain(words, error.what());
  }
  if (parser_->behind_dashes != nullptr && parser_->behind_dashes->empty()) return explain(words, "expected a command");
  return {};
}

std::string OptionSet::usage() const {
  return fmt::format("{} [options]{}", command_, positionals_);
}

std::string OptionSet::table(std::string_view title, const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, shown(row).size());
  std::string text = fmt::format("\n{}:\n", title);
  for (const Row& row : rows) text += fmt::format("  {:<{}}  {}\n", shown(row), width, wrapped(row.help, width + 4));
  return text;
}

std::string OptionSet::help() const {
  return table("Arguments", arguments_) + table("Options", options_);
}

Result<Metrics> parse_metrics(const std::vector<std::string>& values) {
  Metrics metrics;
  for (const std::string& metric : values) {
    const auto equals = metric.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{Errc::invalid, fmt::format("--metric: expected KEY=VALUE, got \"{}\"", printable(metric))};
    metrics.emplace_back(metric.substr(0, equals), metric.substr(equals + 1));
  }
  return metrics;
}

}  // namespace weft
