#include "daemon/daemon.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "control/server.h"
#include "daemon/follow.h"
#include "daemon/health.h"
#include "daemon/hub_service.h"
#include "daemon/join_service.h"
#include "daemon/parts.h"
#include "drafts/pull_area.h"
#include "http/server.h"
#include "monitor/audit.h"
#include "os/beneath.h"
#include "os/file_ops.h"
#include "os/programs.h"
#include "os/sys.h"
#include "weft/programs/operations.h"
#include "weft/store/cluster_store.h"

namespace weft {
namespace {

// Sends `state`: lines such as "READY=1", "STOPPING=1" or "STATUS=…". `socket` is $NOTIFY_SOCKET; does nothing if it is
// empty.
void notify(const std::string& socket, std::string_view state) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path) return;
  std::copy(socket.begin(), socket.end(), address.sun_path);
  if (socket.front() == '@') address.sun_path[0] = '\0';  // abstract socket
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), size);
}

constexpr auto kGrace = std::chrono::seconds(10);  // time for cancelled requests to end

constexpr std::uint64_t kImportsPart = 4;  // imports that run at once have a quarter of the memory
constexpr std::uint64_t kImportsMin = 512U << 20U;

constexpr std::uint64_t kShortPart = 20;  // space is short if less than 1/20 of the file system is free

bool is_short_of_space(const Store& store) {
  const auto space = disk_space(store.directory().root().fd());
  return space && space->available < space->total / kShortPart;
}

// True if SIGTERM or SIGINT is pending. Discards pending SIGHUPs, which have no effect during startup.
bool told_to_stop() {
  const sigset_t set = daemon_signals();
  const timespec now{};
  for (int signal = 0; (signal = ::sigtimedwait(&set, nullptr, &now)) > 0;)
    if (signal != SIGHUP) return true;
  return false;
}

class Daemon {
 public:
  Daemon(const DaemonOptions& options, SettingValues values, Config config)
      : options_(options), values_(std::move(values)), config_(std::move(config)) {}

  // Ends the calls to memory_ and auto_gc_, which are destroyed before the registry's threads end.
  ~Daemon() { tell(nullptr, nullptr); }

  Result<bool> run() {
    WEFT_CHECK(start());
    say("READY=1");
    log_info("weftd {} serves {}", WEFT_VERSION, config_.get()->store);
    for (;;) {
      const sigset_t set = daemon_signals();
      int signal = 0;
      if (::sigwait(&set, &signal) != 0) continue;
      if (signal != SIGHUP) break;
      reload();
    }
    WEFT_TRY(const bool drained, stop());
    const std::lock_guard lock(telling_);
    if (drained && refused_) return *refused_;
    return drained;
  }

 private:
  void tell(FlushBehind* memory, AutoGc* gc) {
    const std::lock_guard lock(telling_);
    told_ = memory;
    told_gc_ = gc;
  }

  // Ends the daemon as SIGTERM does, but with an error. Any thread.
  void end_because(const Error& why) {
    log_error("ending: {}", why.message);
    {
      const std::lock_guard lock(telling_);
      refused_ = why;
    }
    terminate_own_process();
  }

  void say(std::string_view state) const { notify(options_.notify_socket, state); }

