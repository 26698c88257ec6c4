#include "cli/shared/daemon_status.h"

#include <fmt/core.h>

#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

std::string scalar_text(const JsonValue& value) {
  if (const std::string* text = value.text()) return printable(*text, 1000);
  if (const std::uint64_t* number = value.number()) return std::to_string(*number);
  if (const bool* flag = value.flag()) return *flag ? "yes" : "no";
  return "";
}

// Adds a line for each member of the named objects in an array: "fetched peer bytes: 1024".
void add_named(const JsonValue& value, const std::string& prefix, std::vector<std::string>& lines) {
  if (value.array() == nullptr) return;
  for (const JsonValue& one : *value.array()) {
    const auto name = one.text("name");
    if (one.object() == nullptr || !name.ok()) continue;
    for (const auto& [key, member] : *one.object())
      if (key != "name")
        lines.push_back(fmt::format("{}{} {}: {}", prefix, printable(*name), printable(key), scalar_text(member)));
  }
}

// Adds a line for each member; a member of an inner object becomes "registry kind: etcd".
void add_lines(const JsonValue& value, const std::string& prefix, std::vector<std::string>& lines) {
  const JsonValue::Object* members = value.object();
  if (members == nullptr) return;
  for (const auto& [name, member] : *members) {
    const std::string text = scalar_text(member);
    if (!text.empty()) lines.push_back(fmt::format("{}{}: {}", prefix, printable(name), text));
    if (prefix.empty()) add_lines(member, printable(name) + " ", lines);
    if (!prefix.empty()) add_named(member, prefix, lines);
  }
}

}  // namespace

DaemonStatus ask_daemon(const Context& context, std::chrono::milliseconds patience) {
  DaemonStatus status;
  const auto daemon = context.daemon();
  if (!daemon.ok() || !*daemon) return status;
  status.runs = true;
  control::CallOptions options;
  options.patience = patience;
  const auto answer = context.ask(**daemon, "status", "", std::move(options));
  if (!answer.ok()) return status;
  JsonWriter json;
  write_json(json, answer->body);
  status.json = json.take();
  add_lines(answer->body, "", status.lines);
  return status;
}

}  // namespace weft
