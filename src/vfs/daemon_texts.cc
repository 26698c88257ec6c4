#include "vfs/daemon_texts.h"

#include <fmt/core.h>

#include "base/json.h"

namespace weft {

DaemonTexts::DaemonTexts(const std::string& store_path)
    : link_(fmt::format("{}/{}", store_path, control::kSocketName)) {}

Result<control::Answer> DaemonTexts::ask(std::string_view what) {
  WEFT_TRY(const auto client, link_.client());
  control::CallOptions options;
  options.patience = kDaemonPatience;
  return client->call(what, "", {}, options);
}

std::string DaemonTexts::json(std::string_view what) {
  const auto answer = ask(what);
  if (!answer.ok()) return "null";
  JsonWriter json;
  write_json(json, answer->body);
  return json.take();
}

std::string DaemonTexts::status() {
  return json("status");
}

std::string DaemonTexts::peers() {
  return json("peers") + "\n";
}

std::string DaemonTexts::metrics() {
  const auto answer = ask("metrics");
  const auto text = answer.ok() ? answer->body.text("text") : Result<std::string>(answer.error());
  return text.ok() ? *text : "# no daemon answers\n";
}

}  // namespace weft
