// The part of the daemon that serves clients of a model hub: the endpoint, its port, and its upstream.
#pragma once

#include <memory>

#include "daemon/config.h"
#include "daemon/figures.h"
#include "endpoint/hub_endpoint.h"
#include "http/server.h"
#include "upstream/upstream.h"
#include "weft/bytes/cold.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

class HubService {
 public:
  // Serves `hub.listen`, which is set. Both references outlive this.
  static Result<std::unique_ptr<HubService>> open(const Config& config, Store& store, ColdReads& cold);
  HubService(const HubService&) = delete;
  HubService& operator=(const HubService&) = delete;
  ~HubService();

  // Begins to end the pulls from the upstream, so that their requests to the daemon end too.
  void end_pulls();
  // Adds the metrics, which read this.
  void add_figures(Figures& figures) const;

 private:
  class PullsHere;
  HubService();
  std::unique_ptr<Upstream> upstream_;     // null without hub.upstream
  std::unique_ptr<PullsHere> pulls_here_;  // null without hub.upstream
  std::unique_ptr<HubEndpoint> endpoint_;
  std::unique_ptr<HttpServer> server_;
};

// Checks the files and the programs that the hub table of the configuration names.
Status check_hub_token(const Config& config);
Status check_upstream_token(const Config& config);

}  // namespace weft
