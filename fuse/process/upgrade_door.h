// The socket for `weft mount --upgrade`, with an abstract name. The request is the path of a program. The reply is "."
// once that program serves the mount, else the reason why not. Only root and the supervisor's user may connect.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "os/sys.h"
#include "weft/result.h"

namespace weft {

struct UpgradeRequest {
  std::string program;
  Fd client;
};

class UpgradeDoor {
 public:
  static Result<UpgradeDoor> make();
  explicit UpgradeDoor(Fd listener) : listener_(std::move(listener)) {}

  int fd() const { return listener_.get(); }
  Result<std::string> name() const;  // without the leading zero byte
  // Accepts a client. Returns its request, or nothing if it has no access or sends none.
  std::optional<UpgradeRequest> answer() const;

 private:
  Fd listener_;
};

void reply_upgrade(int client, std::string_view problem);

}  // namespace weft
