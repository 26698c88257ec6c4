// What happened to a model, as users see it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weft/commits.h"

namespace weft {

struct ModelEvent {
  // restart: the journal cannot tell what happened since the position that was asked for. Whoever follows looks at the
  // present state, and goes on from this event's position.
  // memory: the version that was just published is in memory alone. durable: it is on a disk now. lost: it was removed,
  // as its bytes were lost.
  enum class Kind : std::uint8_t { publish, tag, remove, memory, durable, lost, restart };
  Kind kind = Kind::publish;
  std::string model;                            // "" for a restart
  std::uint64_t version = 0;                    // 0: none, as for a tag that is deleted
  std::vector<std::string> tags;                // that lead to the version, were changed, or went with the version
  std::uint64_t bytes = 0;                      // publish: of the version's files
  std::optional<std::uint64_t> new_bytes = {};  // publish: what it was the first to bring, where its content is local
  std::string why = {};                         // lost
  std::uint64_t time_ns = 0;
  std::uint64_t position = 0;  // of the journal: a place to follow on from
};

std::string_view name_of(ModelEvent::Kind kind);

// The events of one record of the journal, at least one. All but the last have the position before the record, so
// whoever goes on from it gets the whole record again.
std::vector<ModelEvent> events_of(const Commit& commit, std::uint64_t before);

// One JSON object.
void write_event(JsonWriter& json, const ModelEvent& event);

// Is it of a model that one of these prefixes names: the model itself, or the first part of its name ("org" or "org/"
// of "org/m")? None: each model. A restart is of all.
bool concerns(const ModelEvent& event, const std::vector<std::string>& prefixes);

}  // namespace weft