  Status start() {
    WEFT_CHECK(open_store());
    served_pulls_.emplace(store_->directory() / kPullsFolder);
    if (config_.get()->clustered()) {
      WEFT_TRY(peers_, Peers::open(*store_, config_, *served_pulls_, kept_versions_, gate_));
    }
    WEFT_TRY(registry_, make_registry());
    WEFT_TRY(server_, control::Server::listen(fmt::format("{}/{}", config_.get()->store, control::kSocketName),
                                              {.observe = [this](auto name, auto took, bool failed) {
                                                figures_.request_ended(name, took, failed);
                                              }}));
    if (peers_) peers_->join(*registry_);
    bytes_ = std::make_unique<Bytes>(*store_, config_, *registry_, peers_.get(), gate_);
    memory_ = std::make_unique<FlushBehind>(*store_, store_->memory(), *registry_, config_.get()->name,
                                            config_.get()->memory_max);
    tell(memory_.get(), nullptr);
    memory_->wake();  // for changes that arrived before memory_ was set
    auto_gc_ = std::make_unique<AutoGc>(gc_actions());
    tell(memory_.get(), auto_gc_.get());
    parts_.emplace(DaemonParts{*store_, *registry_, config_, figures_, *bytes_, *memory_, import_memory_, *auto_gc_,
                               *served_pulls_, pull_counts_, kept_versions_, mounts_, now_ns()});
    add_process_figures(figures_, options_.commit);
    add_node_figures(figures_, *parts_, *server_);
    add_byte_figures(figures_, *bytes_);
    add_pace_figures(figures_, *gate_);
    add_store_figures(figures_, *bytes_);
    if (peers_) add_peer_figures(figures_, *peers_);
    add_pull_figures(figures_, *parts_);
    health_ = std::make_unique<Health>(*parts_);
    add_health_figures(figures_, *health_);
    add_mount_figures(figures_, mounts_);
    serve_imports(*server_, *parts_);
    serve_bundles(*server_, *parts_);
    serve_pulls(*server_, *parts_);
    serve_changes(*server_, *parts_);
    serve_purge(*server_, *parts_);
    serve_origin(*server_, *parts_);
    serve_reconcile(*server_, *parts_);
    serve_keys(*server_, *parts_);
    serve_status(*server_, *parts_);
    serve_bytes(*server_, *bytes_);
    serve_health(*server_, *health_);
    serve_nodes(*server_, *parts_);
    WEFT_CHECK(serve_hub());
    if (config_.get()->join_listen) {
      WEFT_TRY(join_, JoinService::open(*config_.get()));
    }
    WEFT_CHECK(serve_metrics());  // once all metrics are added
    if (config_.get()->clustered()) follow_ = std::make_unique<Follow>(*store_, *bytes_);
    starting_ = false;
    server_->start();
    auto_gc_->start();
    health_->start();
    kept_versions_.begin(*store_, bytes_->fetcher);
    return {};
  }

  Status serve_metrics() {
    const auto config = config_.get();
    if (!config->metrics_listen) return {};
    HttpServer::Options options;
    options.address = config->metrics_listen->host;
    options.port = config->metrics_listen->port;
    options.connections_max = limits::kMetricsClientsMax;
    options.name = fmt::format("metrics_listen port {}", options.port);
    WEFT_TRY(metrics_, HttpServer::open(std::move(options), [this](const HttpRequest& request) {
               return metrics_reply(figures_, request);
             }));
    return {};
  }

  Status serve_hub() {
    const auto config = config_.get();
    if (!config->hub_listen) return {};
    WEFT_TRY(hub_, HubService::open(*config, *store_, bytes_->fetcher));
    hub_->add_figures(figures_);
    return {};
  }

  // A weftd that was killed may have reaped a purged version, and not rewritten its packs yet. So the first gc rewrites
  // all packs with dead bytes if any version was ever purged.
  AutoGc::Actions gc_actions() {
    return {.delay = [this] { return config_.get()->gc_delay; },
            .space_is_short = [this] { return is_short_of_space(*store_); },
            .hold = [this](VersionId version) { return store_->hold_version(version); },
            .collect = [this, started = true](bool all, const std::function<bool()>& cancelled) mutable -> Status {
              SilentProgress progress(cancelled);
              const bool every = all || (started && !registry_->purged().empty());
              WEFT_TRY(const GcOutcome outcome, collect_all(*parts_, {.all = every}, cancelled, progress));
              if (outcome.report.versions_reaped + outcome.report.blobs_freed > 0) audit("gc", "", own_user());
              if (outcome.undecided.empty()) return started = false, Status{};
              const UndecidedVersion& first = outcome.undecided.front();
              return Error{Errc::busy,
                           fmt::format("{}{}{}", first.version, first.version.empty() ? "" : ": ", first.problem)};
            },
            .purged =
                [purged = std::make_shared<PurgedVersions>(*store_, *registry_)] {
                  auto unfreed = purged->unfreed();
                  return unfreed.ok() ? *std::move(unfreed) : std::vector<VersionId>();
                }};
  }

  Status open_store() {
    if (config_.get()->trust_store) trust_all_owners();
    Patience patience;
    // The store keeps this callback. After startup only the main thread handles signals.
    patience.cancelled = [this] {
      if (starting_ && told_to_stop()) stopped_ = true;
      return stopped_.load();
    };
    patience.waiting = [this](std::string_view what) {
      log_info("{}", what);
      say(fmt::format("STATUS={}", what));
    };
    OpenOptions options;
    options.write = true;
    options.decode = content_decoder();
    options.patience = patience;
    const std::string& path = config_.get()->store;
    WEFT_TRY(store_, ClusterStore::open(path, options));
    return {};
  }

