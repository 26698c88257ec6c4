// Events of models, as users see them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weft/store/commits.h"

namespace weft {

struct ModelEvent {
  // restart: the journal cannot list the changes since the position that was asked for. The follower reads the present
  // state, and continues from this event's position.
  // undelete: a removed version is live again; events of its tags follow. note: the version has another message or
  // other metrics.
  // rename: the model has another name. purge: a removed version is never undeleted, and its content is freed.
  // memory: the bytes of the version that was just published are in memory alone. durable: they are on a disk. lost:
  // the version was removed because its bytes were lost.
  enum class Kind : std::uint8_t {
    publish,
    tag,
    remove,
    undelete,
    note,
    memory,
    durable,
    lost,
    rename,
    purge,
    restart
  };
  Kind kind = Kind::publish;
  std::string model;                            // "" for a restart; the former name for a rename
  std::uint64_t version = 0;                    // 0: none, as for a deleted tag
  std::vector<std::string> tags;                // tags that lead to the version, were changed, or were removed with it
  std::uint64_t bytes = 0;                      // publish: size of the version's files
  std::optional<std::uint64_t> new_bytes = {};  // publish: bytes that no earlier version has, if its content is local
  std::string why = {};                         // lost: the reason
  std::string to = {};                          // rename: the new name
  std::string publisher = {};                   // publish: id of the node that published the version
  Author by = {};                               // publish, tag, remove, lost, purge: the user; empty if it is unknown
  std::uint64_t time_ns = 0;
  std::uint64_t position = 0;  // in the journal; a follower can continue from here
};

std::string_view name_of(ModelEvent::Kind kind);

// Returns the events of one journal record. `before` is the position before the record. Only the last event has the
// position after it, so a follower that continues from any other event receives the whole record again.
std::vector<ModelEvent> events_of(const Commit& commit, std::uint64_t before);

// Writes the event as one JSON object.
void write_event(JsonWriter& json, const ModelEvent& event);

// True if one of the prefixes names the event's model, also by its new name: by its whole name, or by leading
// components ("org" or "org/" for "org/m"). Without prefixes every model matches. A restart always matches.
bool concerns(const ModelEvent& event, const std::vector<std::string>& prefixes);

}  // namespace weft
