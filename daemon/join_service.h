// The part of the daemon that admits other machines to the cluster: HTTPS at `join.listen`.
#pragma once

#include <memory>

#include "cluster_setup/admission.h"
#include "daemon/config.h"
#include "http/server.h"
#include "weft/result.h"

namespace weft {

class JoinService {
 public:
  // Serves `join.listen`, which is set.
  static Result<std::unique_ptr<JoinService>> open(const Config& config);
  JoinService(const JoinService&) = delete;
  JoinService& operator=(const JoinService&) = delete;
  ~JoinService() = default;

 private:
  JoinService() = default;
  std::unique_ptr<setup::Admission> admission_;
  std::unique_ptr<HttpServer> server_;
};

// Checks the files in `join.authority`.
Status check_admission(const Config& config);

}  // namespace weft
