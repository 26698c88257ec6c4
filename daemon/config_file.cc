// Reads weft.conf, a TOML file. Only user of tomlplusplus.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "daemon/settings.h"
#include "os/sys.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace weft {
namespace {

class Reader {
 public:
  Reader(std::string path, Mistakes& mistakes) : path_(std::move(path)), mistakes_(mistakes) {}

  SettingValues read() {
    if (const auto bytes = read_file(path_, kConfigFileMax); bytes.ok())
      parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    else
      mistakes_.push_back(bytes.error());
    return std::move(values_);
  }

 private:
  std::string place(const toml::source_region& source) const { return fmt::format("{}:{}", path_, source.begin.line); }
  Error unknown(const toml::node& node, std::string_view key) const {
    return Error{Errc::invalid, fmt::format("{}: unknown key {}", place(node.source()), printable(key))};
  }
  Error expected(const toml::node& node, std::string_view key, std::string_view what) const {
    return Error{Errc::invalid, fmt::format("{}: {}: expected {}", place(node.source()), printable(key), what)};
  }

  void parse(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text);
    if (parsed)
      take(parsed.table(), "");
    else
      mistakes_.push_back({Errc::invalid, fmt::format("{}: {}", place(parsed.error().source()),
                                                      printable(parsed.error().description()))});
  }

  // Tables are one level deep.
  void take(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = prefix + std::string(name.str());
      if (prefix.empty() && node.is_table()) {
        take(*node.as_table(), key + ".");
        continue;
      }
      const Setting* setting = find_setting(key);
      const Status taken = setting == nullptr ? Status{unknown(node, key)} : take(node, *setting);
      if (taken.ok()) continue;
      values_.erase(key);
      mistakes_.push_back(taken.error());
    }
  }

  Status take(const toml::node& node, const Setting& setting) {
    return take(node, setting, values_[std::string(setting.key)]);
  }

  Status take(const toml::node& node, const Setting& setting, SettingValue& value) const {
    value.where = place(node.source());
    const toml::array* items = node.as_array();
    if (setting.kind == SettingKind::rules) return take_rules(items, node, value);
    if (setting.kind == SettingKind::list && items != nullptr) {
      for (const toml::node& item : *items) WEFT_CHECK(take_scalar(item, setting, value));
      return {};
    }
    return take_scalar(node, setting, value);
  }

  // Each table becomes one text: the prefix, then "KEY=WHO,WHO" for each other key.
  Status take_rules(const toml::array* tables, const toml::node& node, SettingValue& value) const {
    if (tables == nullptr || !tables->is_array_of_tables()) return expected(node, "grant", "tables [[grant]]");
    value.where = place(tables->front().source());
    for (const toml::node& item : *tables) {
      const toml::table& table = *item.as_table();
      const auto* prefix = table.get_as<std::string>("prefix");
      if (prefix == nullptr || has_separator(prefix->get())) return expected(item, "grant", "prefix = \"NAMES/\"");
      std::string text = prefix->get();
      for (const auto& [key, who] : table) {
        if (key.str() == "prefix") continue;
        if (key.str() != "publish" && key.str() != "remove") return unknown(who, fmt::format("grant.{}", key.str()));
        WEFT_CHECK(add_users(who, key.str(), text));
      }
      value.texts.push_back(std::move(text));
    }
    return {};
  }

  static bool has_separator(std::string_view text) { return text.empty() || text.find_first_of(" ,=") != text.npos; }

  Status add_users(const toml::node& who, std::string_view right, std::string& text) const {
    SettingValue users;
    const Setting list{right, SettingKind::list, {}, {}};
    WEFT_CHECK(take(who, list, users));
    if (std::ranges::any_of(users.texts, has_separator))
      return expected(who, fmt::format("grant.{}", right), "users and @GROUPS");
    text += fmt::format(" {}={}", right, fmt::join(users.texts, ","));
    return {};
  }

  static Status put(std::string text, SettingValue& value) {
    value.texts.push_back(std::move(text));
    return {};
  }

  // Accepts numbers for texts: ids of users, sizes in bytes.
  Status take_scalar(const toml::node& node, const Setting& setting, SettingValue& value) const {
    if (setting.kind == SettingKind::yes_or_no) {
      const auto* yes = node.as_boolean();
      if (yes == nullptr) return expected(node, setting.key, "true or false");
      return put(yes->get() ? "true" : "false", value);
    }
    if (const auto* number = node.as_integer(); number != nullptr && number->get() >= 0)
      return put(std::to_string(number->get()), value);
    if (setting.kind == SettingKind::number) return expected(node, setting.key, "a number");
    if (const auto* text = node.as_string()) return put(text->get(), value);
    return expected(node, setting.key, setting.kind == SettingKind::list ? "texts" : "a text");
  }

  const std::string path_;
  Mistakes& mistakes_;
  SettingValues values_;
};

}  // namespace

SettingValues read_config_file(const std::string& path, Mistakes& mistakes) {
  return Reader(path, mistakes).read();
}

}  // namespace weft
