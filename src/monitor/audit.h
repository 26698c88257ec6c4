// The audit log: a line for each change that a user made to the store or its bytes, and for each refusal. The line has
// the fields action, object, user (a name), uid, outcome (done, denied or failed), and reason if it was not done; the
// log adds the node (base/log.h). Any thread.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "weft/result.h"

namespace weft {

// `action` is a word such as "publish", and `object` its object, such as "m@3", or "" for the whole store.
void audit(std::string_view action, std::string_view object, uid_t user);
// The outcome is "denied" after Errc::permission, and else "failed": a part of the change may be made.
void audit_failure(std::string_view action, std::string_view object, uid_t user, const Error& why);

}  // namespace weft
