// The options and arguments of a subcommand, declared once for the parser, for --help and for the shells' completion.
// CLI11 stays in options.cc.
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

// Offers that stand for values which are looked up: by weft the first three, by the shell the others.
inline constexpr std::string_view kOfferModels = ":models";    // MODEL, and MODEL@V once an @ is typed
inline constexpr std::string_view kOfferRemoved = ":removed";  // MODEL@V of removed versions
inline constexpr std::string_view kOfferMounts = ":mounts";    // directories of weft's mounts
inline constexpr std::string_view kOfferFiles = ":files";
inline constexpr std::string_view kOfferDirectories = ":directories";
inline constexpr std::string_view kOfferGroups = ":groups";

class OptionSet {
 public:
  explicit OptionSet(std::string command);
  ~OptionSet();

  enum class Need : unsigned char { required, optional };
  // Completions of a value: words, or kOffer…. If a value has none, its placeholder decides (cli/complete.cc).
  using Offers = std::vector<std::string_view>;

  // Targets must live until parse() has returned, and offers as long as the set.
  void argument(const std::string& name, std::string& into, Need need, std::string_view help, Offers offers = {});
  // Any number of arguments; at least one if required.
  void arguments(const std::string& name, std::vector<std::string>& into, Need need, std::string_view help);
  // A command: the words behind "--" as the user wrote them, at least one. Declare it after all arguments.
  void command(const std::string& name, std::vector<std::string>& into, std::string_view help);
  void flag(const std::string& names, bool& into, std::string_view help);  // "-f,--force"
  void hidden_flag(const std::string& name, bool& into);  // for weft's own programs: --help leaves it out
  void value(const std::string& names, const std::string& placeholder, std::string& into, std::string_view help,
             Offers offers = {});
  // Sets `into` if the option is given, also with an empty value.
  void value(const std::string& names, const std::string& placeholder, std::optional<std::string>& into,
             std::string_view help, Offers offers = {});
  void values(const std::string& names, const std::string& placeholder, std::vector<std::string>& into,
              std::string_view help);  // the option may be repeated

  Status parse(std::vector<std::string> args);  // Errc::invalid: a usage error
  std::string usage() const;                    // "weft import [options] PATH…"
  std::string help() const;                     // the tables of arguments and options

  struct Row {
    std::string names;        // "-f,--force"; "" for an argument
    std::string placeholder;  // "MODEL"; "" for a flag
    std::string help;
    Offers offers;
    bool many = false;  // an argument that may be repeated
  };
  // In the order of their declaration, without hidden ones.
  const std::vector<Row>& argument_rows() const { return arguments_; }
  const std::vector<Row>& option_rows() const { return options_; }
  static std::string table(std::string_view title, const std::vector<Row>& rows);  // as in help()

 private:
  struct Parser;
  void takes_value(const std::string& names);
  void require(const std::string& name, std::function<bool()> is_given);
  std::string missing() const;
  Error explain(const std::vector<std::string>& words, std::string_view otherwise) const;
  std::vector<std::string> with_values_apart(std::vector<std::string> args) const;

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
