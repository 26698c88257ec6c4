// Registers handlers of requests whose bodies and answers have fields(). They are in the audit log.
#pragma once

#include <memory>
#include <string>

#include "base/json_fields.h"
#include "control/call.h"
#include "control/server.h"
#include "daemon_api/audit_entries.h"
#include "daemon_api/control_messages.h"
#include "monitor/audit.h"

namespace weft {

void fail(control::Call& call, const Error& error);  // logs the error and answers with it

// Writes the line of the audit log about a request that was done or denied, or that failed and may have made a part of
// its change.
template <class Request, class Answer>
void audit_outcome(const control::Call& call, const Request& request, const Result<Answer>& answer) {
  if (!answer.ok() && answer.error().code != Errc::permission && !may_change_and_fail(request)) return;
  const AuditEntry entry = audit_entry(request, answer.ok() ? &*answer : nullptr);
  if (entry.action.empty()) return;
  if (answer.ok())
    audit(entry.action, entry.object, call.peer().uid);
  else
    audit_failure(entry.action, entry.object, call.peer().uid, answer.error());
}

// Writes the line at once: what follows a publish may fail, or be cancelled.
inline void audit_publish(const PublishOutcome& done, uid_t user) {
  const AuditEntry entry = audit_entry(done);
  audit(entry.action, entry.object, user);
}

// `parts` outlives the server.
template <class Request, class Answer, class Parts>
void serve(control::Server& server, Parts& parts, const std::string& name,
           Result<Answer> (*handle)(control::Call&, const Request&, Parts&)) {
  server.on(name, control::Runs::own_thread, [&parts, handle](const std::shared_ptr<control::Call>& call) {
    const auto request = decode_fields<Request>(call->body());
    const auto answer = request.ok() ? handle(*call, *request, parts) : Result<Answer>(request.error());
    if (request.ok()) audit_outcome(*call, *request, answer);
    answer.ok() ? call->answer(encode_fields(*answer)) : fail(*call, answer.error());
  });
}

}  // namespace weft
