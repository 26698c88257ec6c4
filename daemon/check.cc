#include "daemon/check.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/text.h"
#include "control/client.h"
#include "control/server.h"
#include "daemon/config.h"
#include "daemon/hub_service.h"
#include "daemon/join_service.h"
#include "os/beneath.h"
#include "os/entries.h"
#include "os/lookups/own_address.h"
#include "os/sys.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/origin.h"
#include "weft/cluster/registry.h"
#include "weft/store/cluster_store.h"

namespace weft {
namespace {

constexpr auto kCheckOriginPatience = std::chrono::seconds(10);
constexpr std::uint64_t kPemFileMax = 16U << 20U;  // bytes; a system's list of authorities has about 200 kB

class NodeCheck {
 public:
  NodeCheck(const SettingValues& values, const Config& config, Mistakes& mistakes)
      : values_(values), config_(config), mistakes_(mistakes) {}

  void run() {
    check_store();
    check_log();
    if (const auto& metrics = config_.metrics_listen)
      note("metrics_listen", check_own_address(metrics->host, is_served() ? std::uint16_t{0} : metrics->port));
    check_hub();
    check_join();
    if (!config_.clustered()) return;
    if (!config_.key_file.empty()) note("key_file", check_cluster_key(config_.key_file));
    check_listen();
    check_pem("etcd.ca", config_.etcd.ca, "CERTIFICATE-----");
    check_pem("etcd.cert", config_.etcd.cert, "CERTIFICATE-----");
    check_pem("etcd.key", config_.etcd.key, "PRIVATE KEY-----");
    check_the_origin();
    for (const Error& error : check_cluster(store_.get(), config_.etcd)) note("etcd.endpoints", error);
  }

 private:
  void note(std::string_view key, const Status& status) {
    if (!status.ok()) mistakes_.push_back(mistake_in(values_, key, status.error().message));
  }

  void check_store() {
    if (config_.store.empty()) return;
    if (config_.trust_store) trust_all_owners();
    if (auto opened = Store::open(config_.store, {}); opened.ok())
      store_ = std::move(opened).value();
    else
      return note("store", opened.error());
    if (const Status writable = may_write_directory(config_.store); !writable.ok())
      note("store", Error{writable.error().code, fmt::format("{}; this user ({}) cannot write to the store",
                                                             writable.error().message, own_user())});
  }

  // True if a daemon runs for the store, so that its ports are in use.
  bool is_served() const {
    return control::Client::connect(fmt::format("{}/{}", config_.store, control::kSocketName)).ok();
  }

  void check_log() {
    if (config_.log_file.empty()) return;
    const auto opened = open_file(config_.log_file, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY);
    if (opened.ok()) return;
    if (opened.error().code != Errc::not_found) return note("log_file", opened.error());
    const std::string parent = std::filesystem::path(config_.log_file).parent_path().string();
    note("log_file", may_write_directory(parent.empty() ? "." : parent));
  }

  void check_listen() {
    if (config_.provider == "none") return;
    const Status own = check_own_address(config_.listen.host, 0);
    note("listen", own);
    if (own.ok() && config_.listen.port != 0 && !is_served())
      note("listen", check_own_address(config_.listen.host, config_.listen.port));
  }

  void check_hub() {
    if (!config_.hub_listen) return;
    const auto& [host, port] = *config_.hub_listen;
    note("hub.listen", check_own_address(host, is_served() ? std::uint16_t{0} : port));
    note("hub.token_file", check_hub_token(config_));
    note("hub.upstream_token_file", check_upstream_token(config_));
  }

  void check_join() {
    if (!config_.join_listen) return;
    const auto& [host, port] = *config_.join_listen;
    note("join.listen", check_own_address(host, is_served() ? std::uint16_t{0} : port));
    note("join.authority", check_admission(config_));
  }

  void check_pem(std::string_view key, const std::string& path, std::string_view marker) {
    if (path.empty()) return;
    const auto bytes = read_file(path, kPemFileMax);
    if (!bytes.ok()) return note(key, bytes.error());
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (text.find(marker) != std::string_view::npos) return;
    note(key, Error{Errc::invalid, fmt::format("{}: expected a PEM file with the line -----BEGIN {}, got none",
                                               printable(path), marker)});
  }

  void check_the_origin() {
    if (config_.origin.empty()) return;
    std::string known, cluster;
    if (store_ && store_->cluster()) cluster = store_->cluster()->cluster;
    if (store_) {
      auto recorded = known_origin(*store_);
      if (!recorded.ok()) return note("store", recorded.error());
      known = std::move(recorded).value();
    }
    note("origin", check_origin(config_.origin, known, cluster, kCheckOriginPatience));
  }

  const SettingValues& values_;
  const Config& config_;
  Mistakes& mistakes_;
  std::unique_ptr<Store> store_;  // null: it cannot be opened
};

}  // namespace

Mistakes check_node(const DaemonOptions& options) {
  Mistakes mistakes;
  const SettingValues values = gather_settings(options, mistakes);
  const Config config = make_config(values, mistakes);
  NodeCheck(values, config, mistakes).run();
  return mistakes;
}

}  // namespace weft
