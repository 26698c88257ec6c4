// What the users of a machine hold of one daemon: connections, running handlers, and descriptors that came with
// messages. Each user has a share of each, and all users together leave a part to root and to the daemon's own user, so
// that no user can keep the others or the administrator out.
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

  // Takes `count` of them for a user, who holds them until the last copy of the returned pointer goes, which may
  // outlive this. Null: the user, or all users but root, would hold more than limits.h allows. Any thread.
  std::shared_ptr<void> take(Kind kind, uid_t user, std::size_t count = 1);

 private:
  struct Ledger;
  std::shared_ptr<Ledger> ledger_;
};

}  // namespace weft::control
