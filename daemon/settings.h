// The settings: one table for the file, the command line and --help. A setting's key is its name in weft.conf, after
// the name of its TOML table and a dot. Its option on the command line has dashes in place of dots and underscores.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/result.h"

namespace weft {

inline constexpr std::uint64_t kConfigFileMax = 1U << 20U;  // bytes

// `rules`: a list whose values in the file are the tables of an array, [[KEY]]. Their keys become words of one text:
// "PREFIX publish=WHO,WHO remove=WHO".
enum class SettingKind : unsigned char { text, number, list, yes_or_no, rules };
struct Setting {
  std::string_view key;
  SettingKind kind = SettingKind::text;
  std::string_view placeholder;
  std::string_view help;
  bool reloadable = false;  // SIGHUP reloads this setting
};
std::span<const Setting> settings();
const Setting* find_setting(std::string_view key);
std::string option_of(const Setting& setting);  // "--etcd-endpoints"

// The unparsed texts of a setting: one for a text or a number, any number for a list.
struct SettingValue {
  std::vector<std::string> texts;
  std::string where;  // "weft.conf:12" or the option: for messages
};
using SettingValues = std::map<std::string, SettingValue, std::less<>>;  // by Setting::key

// The mistakes in a configuration: one line each, with the place of the setting.
using Mistakes = std::vector<Error>;
// Returns a mistake in the value of a setting: the place of the value, the key, and `what`.
Error mistake_in(const SettingValues& values, std::string_view key, std::string_view what);
Status first_of(const Mistakes& mistakes);  // the first one, if there is any

// Reads a TOML file. Mistakes, with the line: bad syntax, unknown keys, values of another kind. Those keys are not
// among the values.
SettingValues read_config_file(const std::string& path, Mistakes& mistakes);

}  // namespace weft
