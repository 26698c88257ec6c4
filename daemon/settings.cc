#include "daemon/settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace weft {
namespace {

using enum SettingKind;

constexpr std::array kSettings = {
    Setting{"store", text, "DIR", "the directory of the store", false},
    Setting{"trust_store", yes_or_no, "BOOL", "as root, use the store even if other users can write to it", false},
    Setting{"name", text, "NAME", "display name of this node (default: the host name)", false},
    Setting{"listen", text, "HOST:PORT", "address of this node for other nodes (default: loopback)", false},
    Setting{"location", text, "WORD", "where this node is, such as the name of its rack", true},
    Setting{"provider", text, "NAME", "libfabric provider (default: auto, the best on this host)", false},
    Setting{"key_file", text, "FILE", "the cluster's key, readable only by the daemon's user", false},
    Setting{"cluster", text, "NAME", "name of the cluster, if etcd.endpoints is set", false},
    Setting{"origin", text, "DIR", "the cluster's origin, a directory on a shared file system", false},
    Setting{"cache_max", text, "BYTES", "disk space for fetched bytes, such as 200G", true},
    Setting{"memory_max", text, "BYTES", "bytes of new versions in memory alone (default: a quarter of it)", true},
    Setting{"cold", text, "HOW", "how to read bytes that are not local: auto, stream or fetch", true},
    Setting{"sparse", text, "HOW", "send changed tensors as differences: auto or never", true},
    Setting{"expect_others", yes_or_no, "BOOL", "fetch as if other nodes fetched the same versions at once", true},
    Setting{"rate.staging", text, "BYTES", "bytes a second for copies, repairs and writes to the origin (0: no bound)",
            true},
    Setting{"rate.total", text, "BYTES", "bytes a second that this node moves to itself and the origin (0: no bound)",
            true},
    Setting{"rate.origin", text, "BYTES", "bytes a second of the origin that no reader waits for (0: no bound)", true},
    Setting{"follow", list, "MODEL", "fetch new versions of MODEL, or of the models below this name, at once", true},
    Setting{"metrics_listen", text, "HOST:PORT", "address that serves /metrics to Prometheus (default: none)", false},
    Setting{"drain_seconds", number, "SECONDS", "time for running requests after SIGTERM", true},
    Setting{"gc_delay", text, "TIME", "how long removed versions stay, such as 1h", true},
    Setting{"drafts_keep", text, "TIME", "how long unchanged drafts stay, such as 7d", true},
    Setting{"log_file", text, "FILE", "the log file (default: standard error)", false},
    Setting{"log_format", text, "FORMAT", "text, or json: each line of the log is an object", false},
    Setting{"log_level", text, "LEVELS", "debug, info, warning or error, and CATEGORY=debug", true},
    Setting{"etcd.endpoints", list, "URL", "an etcd endpoint of the cluster, such as http://host:2379", false},
    Setting{"etcd.prefix", text, "TEXT", "prefix of the keys in etcd (default: /weft)", false},
    Setting{"etcd.user", text, "NAME", "etcd user", false},
    Setting{"etcd.password_file", text, "FILE", "file with the password of the etcd user", false},
    Setting{"etcd.ca", text, "FILE", "certificates of the authorities that sign etcd's certificate", false},
    Setting{"etcd.cert", text, "FILE", "client certificate for etcd", false},
    Setting{"etcd.key", text, "FILE", "key of the client certificate", false},
    Setting{"hub.listen", text, "HOST:PORT", "address for clients of a model hub (default: none)", false},
    Setting{"hub.token_file", text, "FILE", "file with the token that these clients have to send", false},
    Setting{"hub.upstream", text, "URL", "pull what these clients ask for, and the store lacks, from this hub", false},
    Setting{"hub.upstream_token_file", text, "FILE", "file with the token for hub.upstream", false},
    Setting{"join.listen", text, "HOST:PORT", "address for machines that join the cluster (default: none)", false},
    Setting{"join.authority", text, "DIR", "directory of the keys that admit these machines", false},
    Setting{"join.members", number, "N", "members that the cluster's own etcd gets as machines join (default: 1)",
            false},
    Setting{"control.publish", list, "WHO", "a user, or @GROUP, that may publish and tag", true},
    Setting{"control.remove", list, "WHO", "a user, or @GROUP, that may remove versions", true},
    Setting{"grant", rules, "RULE", "rights below names, such as \"team/ publish=@team remove=alice\"", true},
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

Error mistake_in(const SettingValues& values, std::string_view key, std::string_view what) {
  const auto found = values.find(key);
  const std::string place = found == values.end() ? "" : found->second.where + ": ";
  return {Errc::invalid, fmt::format("{}{}: {}", place, key, what)};
}

Status first_of(const Mistakes& mistakes) {
  return mistakes.empty() ? Status{} : Status{mistakes.front()};
}

}  // namespace weft
