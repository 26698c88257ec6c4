// Encodes and decodes events. Each number from a journal is checked, because counters continue from the largest.
#include "diskformat/events.h"

#include <algorithm>
#include <iterator>

#include "base/limits.h"
#include "base/plain_text.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"

namespace weft {

template <class F>
void fields(F& f, NamedInode& m) {
  f(records::NamedInode::VT_NAME, m.name)(records::NamedInode::VT_INO, m.ino);
}

template <class F>
void fields(F& f, TagChange& m) {
  using T = records::TagChange;
  f(T::VT_NAME, m.name)(T::VT_NUMBER, m.number)(T::VT_INO, m.ino)(T::VT_UID, m.uid);
  f.text_if_any(T::VT_OWNER, m.owner);
}

template <class F>
void fields(F& f, NumberFloor& m) {
  f(records::NumberFloor::VT_MODEL_NAME, m.model)(records::NumberFloor::VT_NEXT_NUMBER, m.next_number);
}

namespace {

// An event and its place in the journal, as one record stores them.
template <class Event>
struct Placed {
  Event event;
  std::uint64_t place = 0;
};

}  // namespace

template <class F>
void fields(F& f, Placed<PublishEvent>& m) {
  using T = records::Publish;
  PublishEvent& event = m.event;
  VersionRow& version = event.version;
  LocalRow& local = event.local;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_VERSION, version.id)(T::VT_MODEL, version.model);
  f(T::VT_MODEL_NAME, version.model_name)(T::VT_NUMBER, version.number)(T::VT_MANIFEST, version.manifest);
  f(T::VT_TIME_NS, version.time_ns)(T::VT_LOGICAL_BYTES, version.logical_bytes)(T::VT_MESSAGE, version.message);
  f(T::VT_METRICS, version.metrics)(T::VT_PARENTS, version.parents)(T::VT_TAGS, event.tags);
  f(T::VT_MODEL_INO, event.model_ino)(T::VT_LATEST_INO, event.latest_ino)(T::VT_DIRECTORIES, event.directories);
  f(T::VT_INO_BASE, local.ino_base)(T::VT_INO_COUNT, local.ino_count)(T::VT_VIEW_INOS, local.view_inos);
  f(T::VT_BLOBS, local.blobs)(T::VT_PACKS, event.packs)(T::VT_TENSORS, version.tensors);
  f(T::VT_TENSOR_BYTES, version.tensor_bytes)(T::VT_ELSEWHERE, version.elsewhere)(T::VT_PLACE, m.place);
  f(T::VT_MODEL_CREATED_NS, event.model_created_ns).uuid(T::VT_PUBLISHER, version.publisher);
  f(T::VT_REVISION, event.revision)(T::VT_BARE, event.bare).dataset(T::VT_DATASET, version.kind);
  f(T::VT_DESCRIBED_NS, version.described_ns)(T::VT_UNDELETED_NS, version.undeleted_ns);
  f(T::VT_UID, version.uid).table_if_any(T::VT_SOURCE, version.source);
  f.text_if_any(T::VT_USER, version.by.user).text_if_any(T::VT_NODE, version.by.node);
}

template <class F>
void fields(F& f, Placed<TagsEvent>& m) {
  using T = records::Tags;
  TagsEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_CHANGES, event.changes)(T::VT_MODEL_NAME, event.model)(T::VT_PLACE, m.place);
  f(T::VT_TIME_NS, event.time_ns)(T::VT_REVISION, event.revision);
  f(T::VT_CHANGED_AT, event.at.revision)(T::VT_GENERATION, event.at.generation);
  f.text_if_any(T::VT_USER, event.by.user).text_if_any(T::VT_NODE, event.by.node);
}

template <class F>
void fields(F& f, Placed<RemovalEvent>& m) {
  using T = records::Removal;
  RemovalEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_NUMBER, event.number)(T::VT_PLACE, m.place);
  f(T::VT_TIME_NS, event.time_ns)(T::VT_REVISION, event.revision)(T::VT_LOST, event.lost)(T::VT_TAGS, event.tags);
  f(T::VT_UID, event.uid)(T::VT_CHANGED_AT, event.at.revision)(T::VT_GENERATION, event.at.generation);
  f.text_if_any(T::VT_USER, event.by.user).text_if_any(T::VT_NODE, event.by.node);
}

