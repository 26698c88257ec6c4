#include "daemon/config.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "os/sys.h"
#include "peers/swarm_messages.h"

namespace weft {
namespace {

constexpr std::uint64_t kCacheMax = 20ULL << 30U;
constexpr std::uint64_t kMemoryShare = 4;  // memory_max is a quarter of this machine's memory
constexpr std::uint64_t kDrainSeconds = 30;
constexpr std::uint64_t kDrainSecondsMax = 3600;
constexpr std::uint64_t kEtcdMembersMax = 7;
constexpr auto kGcDelay = std::chrono::hours(1);
constexpr auto kDraftsKeep = std::chrono::hours(7 * 24);
constexpr std::uint64_t kTimeMax = 100ULL * 365 * 86'400;  // seconds

std::vector<std::string> list_of(const SettingValues& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? std::vector<std::string>() : found->second.texts;
}

// Returns settings as values of a type, or their defaults. A wrong value is a mistake, and its default is returned.
class Values {
 public:
  Values(const SettingValues& values, Mistakes& mistakes) : values_(values), mistakes_(mistakes) {}

  std::string text(std::string_view key, std::string_view otherwise = "") const {
    const auto found = values_.find(key);
    return found == values_.end() || found->second.texts.empty() ? std::string(otherwise) : found->second.texts.back();
  }
  std::vector<std::string> list(std::string_view key) const { return list_of(values_, key); }
  void wrong(std::string_view key, std::string_view expected) const {
    add(key, fmt::format("expected {}, got {}", expected,
                         text(key).empty() ? "nothing" : fmt::format("\"{}\"", printable(text(key)))));
  }
  void add(std::string_view key, std::string_view what) const { mistakes_.push_back(mistake_in(values_, key, what)); }
  std::uint64_t number(std::string_view key, std::uint64_t otherwise, std::uint64_t max) const {
    const auto value = parse_u64(text(key, std::to_string(otherwise)));
    if (value && *value <= max) return *value;
    wrong(key, fmt::format("a number up to {}", max));
    return otherwise;
  }
  std::uint64_t bytes(std::string_view key, std::uint64_t otherwise) const {
    if (const auto value = parse_bytes(text(key, std::to_string(otherwise)))) return *value;
    wrong(key, "bytes, such as 200G");
    return otherwise;
  }
  // A rate that is set has a least value: below it, leases of windows and patience with sources would count for
  // nothing.
  std::uint64_t rate(std::string_view key) const {
    const auto value = parse_bytes(text(key, "0"));
    if (value && (*value == 0 || *value >= kPaceRateMin)) return *value;
    wrong(key, "0 (no bound) or at least 1000000 bytes a second, such as 100M");
    return 0;
  }
  std::chrono::seconds time(std::string_view key, std::chrono::seconds otherwise) const {
    if (const auto value = parse_time(text(key, std::to_string(otherwise.count())), kTimeMax))
      return std::chrono::seconds(*value);
    wrong(key, "a time, such as 90s, 10m, 1h or 7d");
    return otherwise;
  }
  // Returns no address if the setting is absent or has a mistake.
  std::optional<ListenAddress> address(std::string_view key) const {
    if (text(key).empty()) return {};
    auto parsed = parse_listen(text(key));
    if (!parsed.ok() || parsed->port == 0) return wrong(key, "HOST:PORT or [HOST]:PORT"), std::nullopt;
    if (parsed->host == "localhost") parsed->host = "127.0.0.1";
    return *std::move(parsed);
  }
  template <std::size_t N>
  std::string one_of(std::string_view key, const std::array<std::string_view, N>& words) const {
    std::string value = text(key, words.front());
    if (std::find(words.begin(), words.end(), value) != words.end()) return value;
    wrong(key, fmt::format("one of {}", fmt::join(words, ", ")));
    return std::string(words.front());
  }
  bool flag(std::string_view key) const {
    return one_of(key, std::to_array<std::string_view>({"false", "true"})) == "true";
  }
  Grant grant(std::string_view key) const { return grant(key, list(key), std::string(key)); }
  // `setting` names what grants it, for the message of a refusal.
  Grant grant(std::string_view key, const std::vector<std::string>& who, std::string setting) const {
    auto made = parse_grant(who);
    if (!made.ok())
      add(key, setting == key ? made.error().message : fmt::format("{}: {}", setting, made.error().message));
    Grant grant = made.ok() ? std::move(made).value() : Grant{};
    grant.setting = std::move(setting);
    return grant;
  }

