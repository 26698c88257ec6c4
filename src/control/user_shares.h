// Limits the daemon's resources that each user of the machine holds: connections, running handlers, and received
// descriptors. There is a limit for each user, and one for all users, which leaves a reserve to root and the daemon's
// user. So no user can lock out other users or the administrator.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace weft::control {

class UserShares {
 public:
  enum class Kind : std::uint8_t { connection, handler, descriptor };
  UserShares();

  // Allots `count` of a kind to a user, until the last copy of the returned pointer is destroyed, which may outlive
  // this. Null if the user, or all users without root, would exceed a limit of base/limits.h. Any thread.
  std::shared_ptr<void> take(Kind kind, uid_t user, std::size_t count = 1);

 private:
  struct Ledger;
  std::shared_ptr<Ledger> ledger_;
};

}  // namespace weft::control
