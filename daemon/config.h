// The daemon's configuration, checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/access.h"
#include "daemon/settings.h"
#include "peers/address.h"
#include "weft/registry.h"

namespace weft {

struct Config {
  std::string store;
  bool trust_store = false;
  std::string name, provider, key_file, origin;
  ListenAddress listen;
  std::uint64_t cache_max = 0;   // bytes
  std::uint64_t memory_max = 0;  // bytes that versions may leave in memory alone
  std::string cold, sparse;
  std::vector<std::string> follow;  // models, and first parts of names
  std::uint16_t metrics_port = 0;
  std::chrono::seconds drain{0};
  std::chrono::seconds gc_delay{0}, drafts_keep{0};
  std::string log_file, log_level;
  EtcdOptions etcd;  // without endpoints: this node alone
  Grant publish, remove, gc;

  bool clustered() const { return !etcd.endpoints.empty(); }
};

// Defaults for what is not given. Errc::invalid, with where it was said.
Result<Config> make_config(const SettingValues& values);

// What holds after a reread: the keys that are reread as they are in `after`, the others as they were.
SettingValues reread_values(const SettingValues& before, const SettingValues& after);

// Keys that differ and are not reread: the daemon has to be started anew for them.
std::vector<std::string> need_restart(const SettingValues& before, const SettingValues& after);

}  // namespace weft
