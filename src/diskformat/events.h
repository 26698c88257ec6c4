// What the journal records: each event is all that the index cannot make up again, names, numbers, times and inode
// numbers included. An event is made under the writer lock, journaled, then applied; a replay applies it the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "diskformat/rows.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

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
  std::vector<NamedInode> directories;  // namespace paths above its model: no record needs an earlier one
  std::uint64_t model_created_ns = 0;
  LocalRow local;
  std::vector<PackId> packs;   // that came with it: their blobs may be missing from the index in a replay
  std::uint64_t revision = 0;  // of the registry; the last event of a commit has it, others 0
  bool bare = false;           // its manifest is not here: an adoption brings the content
  // It was gone before this store heard of it.
  bool was_removed() const { return bare && local.ino_count == 0; }
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
  std::uint64_t revision = 0;
  std::uint64_t changed_at = 0;  // revision of the registry; 0: none, or it does not tell
};

struct RemovalEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
  std::string lost;                    // why, of a version whose bytes were lost; "": somebody removed it
  std::vector<std::string> tags = {};  // that led to the version: they go with it
};

// A bare version gets its content. It repeats what the publish says: no record needs an earlier one.
struct AdoptionEvent {
  std::uint64_t sequence = 0;
  VersionId version = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t published_ns = 0;
  std::vector<Ino> view_inos;
  std::vector<Range> blobs;  // as LocalRow::blobs
};

// What is noted of a live version until it is taken back. Stored: never renumber, only append.
enum class VersionNote : std::uint8_t {
  pinned = 1,     // its bytes are not evicted
  in_memory = 2,  // its bytes are not known to be on a disk: they go if its publisher's machine stops
};

struct NoteEvent {
  std::uint64_t sequence = 0;
  VersionNote note = VersionNote::pinned;
  std::string model;
  std::uint64_t number = 0;
  bool set = false;  // false: it is taken back
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
};

// What a rebuild decided about a part of the journal that is lost for good, so that the next one agrees.
struct NumberFloor {
  std::string model;
  std::uint64_t next_number = 0;
};
struct RepairEvent {
  std::uint64_t sequence = 0;
  std::uint64_t time_ns = 0;
  std::vector<Range> gaps;          // of the journal
  std::uint64_t lost_versions = 0;  // publishes without a record, all repairs together
  std::vector<NumberFloor> models;
  Counters counters;              // floors: what was given before is below
  std::vector<std::string> lost;  // lines for the user
};

using Event = std::variant<PublishEvent, TagsEvent, RemovalEvent, RepairEvent, AdoptionEvent, NoteEvent>;

// A whole record, for this place of the journal: a copy of it elsewhere is no record.
std::vector<std::byte> encode_event(const Event& event, std::uint64_t place);
struct PlacedEvent {
  Event event;
  std::uint64_t place = 0;
};
// Errc::unsupported: a kind of event that this version of weft does not know, or another version of the record.
Result<PlacedEvent> decode_event(std::span<const std::byte> record, std::string_view where);
std::uint64_t event_sequence(const Event& event);
void set_revision(Event& event, std::uint64_t revision);  // of an event that has one: a registry can bring it

}  // namespace weft
