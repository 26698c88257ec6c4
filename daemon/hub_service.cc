#include "daemon/hub_service.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "drafts/pull_area.h"
#include "endpoint/token_file.h"
#include "os/programs.h"
#include "os/sys.h"
#include "pull/area_files.h"
#include "upstream/program_hub.h"

namespace weft {
namespace {

// The disk of a client that stores a model may stall for longer than a reader of metrics.
constexpr auto kPatience = std::chrono::seconds(60);

ProgramHubOptions hub_options(const Config& config, std::string program) {
  return {config.hub_upstream, config.hub_upstream_token_file, config.store, std::move(program)};
}

Result<std::unique_ptr<Upstream>> open_upstream(const Config& config) {
  WEFT_CHECK(check_upstream_token(config));
  const char* const path = std::getenv("PATH");
  const auto program = find_program("weft", own_program(), path == nullptr ? "" : path);
  if (!program)
    return Error{Errc::not_found, "hub.upstream: expected the program weft beside weftd or in PATH, found none"};
  auto hub = program_hub(hub_options(config, *program));
  if (!hub.ok()) return Error{hub.error().code, fmt::format("hub.upstream: {}", hub.error().message)};
  return std::make_unique<Upstream>(*std::move(hub), Upstream::Options{});
}

HttpServer::Options server_options(const Config& config) {
  HttpServer::Options options;
  options.address = config.hub_listen->host;
  options.port = config.hub_listen->port;
  options.connections_max = limits::kHubClientsMax;
  options.patience = kPatience;
  options.body_max = limits::kHubBodyMax;
  options.name = fmt::format("hub.listen port {}", options.port);
  return options;
}

}  // namespace

Status check_hub_token(const Config& config) {
  if (config.hub_token_file.empty()) return {};
  const auto token = HubToken::read(config.hub_token_file);
  return token.ok() ? Status{} : Status{token.error()};
}

// The hub's client reads the file as its own one: all lines are one token, and a path may have variables.
Status check_upstream_token(const Config& config) {
  const std::string& path = config.hub_upstream_token_file;
  if (path.empty()) return {};
  WEFT_TRY(const HubToken token, HubToken::read(path));
  WEFT_TRY(const HubSettings settings, upstream_settings({{}, path, {}, {}}));
  if (token.opens("Bearer " + settings.token)) return {};
  return Error{Errc::invalid, fmt::format("hub.upstream_token_file {}: expected one line", path)};
}

// The files of the pulls from the upstream.
class HubService::PullsHere final : public IncomingFiles {
 public:
  PullsHere(const SafePath& pulls, std::string endpoint) : files_(pulls, std::move(endpoint), now_ns()) {}
  Result<std::size_t> read(const HubName& repository, const HubFile& file, std::uint64_t offset,
                           std::span<std::byte> out) override {
    return files_.read(repository, file, offset, out);
  }

 private:
  const AreaFiles files_;
};

HubService::HubService() = default;
HubService::~HubService() {
  end_pulls();
}

Result<std::unique_ptr<HubService>> HubService::open(const Config& config, Store& store, ColdReads& cold) {
  std::unique_ptr<HubService> service(new HubService);
  std::optional<HubToken> token;
  if (!config.hub_token_file.empty()) {
    WEFT_TRY(token, HubToken::read(config.hub_token_file));
  }
  if (!config.hub_upstream.empty()) {
    WEFT_TRY(service->upstream_, open_upstream(config));
    WEFT_TRY(const HubSettings settings, upstream_settings(hub_options(config, {})));
    service->pulls_here_ = std::make_unique<PullsHere>(store.directory() / kPullsFolder, settings.endpoint);
  }
  service->endpoint_ =
      std::make_unique<HubEndpoint>(store, cold, token, service->upstream_.get(), service->pulls_here_.get());
  WEFT_TRY(service->server_,
           HttpServer::open(server_options(config), [&endpoint = *service->endpoint_](const HttpRequest& request) {
             return endpoint.reply(request);
           }));
  return service;
}

void HubService::end_pulls() {
  if (upstream_) upstream_->end();
}

void HubService::add_figures(Figures& figures) const {
  figures.add("weft_hub_requests_total", "counter", "Requests of clients of a model hub, by kind and class of status.",
              Figures::Read([this] {
                std::vector<Figures::Sample> samples;
                for (std::size_t kind = 0; kind < HubCounts::kKinds.size(); ++kind)
                  for (std::size_t status = 0; status < HubCounts::kClasses.size(); ++status)
                    samples.push_back({{{"kind", std::string(HubCounts::kKinds.at(kind))},
                                        {"status", std::string(HubCounts::kClasses.at(status))}},
                                       static_cast<double>(endpoint_->counts().of(kind, status))});
                return samples;
              }));
  figures.add("weft_hub_connections", "gauge", "Connections of these clients.",
              [this] { return static_cast<double>(server_->counts().connections); });
  figures.add("weft_hub_sent_bytes_total", "counter", "Bytes of answers that were sent to these clients.",
              [this] { return static_cast<double>(server_->counts().bytes); });
  figures.add("weft_hub_dropped_connections_total", "counter", "Connections that were ended early, by reason.",
              Figures::Read([this] {
                const HttpCounts counts = server_->counts();
                return std::vector<Figures::Sample>{{{{"reason", "slow"}}, static_cast<double>(counts.slow)},
                                                    {{{"reason", "crowded"}}, static_cast<double>(counts.crowded)},
                                                    {{{"reason", "refused"}}, static_cast<double>(counts.refused)}};
              }));
  const auto upstream = [this](auto member) {
    return [this, member] { return upstream_ ? static_cast<double>(upstream_->counts().*member) : 0.0; };
  };
  figures.add("weft_hub_questions_total", "counter", "Revisions that the upstream was asked for.",
              upstream(&Upstream::Counts::asked));
  figures.add("weft_hub_pulls_total", "counter", "Pulls from the upstream that were begun.",
              upstream(&Upstream::Counts::begun));
  figures.add("weft_hub_pull_failures_total", "counter", "Pulls from the upstream that failed.",
              upstream(&Upstream::Counts::failed));
  figures.add("weft_hub_pulls_running", "gauge", "Revisions that the upstream is asked for or that are pulled now.",
              upstream(&Upstream::Counts::running));
}

}  // namespace weft