  Result<std::unique_ptr<Registry>> make_registry() {
    const auto config = config_.get();
    if (!config->clustered()) return local_registry(*store_, store_->memory());
    ClusterOptions options;
    options.etcd = config->etcd;
    options.self.name = config->name;
    options.self.provider = config->provider;
    if (peers_) {
      options.self.address = addresses_text(peers_->exchange().endpoints());
      options.self.provider = providers_text(peers_->exchange().endpoints());
      options.self.key_proof = peers_->own_key_proof();
    }
    options.changed = [this] {
      const std::lock_guard lock(telling_);
      if (told_ != nullptr) told_->wake();
      if (told_gc_ != nullptr) told_gc_->look();
    };
    options.refused = [this](const Error& why) { end_because(why); };
    return cluster_registry(*store_, store_->mirror(), std::move(options));
  }

  // Reloads the configuration, and reopens the log. After an error, logs it and keeps the old configuration.
  void reload() {
    say("RELOADING=1");
    log_reopen();
    if (const Status taken = take_over(); taken.ok())
      log_info("configuration reloaded");
    else
      log_error("configuration not reloaded: {}", taken.error().message);
    say("READY=1");
  }

  // Settings that need a restart keep their old values, in the running parts and in the status.
  Status take_over() {
    WEFT_TRY(const SettingValues values, gather_settings(options_));
    WEFT_CHECK(make_config(values));
    WEFT_TRY(Config config, make_config(reloaded_values(values_, values)));
    for (const std::string& key : need_restart(values_, values))
      log_warning("{} has changed; restart weftd to apply it", key);
    WEFT_CHECK(log_set_levels(config.log_level));
    if (peers_) WEFT_CHECK(peers_->reload_keys());
    config_.set(std::move(config));
    bytes_->configure();
    if (follow_) follow_->configure();
    memory_->set_max(config_.get()->memory_max);
    return {};
  }

  Result<bool> stop() {
    say("STOPPING=1");
    auto_gc_->stop();
    health_->stop();
    kept_versions_.end();
    if (hub_) hub_->end_pulls();
    log_info("ending: requests have {} s", config_.get()->drain.count());
    const bool drained = server_->drain(config_.get()->drain, kGrace);
    if (!drained) log_error("requests that hang are left");
    log_info("ended");
    log_flush();
    return drained;
  }

  const DaemonOptions& options_;
  const SettingValues values_;
  LiveConfig config_;
  Figures figures_;
  std::atomic<bool> starting_ = true;
  std::atomic<bool> stopped_ = false;  // a signal ended the startup
  std::unique_ptr<ClusterStore> store_;
  std::optional<ServedPulls> served_pulls_;
  PullCounts pull_counts_;
  const std::shared_ptr<PaceGate> gate_ = std::make_shared<PaceGate>();
  KeptVersions kept_versions_;
  MountTable mounts_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Peers> peers_;  // null without a cluster, and for the provider "none"
  std::unique_ptr<Bytes> bytes_;
  std::unique_ptr<FlushBehind> memory_;
  ImportMemory import_memory_{std::max(memory_bytes() / kImportsPart, kImportsMin)};
  std::mutex telling_;
  std::optional<Error> refused_;  // why the daemon ends; guarded by telling_, as the next two
  FlushBehind* told_ = nullptr;   // called after changes of the registry, as the next one
  AutoGc* told_gc_ = nullptr;
  std::unique_ptr<Follow> follow_;  // null without a cluster: then all bytes are local
  std::unique_ptr<AutoGc> auto_gc_;
  std::optional<DaemonParts> parts_;
  std::unique_ptr<Health> health_;
  std::unique_ptr<control::Server> server_;
  std::unique_ptr<HubService> hub_;  // null without hub.listen
  std::unique_ptr<JoinService> join_;
  std::unique_ptr<HttpServer> metrics_;  // its text reads the parts above
};

}  // namespace

SettingValues gather_settings(const DaemonOptions& options, Mistakes& mistakes) {
  SettingValues values;
  if (!options.config_file.empty()) values = read_config_file(options.config_file, mistakes);
  for (const auto& [key, value] : options.flags) values[key] = value;
  return values;
}

Result<SettingValues> gather_settings(const DaemonOptions& options) {
  Mistakes mistakes;
  SettingValues values = gather_settings(options, mistakes);
  WEFT_CHECK(first_of(mistakes));
  return values;
}

sigset_t daemon_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
  return set;
}

Result<bool> run_daemon(const DaemonOptions& options) {
  WEFT_TRY(SettingValues values, gather_settings(options));
  WEFT_TRY(Config config, make_config(values));
  WEFT_CHECK(log_setup(config.log_file, config.log_level, "weftd", {config.log_format, config.name}));
  // On the heap, so that it can be leaked if requests hang, whose threads still use it.
  auto daemon = std::make_unique<Daemon>(options, std::move(values), std::move(config));
  auto drained = daemon->run();
  if (drained.ok() && !*drained) static_cast<void>(daemon.release());
  return drained;
}

}  // namespace weft
