#include "cluster_setup/node_plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/json.h"

namespace weft::setup {
namespace {

constexpr std::string_view kEtcdUnit = "weft-etcd.service";
constexpr mode_t kSecretMode = 0600, kPlainMode = 0644, kScriptMode = 0755;
constexpr mode_t kPrivateDirectory = 0700, kDirectory = 0755;

// A text of TOML and of YAML, which both write as JSON does.
std::string in_quotes(std::string_view text) {
  return json_quote(text);
}

class Lines {
 public:
  template <class... Args>
  Lines& line(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
    return *this;
  }
  Lines& setting(std::string_view key, std::string_view value) {
    return value.empty() ? *this : line("{} = {}", key, in_quotes(value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string token_key_bytes(const TokenKey& key) {
  return {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
}

// The files of one node.
class Writer {
 public:
  Writer(const Places& places, const NodeParts& parts) : places_(places), parts_(parts) {}

  Plan plan() {
    directories();
    plan_.store = places_.store;
    plan_.endpoints = parts_.etcd.endpoints;
    add("cluster.key", kSecretMode, parts_.cluster_key);
    etcd_access();
    if (parts_.first) authority(*parts_.first);
    if (parts_.member) add("etcd.yaml", kPlainMode, etcd_config(*parts_.member));
    add("weft.conf", kPlainMode, config());
    places_.base.empty() ? units() : scripts();
    return std::move(plan_);
  }

 private:
  void add(std::string_view name, mode_t mode, std::string content) {
    plan_.files.push_back({places_.setting(name), mode, std::move(content), mode == kSecretMode});
  }

  void directories() {
    if (!places_.base.empty()) plan_.directories.push_back({places_.base, kPrivateDirectory});
    if (!places_.run.empty()) plan_.directories.push_back({places_.run, kDirectory});
    plan_.directories.push_back({places_.settings, kDirectory});
    if (parts_.first) plan_.directories.push_back({places_.authority(), kPrivateDirectory});
  }

  void etcd_access() {
    const EtcdAccess& etcd = parts_.etcd;
    if (!etcd.ca.empty()) add("etcd-ca.pem", kPlainMode, etcd.ca);
    if (!etcd.certificate.empty()) add("etcd-cert.pem", kPlainMode, etcd.certificate);
    if (!etcd.key.empty()) add("etcd-key.pem", kSecretMode, etcd.key);
    if (!etcd.password.empty()) add("etcd-password", kSecretMode, etcd.password + "\n");
  }

  void authority(const FirstNode& first) {
    plan_.join = place_text(place_after(parts_.listen, kJoinPortStep));
    add("authority/ca.pem", kPlainMode, first.authority.certificate);
    add("authority/ca.key", kSecretMode, first.authority.key);
    add("authority/token.key", kSecretMode, token_key_bytes(first.token_key));
  }

  std::string path_if(const std::string& content, std::string_view name) const {
    return content.empty() ? "" : places_.setting(name);
  }

  std::string config() const {
    const EtcdAccess& etcd = parts_.etcd;
    Lines lines;
    lines.line("# Settings of weftd(8), described in weft.conf(5). `weft cluster` has made this file.");
    lines.setting("store", places_.store).setting("name", parts_.name).setting("cluster", parts_.cluster);
    lines.setting("listen", place_text(parts_.listen)).setting("key_file", places_.setting("cluster.key"));
    lines.setting("origin", parts_.origin);
    std::vector<std::string> endpoints;
    for (const std::string& endpoint : etcd.endpoints) endpoints.push_back(in_quotes(endpoint));
    lines.line("").line("[etcd]").line("endpoints = [{}]", fmt::join(endpoints, ", "));
    lines.setting("prefix", etcd.prefix).setting("user", etcd.user);
    lines.setting("password_file", path_if(etcd.password, "etcd-password"));
    lines.setting("ca", path_if(etcd.ca, "etcd-ca.pem")).setting("cert", path_if(etcd.certificate, "etcd-cert.pem"));
    lines.setting("key", path_if(etcd.key, "etcd-key.pem"));
    if (!parts_.first) return lines.take();
    lines.line("").line("# Admits machines that bring a token: weft cluster join.").line("[join]");
    lines.setting("listen", plan_.join).setting("authority", places_.authority());
    if (parts_.first->etcd_members > 1) lines.line("members = {}", parts_.first->etcd_members);
    return lines.take();
  }

  std::string etcd_config(const EtcdMember& member) {
    plan_.data.push_back(places_.etcd_data);
    const JoinPlace clients = place_after(parts_.listen, kEtcdPortStep);
    const std::string peers = etcd_url(place_after(parts_.listen, kEtcdPeerPortStep));
    if (!member.is_new) plan_.peer_url = peers;
    const std::string security =
        fmt::format("{{cert-file: {}, key-file: {}, client-cert-auth: true, trusted-ca-file: {}}}",
                    in_quotes(places_.setting("etcd-cert.pem")), in_quotes(places_.setting("etcd-key.pem")),
                    in_quotes(places_.setting("etcd-ca.pem")));
    Lines lines;
    lines.line("# The etcd of a weft cluster, on this node. `weft cluster` has made this file.");
    const auto entry = [&](std::string_view key, std::string_view value) {
      lines.line("{}: {}", key, in_quotes(value));
    };
    entry("name", parts_.name);
    entry("data-dir", places_.etcd_data);
    entry("listen-client-urls", etcd_url(clients));
    entry("advertise-client-urls", etcd_url(clients));
    entry("listen-peer-urls", peers);
    entry("initial-advertise-peer-urls", peers);
    entry("initial-cluster", member.initial_cluster);
    entry("initial-cluster-state", member.is_new ? "new" : "existing");
    entry("initial-cluster-token", member.cluster_token);
    lines.line("client-transport-security: {}", security).line("peer-transport-security: {}", security);
    // A year of changes is a few hundred thousand; a node that was away for longer than this reads all of them anew.
    lines.line("auto-compaction-mode: periodic").line("auto-compaction-retention: \"72h\"");
    lines.line("quota-backend-bytes: 8589934592");  // the most that etcd recommends
    lines.line("enable-grpc-gateway: true");        // etcd turns the gateway off if it has a file of settings
    lines.line("logger: zap").line("log-level: warn").line("log-outputs: [stderr]");
    return lines.take();
  }

  void units() {
    Command enable{"systemctl", "enable", "--now"};
    if (parts_.member) {
      plan_.files.push_back({places_.unit, kPlainMode, etcd_unit(*parts_.member)});
      plan_.start.push_back({"systemctl", "daemon-reload"});
      enable.emplace_back(kEtcdUnit);
    }
    enable.emplace_back("weftd.service");
    plan_.start.push_back(std::move(enable));
  }

  // etcd runs as root, like weftd, whose directories it is below, and can write to its data alone.
  std::string etcd_unit(const EtcdMember& member) const {
    Lines lines;
    lines.line("[Unit]").line("Description=weft: the etcd of this cluster").line("Documentation=man:weft-cluster(7)");
    lines.line("After=network-online.target local-fs.target").line("Wants=network-online.target");
    lines.line("Before=weftd.service").line("").line("[Service]").line("Type=notify");
    lines.line("ExecStart={} --config-file {}", member.program, places_.setting("etcd.yaml"));
    lines.line("Restart=on-failure").line("RestartSec=2").line("LimitNOFILE=65536");
    lines.line("ProtectSystem=strict").line("ReadWritePaths={}", places_.store);
    for (const char* on :
         {"ProtectHome", "PrivateTmp", "PrivateDevices", "NoNewPrivileges", "ProtectKernelTunables",
          "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock", "ProtectHostname",
          "RestrictNamespaces", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality", "MemoryDenyWriteExecute"})
      lines.line("{}=yes", on);
    lines.line("CapabilityBoundingSet=").line("RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX");
    lines.line("SystemCallFilter=@system-service").line("SystemCallArchitectures=native").line("UMask=0077");
    return lines.line("").line("[Install]").line("WantedBy=multi-user.target").take();
  }

  void scripts() {
    plan_.data.push_back(places_.run);
    plan_.files.push_back({places_.start_script(), kScriptMode, start_script()});
    plan_.files.push_back({places_.stop_script(), kScriptMode, stop_script()});
    plan_.start.push_back({"/bin/sh", places_.start_script()});
  }

  // Scripts of a node run one after the other, also if the `weft cluster` that has begun one is killed: it holds the
  // lock until its programs have written their process ids. A script whose directory is removed meanwhile does nothing.
  std::string script_head(std::string_view what) const {
    Lines lines;
    lines.line("#!/bin/sh").line("# {} `weft cluster` has made this file.", what).line("set -eu");
    lines.line("cd {}", shell_word(places_.base));
    lines.line("[ -d run ] || exit 0")
        .line("exec 9>>run/lock")
        .line("flock 9")
        .line("[ run/lock -ef /proc/self/fd/9 ] || exit 1")
        .line("");
    lines.line("# The process id of a program of this node that runs with this file of settings, or nothing.");
    lines.line("running() {{").line("  pid=$(cat \"run/$1.pid\" 2>/dev/null) || return 0");
    lines.line("  grep -qzxF -- \"$2\" \"/proc/$pid/cmdline\" 2>/dev/null || return 0");
    return lines.line("  echo \"$pid\"").line("}}").line("").take();
  }

  std::string start_script() const {
    Lines lines;
    lines.line("start() {{").line("  name=$1").line("  shift");
    lines.line("  for settings; do :; done");  // the last word
    lines.line("  [ -z \"$(running \"$name\" \"$settings\")\" ] || return 0");
    lines.line("  setsid sh -c 'echo $$ >\"run/$0.pid\"; exec 9>&-; exec \"$@\"' \"$name\" \"$@\" \\");
    lines.line("    </dev/null >>\"run/$name.log\" 2>&1 &").line("}}");
    if (parts_.member)
      lines.line("start etcd {} --config-file {}", shell_word(parts_.member->program),
                 shell_word(places_.setting("etcd.yaml")));
    lines.line("start weftd {} --config {}", shell_word(parts_.weftd), shell_word(places_.config()));
    return script_head("Starts the programs of this node in the background, unless they run.") + lines.take();
  }

  std::string stop_script() const {
    Lines lines;
    lines.line("stop() {{").line("  pid=$(running \"$1\" \"$2\")").line("  [ -n \"$pid\" ] || return 0");
    lines.line("  kill \"$pid\"").line("  for _ in $(seq 900); do");
    // A process that ends has neither memory nor a command line before it closes its files and leaves its directory.
    lines.line("    [ \"/proc/$pid/cwd\" -ef . ] || return 0").line("    sleep 0.1").line("  done");
    lines.line("  echo \"$1: process $pid does not end\" >&2").line("  exit 1").line("}}");
    lines.line("stop weftd {}", shell_word(places_.config()));
    if (parts_.member) lines.line("stop etcd {}", shell_word(places_.setting("etcd.yaml")));
    return script_head("Stops the programs of this node.") + lines.take();
  }

  const Places& places_;
  const NodeParts& parts_;
  Plan plan_;
};

}  // namespace

Places system_places(const std::string& store) {
  return {"", "/etc/weft", store, store + "/etcd", "", fmt::format("/etc/systemd/system/{}", kEtcdUnit)};
}

Places places_below(const std::string& directory) {
  return {directory, directory + "/etc", directory + "/store", directory + "/etcd", directory + "/run", ""};
}

JoinPlace place_after(const JoinPlace& listen, std::uint16_t step) {
  return {listen.host, static_cast<std::uint16_t>(listen.port + step)};
}

std::string etcd_url(const JoinPlace& place) {
  return "https://" + place_text(place);
}

Plan node_plan(const Places& places, const NodeParts& parts) {
  return Writer(places, parts).plan();
}

std::vector<Command> stop_commands(const Places& places, bool has_etcd) {
  if (!places.base.empty()) return {{"/bin/sh", places.stop_script()}};
  Command disable{"systemctl", "disable", "--now", "weftd.service"};
  if (has_etcd) disable.emplace_back(kEtcdUnit);
  return {std::move(disable)};
}

}  // namespace weft::setup
