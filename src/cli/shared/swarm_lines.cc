#include "cli/shared/swarm_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/text.h"
#include "cli/shared/table.h"

namespace weft {
namespace {

// The parts of a node in the swarm of one version: members of the status, null for a part that it does not have.
struct Parts {
  const JsonValue* fetched = nullptr;
  const JsonValue* sent = nullptr;
  const JsonValue* named = nullptr;
  const JsonValue* introduced = nullptr;
};
using Swarms = std::map<std::string, Parts>;  // by manifest

void add(Swarms& swarms, const JsonValue& status, std::string_view name, const JsonValue* Parts::*part) {
  const JsonValue* const list = status.find(name);
  if (list == nullptr || list->array() == nullptr) return;
  for (const JsonValue& one : *list->array())
    if (const auto manifest = one.text("manifest"); manifest.ok()) swarms[*manifest].*part = &one;
}

std::uint64_t number(const JsonValue& from, std::string_view name) {
  const auto found = from.number_or(name, 0);
  return found.ok() ? *found : 0;
}

bool is_set(const JsonValue& from, std::string_view name) {
  const auto flag = from.flag(name);
  return flag.ok() && *flag;
}

// Returns the model and number of the version, or else the start of its manifest's digest.
std::string name_of(const std::string& manifest, const Parts& parts) {
  constexpr std::size_t kDigits = 12;
  for (const JsonValue* part : {parts.fetched, parts.sent, parts.named, parts.introduced}) {
    if (part == nullptr) continue;
    if (const auto version = part->text("version"); version.ok() && !version->empty()) return printable(*version);
  }
  return "manifest " + printable(manifest.substr(0, kDigits));
}

// Returns the count of units that came, by their givers.
std::string received(const JsonValue& fetched) {
  std::uint64_t all = 0;
  std::string parts;
  for (const auto& [name, giver] :
       {std::pair("from_partners", "from partners"), std::pair("from_source", "from the source"),
        std::pair("from_origin", "from the origin")}) {
    const std::uint64_t units = number(fetched, name);
    all += units;
    if (units != 0) parts += fmt::format("{}{} {}", parts.empty() ? " (" : ", ", units, giver);
  }
  return fmt::format("{} received{}{}", all, parts, parts.empty() ? "" : ")");
}

std::string line_of(const std::string& manifest, const Parts& parts) {
  std::string line = name_of(manifest, parts) + ":";
  const char* comma = " ";
  const auto add = [&](const std::string& text) {
    line += comma + text;
    comma = ", ";
  };
  // FetchedVersion::here lacks the units that the node had before it joined.
  std::uint64_t here = 0, units = 0;
  for (const JsonValue* part : {parts.fetched, parts.sent}) {
    if (part == nullptr) continue;
    here = std::max(here, number(*part, "here"));
    units = std::max(units, number(*part, "units"));
  }
  if (parts.fetched != nullptr || parts.sent != nullptr) add(fmt::format("{} of {}", here, count_of(units, "unit")));
  if (parts.fetched != nullptr)
    add(fmt::format("{}, {}, {} declined", count_of(number(*parts.fetched, "partners"), "partner"),
                    received(*parts.fetched), number(*parts.fetched, "declined")));
  if (parts.sent != nullptr)
    add(fmt::format("{} sent{}", number(*parts.sent, "sent"),
                    is_set(*parts.sent, "is_source") ? " as the source" : ""));
  if (parts.named != nullptr) add(fmt::format("{} named at the origin", number(*parts.named, "sent")));
  if (parts.fetched != nullptr && is_set(*parts.fetched, "hungry")) add("hungry");
  if (parts.introduced != nullptr)
    add(fmt::format("directory of {}", count_of(number(*parts.introduced, "members"), "node")));
  return line;
}

}  // namespace

std::vector<std::string> swarm_lines(const JsonValue& daemon) {
  std::vector<std::string> lines;
  const JsonValue* const status = daemon.find("swarms");
  if (status == nullptr) return lines;
  Swarms swarms;
  add(swarms, *status, "fetched", &Parts::fetched);
  add(swarms, *status, "sent", &Parts::sent);
  add(swarms, *status, "named", &Parts::named);
  add(swarms, *status, "introduced", &Parts::introduced);
  for (const auto& [manifest, parts] : swarms) lines.push_back(line_of(manifest, parts));
  return lines;
}

}  // namespace weft
