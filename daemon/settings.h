// What can be configured: one table for the file, the command line and --help. A setting's key is its name in
// weft.conf, with the name of its table before a dot; its option on the command line has dashes for dots and
// underscores.
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

enum class SettingKind : unsigned char { text, number, list, yes_or_no };
struct Setting {
  std::string_view key;
  SettingKind kind = SettingKind::text;
  std::string_view placeholder;
  std::string_view help;
  bool reread = false;  // by SIGHUP
};
std::span<const Setting> settings();
const Setting* find_setting(std::string_view key);
std::string option_of(const Setting& setting);  // "--etcd-endpoints"

// By key; texts as they were written. A text or number has one, a list any number.
struct SettingValue {
  std::vector<std::string> texts;
  std::string where;  // "weft.conf:12" or the option: for messages
};
using SettingValues = std::map<std::string, SettingValue, std::less<>>;

// A toml file. Errc::invalid with the line: not toml, unknown keys, values of another kind.
Result<SettingValues> read_config_file(const std::string& path);

}  // namespace weft
