// The options and arguments of a subcommand, declared once for the parser and for --help. CLI11 stays in options.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class OptionSet {
 public:
  explicit OptionSet(std::string command);
  ~OptionSet();

  enum class Need : unsigned char { required, optional };

  // Targets must live until parse() has returned.
  void argument(const std::string& name, std::string& into, Need need, std::string_view help);
  // Any number of arguments; at least one if required.
  void arguments(const std::string& name, std::vector<std::string>& into, Need need, std::string_view help);
  void flag(const std::string& names, bool& into, std::string_view help);  // "-f,--force"
  void hidden_flag(const std::string& name, bool& into);  // for weft's own programs: --help leaves it out
  void value(const std::string& names, const std::string& placeholder, std::string& into, std::string_view help);
  // Sets `into` if the option is given, also with an empty value.
  void value(const std::string& names, const std::string& placeholder, std::optional<std::string>& into,
             std::string_view help);
  void values(const std::string& names, const std::string& placeholder, std::vector<std::string>& into,
              std::string_view help);  // the option may be repeated

  Status parse(std::vector<std::string> args);  // Errc::invalid: a usage error
  std::string usage() const;                    // "weft import [options] PATH…"
  std::string help() const;                     // the tables of arguments and options

 private:
  struct Parser;
  struct Row {
    std::string syntax;
    std::string help;
  };
  void takes_value(const std::string& names);
  void require(const std::string& name, std::function<bool()> is_given);
  std::string missing() const;
  Error explain(const std::vector<std::string>& words, std::string_view otherwise) const;
  std::vector<std::string> with_values_apart(std::vector<std::string> args) const;
  static std::string table(std::string_view title, const std::vector<Row>& rows);

  std::string command_;
  std::string positionals_;
  std::vector<Row> arguments_;
  std::vector<Row> options_;
  std::vector<std::pair<std::string, std::function<bool()>>> required_;  // arguments, and whether they are given
  std::set<std::string> value_options_;  // options with a value, such as "-n" and "--name"
  std::unique_ptr<Parser> parser_;
};

Result<Metrics> parse_metrics(const std::vector<std::string>& values);  // the values of --metric, KEY=VALUE

}  // namespace weft