template <class F>
void fields(F& f, Placed<AdoptionEvent>& m) {
  using T = records::Adoption;
  AdoptionEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_VERSION, event.version)(T::VT_MODEL_NAME, event.model);
  f(T::VT_NUMBER, event.number)(T::VT_PUBLISHED_NS, event.published_ns)(T::VT_VIEW_INOS, event.view_inos);
  f(T::VT_PLACE, m.place)(T::VT_BLOBS, event.blobs);
}

template <class F>
void fields(F& f, Placed<NoteEvent>& m) {
  using T = records::Note;
  NoteEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_NOTE, event.note)(T::VT_MODEL_NAME, event.model)(T::VT_PLACE, m.place);
  f(T::VT_NUMBER, event.number)(T::VT_SET, event.set)(T::VT_REVISION, event.revision)(T::VT_TIME_NS, event.time_ns);
}

template <class F>
void fields(F& f, Placed<DescriptionEvent>& m) {
  using T = records::Description;
  DescriptionEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_NUMBER, event.number);
  f(T::VT_MESSAGE, event.message)(T::VT_METRICS, event.metrics)(T::VT_TIME_NS, event.time_ns)(T::VT_PLACE, m.place);
  f(T::VT_REVISION, event.revision)(T::VT_UID, event.uid);
}

template <class F>
void fields(F& f, Placed<RenameEvent>& m) {
  using T = records::Rename;
  RenameEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_TO, event.to)(T::VT_TIME_NS, event.time_ns);
  f(T::VT_DIRECTORIES, event.directories)(T::VT_PLACE, m.place);
}

template <class F>
void fields(F& f, Placed<UndeleteEvent>& m) {
  using T = records::Undelete;
  UndeleteEvent& event = m.event;
  LocalRow& local = event.local;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_NUMBER, event.number);
  f(T::VT_TIME_NS, event.time_ns)(T::VT_INO_BASE, local.ino_base)(T::VT_INO_COUNT, local.ino_count);
  f(T::VT_VIEW_INOS, local.view_inos)(T::VT_BLOBS, local.blobs)(T::VT_BARE, event.bare)(T::VT_PLACE, m.place);
  f(T::VT_REVISION, event.revision)(T::VT_REAPED, event.reaped)(T::VT_UID, event.uid);
}

template <class F>
void fields(F& f, Placed<RenumberEvent>& m) {
  using T = records::Renumber;
  RenumberEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_NUMBER, event.number)(T::VT_TO, event.to);
  f(T::VT_TIME_NS, event.time_ns)(T::VT_PLACE, m.place)(T::VT_REVISION, event.revision)(T::VT_UID, event.uid);
}

template <class F>
void fields(F& f, Placed<PurgeEvent>& m) {
  using T = records::Purge;
  PurgeEvent& event = m.event;
  f(T::VT_SEQUENCE, event.sequence)(T::VT_MODEL_NAME, event.model)(T::VT_NUMBER, event.number);
  f(T::VT_TIME_NS, event.time_ns)(T::VT_PLACE, m.place)(T::VT_REVISION, event.revision)(T::VT_UID, event.uid);
  f.text_if_any(T::VT_USER, event.by.user).text_if_any(T::VT_NODE, event.by.node);
}

template <class F>
void fields(F& f, Placed<RepairEvent>& m) {
  using T = records::Repair;
  RepairEvent& event = m.event;
  std::vector<records::Gap> gaps;
  for (const Range& gap : event.gaps) gaps.emplace_back(gap.offset, gap.offset + gap.length);
  f(T::VT_SEQUENCE, event.sequence)(T::VT_TIME_NS, event.time_ns)(T::VT_PLACE, m.place)(T::VT_GAPS, gaps);
  f(T::VT_LOST_VERSIONS, event.lost_versions)(T::VT_MODELS, event.models);
  f(T::VT_NUMBER_FLOOR, event.counters.number_floor)(T::VT_NEXT_VERSION, event.counters.next_version);
  f(T::VT_NEXT_MODEL, event.counters.next_model)(T::VT_NEXT_INO, event.counters.next_ino)(T::VT_LOST, event.lost);
  if constexpr (F::kReads)
    for (const records::Gap& gap : gaps)
      if (gap.begin() < gap.end()) event.gaps.push_back({gap.begin(), gap.end() - gap.begin()});
}

