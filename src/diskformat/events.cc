// Encodes and decodes events. Each number from a journal is checked, because counters continue from the largest.
#include "diskformat/events.h"

#include <algorithm>

#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"

namespace weft {
namespace {

using flat::Builder;
using NamedInodes = std::vector<NamedInode>;

auto pack(Builder& builder, const NamedInodes& inodes) {
  std::vector<flat::Offset<records::NamedInode>> out;
  for (const NamedInode& inode : inodes)
    out.push_back(records::CreateNamedInode(builder, builder.CreateString(inode.name), inode.ino));
  return builder.CreateVector(out);
}

std::vector<std::byte> encode(const PublishEvent& event, std::uint64_t place) {
  Builder builder;
  const VersionRow& version = event.version;
  auto model_name = builder.CreateString(version.model_name);
  auto message = builder.CreateString(version.message);
  auto metrics = flat::pack(builder, version.metrics);
  auto parents = flat::pack(builder, version.parents);
  auto tags = pack(builder, event.tags);
  auto directories = pack(builder, event.directories);
  auto view_inos = builder.CreateVector(event.local.view_inos);
  auto blobs = flat::pack(builder, event.local.blobs);
  auto packs = builder.CreateVector(event.packs);
  auto elsewhere = flat::pack(builder, version.elsewhere);
  auto manifest = flat::pack(version.manifest);
  auto publisher = flat::pack_uuid(version.publisher);
  return seal_record(
      RecordKind::publish,
      flat::finish(builder, records::CreatePublish(builder, event.sequence, version.id, version.model, model_name,
                                                   version.number, &manifest, version.time_ns, version.logical_bytes,
                                                   message, metrics, parents, tags, event.model_ino, event.latest_ino,
                                                   directories, event.local.ino_base, event.local.ino_count, view_inos,
                                                   packs, version.tensors, version.tensor_bytes, elsewhere, place,
                                                   event.model_created_ns, flat::pointer(publisher), event.revision,
                                                   event.bare, blobs, version.kind == VersionKind::dataset)));
}

std::vector<std::byte> encode(const TagsEvent& event, std::uint64_t place) {
  Builder builder;
  std::vector<flat::Offset<records::TagChange>> changes;
  for (const TagChange& change : event.changes)
    changes.push_back(records::CreateTagChange(builder, builder.CreateString(change.name), change.number, change.ino));
  auto list = builder.CreateVector(changes);
  auto model = builder.CreateString(event.model);
  return seal_record(RecordKind::tags,
                     flat::finish(builder, records::CreateTags(builder, event.sequence, model, event.time_ns, list,
                                                               place, event.revision, event.changed_at)));
}

std::vector<std::byte> encode(const RemovalEvent& event, std::uint64_t place) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  auto lost = builder.CreateString(event.lost);
  auto tags = builder.CreateVectorOfStrings(event.tags);
  return seal_record(RecordKind::removal,
                     flat::finish(builder, records::CreateRemoval(builder, event.sequence, model, event.number,
                                                                  event.time_ns, place, event.revision, lost, tags)));
}

std::vector<std::byte> encode(const AdoptionEvent& event, std::uint64_t place) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  auto view_inos = builder.CreateVector(event.view_inos);
  auto blobs = flat::pack(builder, event.blobs);
  return seal_record(
      RecordKind::adoption,
      flat::finish(builder, records::CreateAdoption(builder, event.sequence, event.version, model, event.number,
                                                    event.published_ns, view_inos, place, blobs)));
}

std::vector<std::byte> encode(const NoteEvent& event, std::uint64_t place) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  return seal_record(
      RecordKind::note,
      flat::finish(builder, records::CreateNote(builder, event.sequence, static_cast<std::uint8_t>(event.note), model,
                                                event.number, event.set, place, event.revision, event.time_ns)));
}

