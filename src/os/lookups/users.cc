#include "os/lookups/users.h"

#include "base/plain_text.h"

namespace weft {

UserIds with_groups(uid_t uid, gid_t gid) {
  return {uid, gid, login_groups(uid, gid)};
}

std::string user_name(uid_t uid) {
  auto name = name_of_user(uid);
  return name && can_be_author({*name, {}}) ? *std::move(name) : std::to_string(uid);
}

}  // namespace weft
