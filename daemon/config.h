// The daemon's configuration, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/live.h"
#include "base/log.h"
#include "daemon/access.h"
#include "daemon/settings.h"
#include "pace/pace_line.h"
#include "peers/address.h"
#include "weft/cluster/registry.h"

namespace weft {

std::uint64_t memory_bytes();  // of this machine; 0: unknown

struct Config {
  std::string store;
  bool trust_store = false;
  std::string name, provider, key_file, origin;
  std::string location;  // as Join::location (peers/swarm_messages.h)
  ListenAddress listen;
  std::uint64_t cache_max = 0;   // bytes
  std::uint64_t memory_max = 0;  // bytes of new versions that may exist only in memory
  PaceRates rates;
  std::string cold, sparse;
  bool expect_others = false;                   // as FetchPolicy::expect_others
  std::vector<std::string> follow;              // models and prefixes of model names
  std::optional<ListenAddress> metrics_listen;  // of /metrics
  std::optional<ListenAddress> hub_listen;      // for clients of a model hub
  std::string hub_token_file;
  std::string hub_upstream;  // URL of the hub that has what the store lacks; "": none
  std::string hub_upstream_token_file;
  std::chrono::seconds drain{0};
  std::chrono::seconds gc_delay{0}, drafts_keep{0};
  std::string log_file, log_level;
  LogFormat log_format = LogFormat::text;
  EtcdOptions etcd;  // no endpoints: a node without a cluster
  NameGrants publish, remove;
  Grant gc;
  std::optional<ListenAddress> join_listen;  // for machines that join the cluster
  std::string join_authority;                // directory of what admits them; set with join_listen
  std::uint64_t join_members = 1;            // that the cluster's own etcd is to have

  bool clustered() const { return !etcd.endpoints.empty(); }
};

using LiveConfig = Live<Config>;  // SIGHUP replaces the configuration

// Checks `values` and adds the defaults. A mistake names the file and line, or the option. A setting with a mistake has
// its default. Reads the file of etcd's password, and no other.
Config make_config(const SettingValues& values, Mistakes& mistakes);
Result<Config> make_config(const SettingValues& values);  // Errc::invalid: the first mistake

// Returns the settings after a reload: reloadable keys from `after`, the others from `before`.
SettingValues reloaded_values(const SettingValues& before, const SettingValues& after);

// Returns the changed keys that are not reloadable. They take effect when the daemon restarts.
std::vector<std::string> need_restart(const SettingValues& before, const SettingValues& after);

}  // namespace weft