std::vector<std::byte> encode(const RepairEvent& event, std::uint64_t place) {
  Builder builder;
  std::vector<records::Gap> ranges;
  for (const Range& gap : event.gaps) ranges.emplace_back(gap.offset, gap.offset + gap.length);
  std::vector<flat::Offset<records::NumberFloor>> floors;
  for (const NumberFloor& floor : event.models)
    floors.push_back(records::CreateNumberFloor(builder, builder.CreateString(floor.model), floor.next_number));
  std::vector<flat::Offset<flatbuffers::String>> lines;
  for (const std::string& line : event.lost) lines.push_back(builder.CreateString(line));
  auto gaps = builder.CreateVectorOfStructs(ranges);
  auto models = builder.CreateVector(floors);
  auto lost = builder.CreateVector(lines);
  const Counters& counters = event.counters;
  return seal_record(RecordKind::repair,
                     flat::finish(builder, records::CreateRepair(builder, event.sequence, event.time_ns, place, gaps,
                                                                 event.lost_versions, models, counters.number_floor,
                                                                 counters.next_version, counters.next_model,
                                                                 counters.next_ino, lost)));
}

using NamedInodes = std::vector<NamedInode>;

NamedInodes unpack(const flatbuffers::Vector<flat::Offset<records::NamedInode>>* inodes) {
  NamedInodes out;
  if (inodes == nullptr) return out;
  for (const records::NamedInode* inode : *inodes) out.push_back({flat::text(inode->name()), inode->ino()});
  return out;
}

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

bool plausible(const PublishEvent& event) {
  auto named = [](const NamedInode& inode) { return small(inode.ino); };
  const VersionRow& version = event.version;
  const LocalRow& local = event.local;
  return small_id(version.id) && small_id(version.model) && version.number > 0 &&
         version.number <= limits::kVersionNumberMax && small(event.model_ino) && small(event.latest_ino) &&
         small(local.ino_base) && small(local.ino_count) &&
         std::all_of(local.view_inos.begin(), local.view_inos.end(), small) && can_be_numbers(local.blobs) &&
         std::all_of(event.tags.begin(), event.tags.end(), named) &&
         std::all_of(event.directories.begin(), event.directories.end(), named);
}

Result<PlacedEvent> decode_publish(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Publish>(payload);
  if (in == nullptr || in->manifest() == nullptr) return flat::bad(where, "not a publish");
  PublishEvent event;
  event.sequence = in->sequence();
  VersionRow& version = event.version;
  version.id = in->version();
  version.model = in->model();
  version.model_name = flat::text(in->model_name());
  version.number = in->number();
  version.manifest = flat::unpack(*in->manifest());
  version.time_ns = in->time_ns();
  version.logical_bytes = in->logical_bytes();
  version.message = flat::text(in->message());
  version.metrics = flat::unpack(in->metrics());
  version.parents = flat::unpack(in->parents());
  version.tensors = in->tensors();
  version.tensor_bytes = in->tensor_bytes();
  version.elsewhere = flat::unpack(in->elsewhere());
  version.kind = in->dataset() ? VersionKind::dataset : VersionKind::model;
  event.tags = unpack(in->tags());
  event.model_ino = in->model_ino();
  event.latest_ino = in->latest_ino();
  event.directories = unpack(in->directories());
  event.local = {in->ino_base(), in->ino_count(), flat::numbers(in->view_inos()), flat::ranges(in->blobs()), {}};
  event.packs = flat::numbers(in->packs());
  event.model_created_ns = in->model_created_ns();
  version.publisher = flat::unpack_uuid(in->publisher());
  event.revision = in->revision();
  event.bare = in->bare();
  if (!plausible(event)) return flat::bad(where, "a publish of impossible numbers");
  return PlacedEvent{std::move(event), in->place()};
}

Result<PlacedEvent> decode_tags(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Tags>(payload);
  if (in == nullptr) return flat::bad(where, "not a change of tags");
  TagsEvent event{in->sequence(), flat::text(in->model_name()), in->time_ns(), {}, in->revision(), in->changed_at()};
  if (in->changes() != nullptr)
    for (const records::TagChange* change : *in->changes())
      event.changes.push_back({flat::text(change->name()), change->number(), change->ino()});
  bool possible = std::all_of(event.changes.begin(), event.changes.end(), [](const TagChange& change) {
    return small(change.ino) && change.number <= limits::kVersionNumberMax;
  });
  if (!possible) return flat::bad(where, "a change of tags with impossible numbers");
  return PlacedEvent{std::move(event), in->place()};
}

Result<PlacedEvent> decode_removal(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Removal>(payload);
  if (in == nullptr) return flat::bad(where, "not a removal");
  RemovalEvent event{in->sequence(), flat::text(in->model_name()), in->number(), in->time_ns(),
                     in->revision(), flat::text(in->lost())};
  if (in->tags() != nullptr)
    for (const flatbuffers::String* tag : *in->tags()) event.tags.push_back(flat::text(tag));
  return PlacedEvent{std::move(event), in->place()};
}

