// The events of the journal. An event holds all facts of a change that the index cannot derive: names, numbers, times,
// inode numbers. The store makes an event under the writer lock, journals it, then applies it. A replay applies it the
// same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  VersionRow version;            // `removed` is never set
  std::vector<NamedInode> tags;  // tags that the publish sets to the version, by its publisher
  Ino model_ino = 0;
  Ino latest_ino = 0;
  std::vector<NamedInode> directories;  // all namespace paths above the model, so that no record needs an earlier one
  std::uint64_t model_created_ns = 0;
  LocalRow local;
  std::vector<PackId> packs;   // new packs of the publish; in a replay the index may lack their blobs
  std::uint64_t revision = 0;  // registry revision, in the last event of a commit; 0 in the others
  bool bare = false;           // the manifest is not local: an AdoptionEvent adds the content
  // True if the version was removed before this store received it.
  bool was_removed() const { return bare && local.ino_count == 0; }
};

struct TagChange {
  std::string name;
  std::uint64_t number = 0;  // 0 deletes the tag
  Ino ino = 0;
  Uuid uid = {};           // of the version
  std::string owner = {};  // as TagRow::owner
};

struct TagsEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t time_ns = 0;
  std::vector<TagChange> changes;
  std::uint64_t revision = 0;
  RegistryStamp at = {};  // of the change
  Author by = {};
};

struct RemovalEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
  std::string lost;                    // reason, if the version's bytes were lost; "" if a user removed it
  std::vector<std::string> tags = {};  // tags of the version, deleted with it
  Author by = {};
  Uuid uid = {};          // of the version, as in the next two
  RegistryStamp at = {};  // of the change
};

// Adds the content of a bare version. Repeats fields of its PublishEvent, so that no record needs an earlier one.
struct AdoptionEvent {
  std::uint64_t sequence = 0;
  VersionId version = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t published_ns = 0;
  std::vector<Ino> view_inos;
  std::vector<Range> blobs;  // as LocalRow::blobs
};

// A flag of a live version, set and cleared by a NoteEvent. Stored: never renumber, only append.
enum class VersionNote : std::uint8_t {
  pinned = 1,     // its bytes are not evicted
  in_memory = 2,  // its bytes may be on no disk yet: they are lost if the publisher's machine stops
};

struct NoteEvent {
  std::uint64_t sequence = 0;
  VersionNote note = VersionNote::pinned;
  std::string model;
  std::uint64_t number = 0;
  bool set = false;  // false: the note is cleared
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
};

// Replaces the message and the metrics of a live version.
struct DescriptionEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::string message;
  Metrics metrics;
  std::uint64_t time_ns = 0;  // becomes VersionRow::described_ns
  std::uint64_t revision = 0;
  Uuid uid = {};
};

// Gives a model another name. Its versions, tags and inode numbers stay.
struct RenameEvent {
  std::uint64_t sequence = 0;
  std::string model;  // the name before
  std::string to;
  std::uint64_t time_ns = 0;
  std::vector<NamedInode> directories;  // all namespace paths above the new name
};

// Makes a removed version live again.
struct UndeleteEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;  // becomes VersionRow::undeleted_ns
  LocalRow local;             // its numbers afterwards
  bool bare = false;          // its content is not local: an AdoptionEvent adds it
  bool reaped = false;  // gc had released its content: it is bare, and has other inode numbers than before the removal
  std::uint64_t revision = 0;
  Uuid uid = {};
};

// Gives a version another number of its model. Its tags and its children follow it.
struct RenumberEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;  // the former one
  std::uint64_t to = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
  Uuid uid = {};
};

// A removed version was purged.
struct PurgeEvent {
  std::uint64_t sequence = 0;
  std::string model;
  std::uint64_t number = 0;
  std::uint64_t time_ns = 0;
  std::uint64_t revision = 0;
  Author by = {};
  Uuid uid = {};
};

// Smallest number for the next version of a model.
struct NumberFloor {
  std::string model;
  std::uint64_t next_number = 0;
};
// The decisions of a rebuild about a lost part of the journal. The next rebuild reads them and decides the same.
struct RepairEvent {
  std::uint64_t sequence = 0;
  std::uint64_t time_ns = 0;
  std::vector<Range> gaps;          // byte ranges of the journal without records
  std::uint64_t lost_versions = 0;  // publishes without a record, all repairs together
  std::vector<NumberFloor> models;
  Counters counters;              // floors: numbers and ids in use before are smaller
  std::vector<std::string> lost;  // lines for the user
};

using Event = std::variant<PublishEvent, TagsEvent, RemovalEvent, RepairEvent, AdoptionEvent, NoteEvent,
                           DescriptionEvent, RenameEvent, UndeleteEvent, RenumberEvent, PurgeEvent>;

// Returns the record of an event for offset `place` of the journal. A reader of the journal ignores it anywhere else.
std::vector<std::byte> encode_event(const Event& event, std::uint64_t place);
struct PlacedEvent {
  Event event;
  std::uint64_t place = 0;
};
// Errc::unsupported: the kind of event, or the record's format version, is unknown to this version of weft.
Result<PlacedEvent> decode_event(std::span<const std::byte> record, std::string_view where);
// Returns one line for people, such as "publish of bert@2".
std::string event_text(const Event& event);
std::uint64_t event_sequence(const Event& event);
void set_revision(Event& event, std::uint64_t revision);  // no effect on adoptions, renames and repairs

}  // namespace weft