namespace {

// Counters continue after these numbers.
bool small(std::uint64_t ino) {
  return ino <= limits::kStoredInoMax;
}
bool small_id(std::uint64_t id) {
  return id <= limits::kIdMax;
}

// True if the blob numbers are in bounds, and no more than the largest manifest can list.
bool can_be_numbers(const std::vector<Range>& blobs) {
  std::uint64_t count = 0;
  for (const Range& run : blobs) {
    if (run.offset == 0 || run.offset > limits::kBlobNumberMax || run.length == 0) return false;
    if (run.length > limits::kManifestMax / kExtentHeadBytes - count) return false;
    count += run.length;
  }
  return true;
}

bool can_be_local(const LocalRow& local) {
  return small(local.ino_base) && small(local.ino_count) && std::ranges::all_of(local.view_inos, small) &&
         can_be_numbers(local.blobs);
}

bool plausible(const PublishEvent& event) {
  auto named = [](const NamedInode& inode) { return small(inode.ino); };
  const VersionRow& version = event.version;
  return small_id(version.id) && small_id(version.model) && version.number > 0 &&
         version.number <= limits::kVersionNumberMax && small(event.model_ino) && small(event.latest_ino) &&
         check_source(version.source).ok() && can_be_local(event.local) &&
         std::all_of(event.tags.begin(), event.tags.end(), named) &&
         std::all_of(event.directories.begin(), event.directories.end(), named);
}

bool plausible(const TagsEvent& event) {
  return std::all_of(event.changes.begin(), event.changes.end(), [](const TagChange& change) {
    return small(change.ino) && change.number <= limits::kVersionNumberMax;
  });
}

bool plausible(const RemovalEvent& /*event*/) {
  return true;
}

bool plausible(const AdoptionEvent& event) {
  return small_id(event.version) && std::all_of(event.view_inos.begin(), event.view_inos.end(), small) &&
         can_be_numbers(event.blobs);
}

bool plausible(const NoteEvent& event) {
  return event.note == VersionNote::pinned || event.note == VersionNote::in_memory;
}

bool plausible(const DescriptionEvent& event) {
  return event.message.size() <= limits::kMessageMax && event.metrics.size() <= limits::kMetricsMax;
}

bool plausible(const RenameEvent& event) {
  return !event.to.empty() && std::ranges::all_of(event.directories, small, &NamedInode::ino);
}

bool plausible(const UndeleteEvent& event) {
  return can_be_local(event.local) && event.local.ino_base != 0 && event.local.ino_count != 0 &&
         (event.bare || !event.reaped);
}

bool plausible(const RenumberEvent& event) {
  return event.number > 0 && event.to > 0 && event.to <= limits::kVersionNumberMax && event.number != event.to;
}

bool plausible(const PurgeEvent& event) {
  return event.number > 0 && event.number <= limits::kVersionNumberMax && event.time_ns <= limits::kTimeNsMax;
}

bool plausible(const RepairEvent& event) {
  auto possible = [](const NumberFloor& floor) { return floor.next_number <= limits::kVersionNumberMax; };
  const Counters& counters = event.counters;
  const auto may_be_next = [](std::uint64_t id) { return id <= limits::kIdMax + 1; };
  return small_id(event.lost_versions) && counters.number_floor <= limits::kVersionNumberMax &&
         may_be_next(counters.next_version) && may_be_next(counters.next_model) && small(counters.next_ino) &&
         std::all_of(event.models.begin(), event.models.end(), possible);
}

template <class Table, class Event>
Result<PlacedEvent> decode(std::span<const std::byte> payload, std::string_view where, std::string_view noun) {
  Placed<Event> placed;
  if (!flat::decode<Table>(payload, placed)) return flat::bad(where, fmt::format("not {}", noun));
  if (!plausible(placed.event)) return flat::bad(where, fmt::format("{} of impossible numbers", noun));
  return PlacedEvent{std::move(placed.event), placed.place};
}

RecordKind kind_of(const Event& event) {
  constexpr RecordKind kKinds[] = {RecordKind::publish,     RecordKind::tags,     RecordKind::removal,
                                   RecordKind::repair,      RecordKind::adoption, RecordKind::note,
                                   RecordKind::description, RecordKind::rename,   RecordKind::undelete,
                                   RecordKind::renumber,    RecordKind::purge};
  static_assert(std::size(kKinds) == std::variant_size_v<Event>);
  return kKinds[event.index()];
}

}  // namespace

