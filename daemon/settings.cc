#include "daemon/settings.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

using enum SettingKind;

constexpr std::array kSettings = {
    Setting{"store", text, "DIR", "the store that this daemon has", false},
    Setting{"trust_store", yes_or_no, "BOOL", "root: has the store also if other users can write to it", false},
    Setting{"name", text, "NAME", "of this node, for people; the host's when left out", false},
    Setting{"listen", text, "HOST:PORT", "where other nodes reach this one; the loopback when left out", false},
    Setting{"provider", text, "NAME", "of libfabric, for reads of other nodes; auto: the best that is here", false},
    Setting{"key_file", text, "FILE", "the cluster's key, which nobody else can read", false},
    Setting{"cluster", text, "NAME", "the cluster that the store belongs to, when etcd.endpoints are given", false},
    Setting{"origin", text, "DIR", "the cluster's directory on the site's parallel file system", false},
    Setting{"cache_max", text, "BYTES", "of fetched bytes, such as 200G", true},
    Setting{"cold", text, "HOW", "reads of what is not here: auto, stream or fetch", true},
    Setting{"metrics_port", number, "PORT", "of a loopback HTTP server of /metrics; 0: none", false},
    Setting{"drain_seconds", number, "SECONDS", "that requests have to end after SIGTERM", true},
    Setting{"log_file", text, "FILE", "where to log; stderr when left out", false},
    Setting{"log_level", text, "LEVEL", "debug, info, warning or error", true},
    Setting{"etcd.endpoints", list, "URL", "an etcd of the cluster, such as http://host:2379", false},
    Setting{"etcd.prefix", text, "TEXT", "of the keys in etcd", false},
    Setting{"etcd.user", text, "NAME", "whom etcd knows us as", false},
    Setting{"etcd.password_file", text, "FILE", "with that user's password", false},
    Setting{"etcd.ca", text, "FILE", "who may sign etcd's certificate", false},
    Setting{"etcd.cert", text, "FILE", "our certificate for etcd", false},
    Setting{"etcd.key", text, "FILE", "its key", false},
    Setting{"control.publish", list, "WHO", "a user, or @GROUP, that may publish and tag", true},
    Setting{"control.remove", list, "WHO", "a user, or @GROUP, that may remove versions", true},
    Setting{"control.gc", list, "WHO", "a user, or @GROUP, that may collect garbage", true},
};

}  // namespace

std::span<const Setting> settings() {
  return kSettings;
}

const Setting* find_setting(std::string_view key) {
  const auto* found = std::find_if(kSettings.begin(), kSettings.end(), [&](const Setting& s) { return s.key == key; });
  return found == kSettings.end() ? nullptr : found;
}

std::string option_of(const Setting& setting) {
  std::string option = "--" + std::string(setting.key);
  std::replace_if(
      option.begin(), option.end(), [](char c) { return c == '_' || c == '.'; }, '-');
  return option;
}

}  // namespace weft
