#include "monitor/audit.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "os/lookups/users.h"

namespace weft {
namespace {

LogFields audit_fields(std::string_view action, std::string_view object, uid_t user, std::string outcome) {
  return {{"action", std::string(action)},
          {"object", std::string(object)},
          {"user", user_name(user)},
          {"uid", std::to_string(user)},
          {"outcome", std::move(outcome)}};
}

}  // namespace

void audit(std::string_view action, std::string_view object, uid_t user) {
  log_audit(audit_fields(action, object, user, "done"));
}

void audit_failure(std::string_view action, std::string_view object, uid_t user, const Error& why) {
  LogFields fields = audit_fields(action, object, user, why.code == Errc::permission ? "denied" : "failed");
  fields.emplace_back("reason", why.message);
  log_audit(fields);
}

}  // namespace weft