 private:
  const SettingValues& values_;
  Mistakes& mistakes_;
};

// Returns the first line of the file.
std::string read_password(const Values& values) {
  constexpr std::string_view kKey = "etcd.password_file";
  const std::string path = values.text(kKey);
  if (path.empty()) return {};
  const auto bytes = read_file(path, kConfigFileMax);
  if (!bytes.ok()) return values.add(kKey, bytes.error().message), std::string();
  const std::string text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::string password = text.substr(0, text.find('\n'));
  if (password.empty()) values.add(kKey, fmt::format("{}: expected a password in the first line, got nothing", path));
  return password;
}

EtcdOptions etcd_options(const Values& values) {
  EtcdOptions etcd;
  etcd.endpoints = values.list("etcd.endpoints");
  etcd.cluster = values.text("cluster", etcd.cluster);
  etcd.prefix = values.text("etcd.prefix", etcd.prefix);
  etcd.user = values.text("etcd.user");
  etcd.password = read_password(values);
  etcd.ca = values.text("etcd.ca");
  etcd.cert = values.text("etcd.cert");
  etcd.key = values.text("etcd.key");
  return etcd;
}

void set_limits(const Values& values, Config& config) {
  config.cache_max = values.bytes("cache_max", kCacheMax);
  config.memory_max = values.bytes("memory_max", memory_bytes() / kMemoryShare);
  config.rates = {values.rate("rate.staging"), values.rate("rate.total"), values.rate("rate.origin")};
  config.cold = values.one_of("cold", std::to_array<std::string_view>({"auto", "stream", "fetch"}));
  config.follow = values.list("follow");
  config.sparse = values.one_of("sparse", std::to_array<std::string_view>({"auto", "never"}));
  config.expect_others = values.flag("expect_others");
  config.metrics_listen = values.address("metrics_listen");
  config.drain = std::chrono::seconds(values.number("drain_seconds", kDrainSeconds, kDrainSecondsMax));
  config.gc_delay = values.time("gc_delay", kGcDelay);
  config.drafts_keep = values.time("drafts_keep", kDraftsKeep);
}

// Returns true for an address in digits that only this machine reaches.
bool is_loopback(std::string_view host) {
  return host == "::1" || (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

void set_upstream(const Values& values, Config& config) {
  constexpr std::string_view kKey = "hub.upstream";
  const std::string url = values.text(kKey);
  config.hub_upstream_token_file = values.text("hub.upstream_token_file");
  if (url.empty() || url.starts_with("https://") || url.starts_with("http://"))
    config.hub_upstream = url;
  else
    values.wrong(kKey, "a URL, such as https://huggingface.co");
  if (url.empty() && !config.hub_upstream_token_file.empty())
    values.add("hub.upstream_token_file", "expected hub.upstream with it: the token is for this hub");
}

// Clients from other machines prove that they may read the models.
void set_hub(const Values& values, Config& config) {
  constexpr std::string_view kKey = "hub.listen";
  config.hub_token_file = values.text("hub.token_file");
  set_upstream(values, config);
  const std::string text = values.text(kKey);
  if (text.empty() && !config.hub_token_file.empty())
    values.add("hub.token_file", "expected hub.listen with it: the token is for its clients");
  if (text.empty() && !config.hub_upstream.empty())
    values.add("hub.upstream", "expected hub.listen with it: its clients ask for what is pulled");
  auto address = values.address(kKey);
  if (address && !is_loopback(address->host) && config.hub_token_file.empty())
    return values.wrong(kKey, "an address of the loopback interface, or hub.token_file with it");
  config.hub_listen = std::move(address);
}

// weftd admits machines only to the cluster that it belongs to.
void set_join(const Values& values, Config& config) {
  constexpr std::string_view kKey = "join.listen";
  config.join_authority = values.text("join.authority");
  const std::string text = values.text(kKey);
  if (text.empty() && !config.join_authority.empty())
    values.add("join.authority", "expected join.listen with it: it admits who connects there");
  auto address = values.address(kKey);
  if (!address) return;
  if (config.join_authority.empty()) return values.wrong(kKey, "join.authority with it");
  config.join_members = values.number("join.members", 1, kEtcdMembersMax);
  if (!config.clustered()) return values.wrong(kKey, "etcd.endpoints with it: others join a cluster");
  config.join_listen = std::move(address);
}

// A node of a cluster reads from the other nodes and serves them, and both prove that they hold the key. The loopback
// would be no address for them.
void set_place(const Values& values, Config& config) {
  config.etcd = etcd_options(values);
  config.key_file = values.text("key_file");
  config.origin = values.text("origin");
  if (std::string location = values.text("location"); is_location(location))
    config.location = std::move(location);
  else
    values.wrong("location", fmt::format("at most {} printable ASCII characters without spaces", kLocationBytesMax));
  const std::string listen = values.text("listen");
  if (auto parsed = parse_listen(listen); parsed.ok())
    config.listen = std::move(parsed).value();
  else
    values.wrong("listen", "HOST, HOST:PORT or [HOST]:PORT");
  if (!config.clustered() && !config.origin.empty())
    values.add("origin", "expected etcd.endpoints with it: an origin is a cluster's");
  if (!config.clustered()) return;
  if (listen.empty() && config.provider != "none")
    values.wrong("listen", "the address of this node for the other nodes, since etcd.endpoints is set");
  if (config.key_file.empty()) values.wrong("key_file", "the file of the cluster's key, since etcd.endpoints is set");
}

void set_grants(const Values& values, Config& config) {
  constexpr std::string_view kRules = "grant";
  config.publish = {values.grant("control.publish")};
  config.remove = {values.grant("control.remove")};
  config.gc = values.grant("control.gc");
  const auto put = [&](NameGrants& right, std::string_view name, const GrantRule& rule,
                       const std::optional<std::vector<std::string>>& who) {
    if (!who) return;
    const std::string setting = fmt::format("the grant of {} for \"{}\"", name, rule.prefix);
    if (!right.by_prefix.emplace(rule.prefix, values.grant(kRules, *who, setting)).second)
      values.add(kRules, fmt::format("expected each prefix once, got \"{}\" again", rule.prefix));
  };
  for (const std::string& text : values.list(kRules)) {
    const auto rule = parse_grant_rule(text);
    if (!rule.ok()) {
      values.add(kRules, rule.error().message);
      continue;
    }
    put(config.publish, "publish", *rule, rule->publish);
    put(config.remove, "remove", *rule, rule->remove);
  }
}

}  // namespace

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

Config make_config(const SettingValues& given, Mistakes& mistakes) {
  const Values values(given, mistakes);
  Config config;
  config.store = values.text("store");
  if (config.store.empty()) values.wrong("store", "the directory of the store");
  config.trust_store = values.flag("trust_store");
  config.name = values.text("name", host_name());
  config.provider = values.text("provider", "auto");
  config.log_file = values.text("log_file");
  config.log_level = values.text("log_level", "info");
  if (values.one_of("log_format", std::to_array<std::string_view>({"text", "json"})) == "json")
    config.log_format = LogFormat::json;
  if (!check_log_levels(config.log_level).ok())
    values.wrong("log_level", "debug, info, warning or error, and CATEGORY=debug");
  set_limits(values, config);
  set_place(values, config);
  set_hub(values, config);
  set_join(values, config);
  set_grants(values, config);
  return config;
}

Result<Config> make_config(const SettingValues& values) {
  Mistakes mistakes;
  Config config = make_config(values, mistakes);
  WEFT_CHECK(first_of(mistakes));
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
  std::vector<std::string> keys;
  for (const Setting& setting : settings())
    if (!setting.reloadable && list_of(before, setting.key) != list_of(after, setting.key))
      keys.emplace_back(setting.key);
  return keys;
}

}  // namespace weft
