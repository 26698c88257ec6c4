#include "daemon/config.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::string_view kCacheMax = "20G";
constexpr std::uint64_t kMemoryShare = 4;  // memory_max is a quarter of this machine's memory
constexpr std::string_view kDrainSeconds = "30";
constexpr std::uint64_t kDrainSecondsMax = 3600;
constexpr std::string_view kGcDelay = "1h";
constexpr std::string_view kDraftsKeep = "7d";
constexpr std::uint64_t kTimeMax = 100ULL * 365 * 86'400;  // seconds

// Returns settings as values of a type, or their defaults.
class Values {
 public:
  explicit Values(const SettingValues& values) : values_(values) {}

  std::string text(std::string_view key, std::string_view otherwise = "") const {
    const auto found = values_.find(key);
    return found == values_.end() || found->second.texts.empty() ? std::string(otherwise) : found->second.texts.back();
  }
  std::vector<std::string> list(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::vector<std::string>() : found->second.texts;
  }
  Error wrong(std::string_view key, std::string_view expected) const {
    const auto found = values_.find(key);
    const std::string where = found == values_.end() ? std::string(key) : found->second.where;
    return Error{Errc::invalid,
                 fmt::format("{}: {}: expected {}, got \"{}\"", where, key, expected, printable(text(key)))};
  }
  Result<std::uint64_t> number(std::string_view key, std::string_view otherwise, std::uint64_t max) const {
    const auto value = parse_u64(text(key, otherwise));
    if (!value || *value > max) return wrong(key, fmt::format("a number up to {}", max));
    return *value;
  }
  Result<std::uint64_t> bytes(std::string_view key, std::string_view otherwise) const {
    const auto value = parse_bytes(text(key, otherwise));
    if (!value) return wrong(key, "bytes, such as 200G");
    return *value;
  }
  Result<std::chrono::seconds> time(std::string_view key, std::string_view otherwise) const {
    const auto value = parse_time(text(key, otherwise), kTimeMax);
    if (!value) return wrong(key, "a time, such as 90s, 10m, 1h or 7d");
    return std::chrono::seconds(*value);
  }
  template <std::size_t N>
  Result<std::string> one_of(std::string_view key, const std::array<std::string_view, N>& words) const {
    std::string value = text(key, words.front());
    if (std::find(words.begin(), words.end(), value) != words.end()) return value;
    return wrong(key, fmt::format("one of {}", fmt::join(words, ", ")));
  }
  Result<Grant> grant(std::string_view key) const {
    auto made = parse_grant(list(key));
    if (made.ok()) {
      made->setting = key;
      return made;
    }
    return Error{Errc::invalid, fmt::format("{}: {}: {}", values_.find(key)->second.where, key, made.error().message)};
  }

 private:
  const SettingValues& values_;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

Result<std::string> read_password(const std::string& path) {
  if (path.empty()) return std::string();
  WEFT_TRY(const auto bytes, read_file(path, kConfigFileMax));
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\n'));
}

Result<EtcdOptions> etcd_options(const Values& values) {
  EtcdOptions etcd;
  etcd.endpoints = values.list("etcd.endpoints");
  etcd.cluster = values.text("cluster", etcd.cluster);
  etcd.prefix = values.text("etcd.prefix", etcd.prefix);
  etcd.user = values.text("etcd.user");
  WEFT_TRY(etcd.password, read_password(values.text("etcd.password_file")));
  etcd.ca = values.text("etcd.ca");
  etcd.cert = values.text("etcd.cert");
  etcd.key = values.text("etcd.key");
  return etcd;
}

Status set_limits(const Values& values, Config& config) {
  WEFT_TRY(config.cache_max, values.bytes("cache_max", kCacheMax));
  WEFT_TRY(config.memory_max, values.bytes("memory_max", std::to_string(memory_bytes() / kMemoryShare)));
  WEFT_TRY(config.cold, values.one_of("cold", std::to_array<std::string_view>({"auto", "stream", "fetch"})));
  config.follow = values.list("follow");
  WEFT_TRY(config.sparse, values.one_of("sparse", std::to_array<std::string_view>({"auto", "never"})));
  WEFT_TRY(const std::uint64_t port, values.number("metrics_port", "0", std::numeric_limits<std::uint16_t>::max()));
  config.metrics_port = static_cast<std::uint16_t>(port);
  WEFT_TRY(const std::uint64_t drain, values.number("drain_seconds", kDrainSeconds, kDrainSecondsMax));
  config.drain = std::chrono::seconds(drain);
  WEFT_TRY(config.gc_delay, values.time("gc_delay", kGcDelay));
  WEFT_TRY(config.drafts_keep, values.time("drafts_keep", kDraftsKeep));
  return {};
}

}  // namespace

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

Result<Config> make_config(const SettingValues& given) {
  const Values values(given);
  Config config;
  config.store = values.text("store");
  if (config.store.empty()) return Error{Errc::invalid, "store: expected the directory of the store, got nothing"};
  const auto trust = values.one_of("trust_store", std::to_array<std::string_view>({"false", "true"}));
  if (!trust.ok()) return trust.error();
  config.trust_store = *trust == "true";
  config.name = values.text("name", host_name());
  config.provider = values.text("provider", "auto");
  config.key_file = values.text("key_file");
  config.origin = values.text("origin");
  if (auto listen = parse_listen(values.text("listen")); listen.ok())
    config.listen = std::move(listen).value();
  else
    return values.wrong("listen", "HOST, HOST:PORT or [HOST]:PORT");
  config.log_file = values.text("log_file");
  config.log_level = values.text("log_level", "info");
  if (!check_log_levels(config.log_level).ok())
    return values.wrong("log_level", "debug, info, warning or error, and CATEGORY=debug");
  WEFT_CHECK(set_limits(values, config));
  WEFT_TRY(config.etcd, etcd_options(values));
  WEFT_TRY(config.publish, values.grant("control.publish"));
  WEFT_TRY(config.remove, values.grant("control.remove"));
  WEFT_TRY(config.gc, values.grant("control.gc"));
  if (!config.origin.empty() && !config.clustered())
    return Error{Errc::invalid, "origin: expected etcd.endpoints with it: an origin is a cluster's"};
  return config;
}

SettingValues reloaded_values(const SettingValues& before, const SettingValues& after) {
  SettingValues values;
  for (const Setting& setting : settings()) {
    const SettingValues& from = setting.reloadable ? after : before;
    if (const auto found = from.find(setting.key); found != from.end()) values.insert(*found);
  }
  return values;
}

std::vector<std::string> need_restart(const SettingValues& before, const SettingValues& after) {
  const Values old_values(before);
  const Values new_values(after);
  std::vector<std::string> keys;
  for (const Setting& setting : settings())
    if (!setting.reloadable && old_values.list(setting.key) != new_values.list(setting.key))
      keys.emplace_back(setting.key);
  return keys;
}

}  // namespace weft