Result<PlacedEvent> decode_adoption(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Adoption>(payload);
  if (in == nullptr) return flat::bad(where, "not an adoption");
  AdoptionEvent event{in->sequence(),
                      in->version(),
                      flat::text(in->model_name()),
                      in->number(),
                      in->published_ns(),
                      flat::numbers(in->view_inos()),
                      flat::ranges(in->blobs())};
  if (!small_id(event.version) || !std::all_of(event.view_inos.begin(), event.view_inos.end(), small) ||
      !can_be_numbers(event.blobs))
    return flat::bad(where, "an adoption of impossible numbers");
  return PlacedEvent{std::move(event), in->place()};
}

Result<PlacedEvent> decode_note(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Note>(payload);
  if (in == nullptr) return flat::bad(where, "not a note");
  const auto note = static_cast<VersionNote>(in->note());
  if (note != VersionNote::pinned && note != VersionNote::in_memory)
    return flat::bad(where, "a note that is not known");
  return PlacedEvent{NoteEvent{in->sequence(), note, flat::text(in->model_name()), in->number(), in->set(),
                               in->time_ns(), in->revision()},
                     in->place()};
}

bool plausible(const RepairEvent& event) {
  auto possible = [](const NumberFloor& floor) { return floor.next_number <= limits::kVersionNumberMax; };
  const Counters& counters = event.counters;
  const auto may_be_next = [](std::uint64_t id) { return id <= limits::kIdMax + 1; };
  return small_id(event.lost_versions) && counters.number_floor <= limits::kVersionNumberMax &&
         may_be_next(counters.next_version) && may_be_next(counters.next_model) && small(counters.next_ino) &&
         std::all_of(event.models.begin(), event.models.end(), possible);
}

Result<PlacedEvent> decode_repair(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Repair>(payload);
  if (in == nullptr) return flat::bad(where, "not a repair");
  RepairEvent event;
  event.sequence = in->sequence();
  event.time_ns = in->time_ns();
  event.lost_versions = in->lost_versions();
  if (in->gaps() != nullptr)
    for (const records::Gap* gap : *in->gaps())
      if (gap->begin() < gap->end()) event.gaps.push_back({gap->begin(), gap->end() - gap->begin()});
  if (in->models() != nullptr)
    for (const records::NumberFloor* floor : *in->models())
      event.models.push_back({flat::text(floor->model_name()), floor->next_number()});
  event.counters.number_floor = in->number_floor();
  event.counters.next_version = in->next_version();
  event.counters.next_model = in->next_model();
  event.counters.next_ino = in->next_ino();
  if (in->lost() != nullptr)
    for (const flatbuffers::String* line : *in->lost()) event.lost.push_back(flat::text(line));
  if (!plausible(event)) return flat::bad(where, "a repair with impossible numbers");
  return PlacedEvent{std::move(event), in->place()};
}

}  // namespace

std::vector<std::byte> encode_event(const Event& event, std::uint64_t place) {
  return std::visit([place](const auto& it) { return encode(it, place); }, event);
}

namespace {

struct EventText {
  std::string operator()(const PublishEvent& event) const {
    return fmt::format("publish of {}@{}{}", event.version.model_name, event.version.number,
                       event.bare ? ", without its manifest" : "");
  }
  std::string operator()(const TagsEvent& event) const {
    std::string text = fmt::format("tags of {}:", event.model);
    for (const TagChange& tag : event.changes)
      text += tag.number == 0 ? fmt::format(" {} deleted", tag.name) : fmt::format(" {}={}", tag.name, tag.number);
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
      return decode_publish(payload, where);
    case RecordKind::tags:
      return decode_tags(payload, where);
    case RecordKind::removal:
      return decode_removal(payload, where);
    case RecordKind::repair:
      return decode_repair(payload, where);
    case RecordKind::adoption:
      return decode_adoption(payload, where);
    case RecordKind::note:
      return decode_note(payload, where);
    default:
      return Error{Errc::unsupported,
                   fmt::format("{}: another version of weft wrote this: expected a kind of event that is known, got {}",
                               where, static_cast<unsigned>(kind))};
  }
}

}  // namespace weft
