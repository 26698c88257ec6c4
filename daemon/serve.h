// Registers handlers of requests whose bodies and answers have fields().
#pragma once

#include <memory>
#include <string>

#include "base/json_fields.h"
#include "control/call.h"
#include "control/server.h"
#include "daemon_api/control_messages.h"

namespace weft {

void fail(control::Call& call, const Error& error);  // logs the error and answers with it

// `parts` outlives the server.
template <class Request, class Answer, class Parts>
void serve(control::Server& server, Parts& parts, const std::string& name,
           Result<Answer> (*handle)(control::Call&, const Request&, Parts&)) {
  server.on(name, control::Runs::own_thread, [&parts, handle](const std::shared_ptr<control::Call>& call) {
    const auto request = decode_fields<Request>(call->body());
    const auto answer = request.ok() ? handle(*call, *request, parts) : Result<Answer>(request.error());
    answer.ok() ? call->answer(encode_fields(*answer)) : fail(*call, answer.error());
  });
}

}  // namespace weft
