// What the journal records: each event is all that the index cannot make up again, names, numbers, times and inode
// numbers included. An event is made under the writer lock, journaled, then applied; a replay applies it the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/result.h"
#include "weft/store.h"

namespace weft {

struct NamedInode {
  std::string name;
  Ino ino = 0;
};

struct PublishEvent {
  std::uint64_t sequence = 0;
  VersionRow version;            // never removed
  std::vector<NamedInode> tags;  // to set to it
  Ino model_ino = 0;
  Ino latest_ino = 0;
  std::vector<NamedInode> directories;  // namespace paths that are new with it
  LocalRow local;
  std::vector<PackId> packs;  // that came with it: their blobs may be missing from the index in a replay
};

struct TagChange {
  std::string name;
  std::uint64_t number = 0;  // 0: the tag goes
  Ino ino = 0;
};

struct TagsEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t time_ns = 0;
  std::vector<TagChange> changes;
};

struct RemovalEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
};

using Event = std::variant<PublishEvent, TagsEvent, RemovalEvent>;

std::vector<std::byte> encode_event(const Event& event);  // a whole record
Result<Event> decode_event(std::span<const std::byte> record, std::string_view where);
std::uint64_t event_sequence(const Event& event);

}  // namespace weft
