// Where `weft mount --upgrade` knocks: a socket with an abstract name. One message is the path of a program, the answer
// is "." when it serves the mount, else it says why not. Only root and the supervisor's own user are let in.
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
  // Whoever knocked, when it is somebody that is let in and asks for something.
  std::optional<UpgradeRequest> answer() const;

 private:
  Fd listener_;
};

void reply_upgrade(int client, std::string_view problem);

}  // namespace weft
