#include "daemon/join_service.h"

#include <fmt/core.h>

#include <utility>

#include "base/limits.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr auto kJoinPatience = std::chrono::seconds(20);

HttpServer::Options server_options(const Config& config, const setup::Admission& admission) {
  HttpServer::Options options;
  options.address = config.join_listen->host;
  options.port = config.join_listen->port;
  options.connections_max = limits::kJoinClientsMax;
  options.patience = kJoinPatience;
  options.body_max = limits::kJoinRequestMax;
  options.name = fmt::format("join.listen port {}", options.port);
  options.certificate = admission.server_certificate().certificate;
  options.private_key = admission.server_certificate().key;
  return options;
}

HttpReply reply_to(setup::Admission& admission, const HttpRequest& request) {
  if (request.method != HttpRequest::Method::post || request.path.text != setup::kJoinPath)
    return http_text(404, "weft admits machines to its cluster here: see `weft cluster join`\n");
  auto [status, body] = admission.answer(request.body);
  return http_text(status, std::move(body), "application/json");
}

}  // namespace

Status check_admission(const Config& config) {
  const auto keys = setup::read_admission_keys(config.join_authority);
  return keys.ok() ? Status{} : Status{keys.error()};
}

Result<std::unique_ptr<JoinService>> JoinService::open(const Config& config) {
  auto keys = setup::read_admission_keys(config.join_authority);
  if (!keys.ok()) return Error{keys.error().code, fmt::format("join.authority: {}", keys.error().message)};
  std::unique_ptr<JoinService> service(new JoinService);
  service->admission_ = std::make_unique<setup::Admission>(
      *std::move(keys),
      setup::AdmittingNode{config.name, config.key_file, config.origin, config.join_members, config.etcd},
      [] { return now_ns() / 1'000'000'000; });
  WEFT_TRY(service->server_, HttpServer::open(server_options(config, *service->admission_),
                                              [&admission = *service->admission_](const HttpRequest& request) {
                                                return reply_to(admission, request);
                                              }));
  return service;
}

}  // namespace weft
