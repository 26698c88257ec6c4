// Who may publish into a store, as the daemon that has it says.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "weft/result.h"

namespace weft {

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // beside `gid`
};

// Any thread.
class PublishRights {
 public:
  virtual ~PublishRights() = default;
  // An answer counts for 5 seconds. Errc::permission: the user may not. Errc::not_found: no daemon has the store, so
  // its files' own rights decide. Another error: the daemon does not answer now.
  virtual Status may_publish(const UserIds& user) = 0;
};

std::unique_ptr<PublishRights> make_publish_rights(const std::string& store_path);

}  // namespace weft