std::vector<std::byte> encode_event(const Event& event, std::uint64_t place) {
  return std::visit(
      [place, kind = kind_of(event)]<class One>(const One& one) {
        return seal_record(kind, flat::encode(Placed<One>{one, place}));
      },
      event);
}

namespace {

struct EventText {
  std::string operator()(const PublishEvent& event) const {
    return fmt::format("publish of {}@{}{}", event.version.model_name, event.version.number,
                       event.bare ? ", without its manifest" : "");
  }
  std::string operator()(const TagsEvent& event) const {
    std::string text = fmt::format("tags of {}:", event.model);
    for (const TagChange& tag : event.changes) {
      text += tag.number == 0 ? fmt::format(" {} deleted", tag.name) : fmt::format(" {}={}", tag.name, tag.number);
      if (!tag.owner.empty()) text += fmt::format(" of {}", tag.owner);
    }
    return text;
  }
  std::string operator()(const RemovalEvent& event) const {
    return fmt::format("removal of {}@{}{}{}", event.model, event.number, event.lost.empty() ? "" : ": ", event.lost);
  }
  std::string operator()(const RepairEvent& event) const {
    return fmt::format("repair: {} gaps, {} lost versions", event.gaps.size(), event.lost_versions);
  }
  std::string operator()(const AdoptionEvent& event) const {
    return fmt::format("content of {}@{}", event.model, event.number);
  }
  std::string operator()(const NoteEvent& event) const {
    return fmt::format("{}@{} is {}{}", event.model, event.number, event.set ? "" : "no longer ",
                       event.note == VersionNote::pinned ? "pinned" : "in memory");
  }
  std::string operator()(const DescriptionEvent& event) const {
    return fmt::format("message and metrics of {}@{}", event.model, event.number);
  }
  std::string operator()(const RenameEvent& event) const {
    return fmt::format("rename of {} to {}", event.model, event.to);
  }
  std::string operator()(const UndeleteEvent& event) const {
    return fmt::format("undelete of {}@{}", event.model, event.number);
  }
  std::string operator()(const RenumberEvent& event) const {
    return fmt::format("new number {} of {}@{}", event.to, event.model, event.number);
  }
  std::string operator()(const PurgeEvent& event) const {
    return fmt::format("purge of {}@{}", event.model, event.number);
  }
};

}  // namespace

std::string event_text(const Event& event) {
  return std::visit(EventText(), event);
}

std::uint64_t event_sequence(const Event& event) {
  return std::visit([](const auto& it) { return it.sequence; }, event);
}

void set_revision(Event& event, std::uint64_t revision) {
  const auto set = [revision](auto& it) {
    if constexpr (requires { it.revision; }) it.revision = revision;
  };
  std::visit(set, event);
}

Result<PlacedEvent> decode_event(std::span<const std::byte> record, std::string_view where) {
  RecordKind kind = record_kind(record);
  WEFT_TRY(std::vector<std::byte> payload, open_record(kind, record, where));
  switch (kind) {
    case RecordKind::publish:
      return decode<records::Publish, PublishEvent>(payload, where, "a publish");
    case RecordKind::tags:
      return decode<records::Tags, TagsEvent>(payload, where, "a change of tags");
    case RecordKind::removal:
      return decode<records::Removal, RemovalEvent>(payload, where, "a removal");
    case RecordKind::repair:
      return decode<records::Repair, RepairEvent>(payload, where, "a repair");
    case RecordKind::adoption:
      return decode<records::Adoption, AdoptionEvent>(payload, where, "an adoption");
    case RecordKind::note:
      return decode<records::Note, NoteEvent>(payload, where, "a note");
    case RecordKind::description:
      return decode<records::Description, DescriptionEvent>(payload, where, "a message and metrics");
    case RecordKind::rename:
      return decode<records::Rename, RenameEvent>(payload, where, "a rename");
    case RecordKind::undelete:
      return decode<records::Undelete, UndeleteEvent>(payload, where, "an undelete");
    case RecordKind::renumber:
      return decode<records::Renumber, RenumberEvent>(payload, where, "a new number");
    case RecordKind::purge:
      return decode<records::Purge, PurgeEvent>(payload, where, "a purge");
    default:
      return Error{Errc::unsupported,
                   fmt::format("{}: another version of weft wrote this: expected a kind of event that is known, got {}",
                               where, static_cast<unsigned>(kind))};
  }
}

}  // namespace weft
