#include "diskformat/events.h"

#include "diskformat/flat.h"
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
                                                   event.bare)));
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
  return seal_record(RecordKind::removal,
                     flat::finish(builder, records::CreateRemoval(builder, event.sequence, model, event.number,
                                                                  event.time_ns, place, event.revision)));
}

std::vector<std::byte> encode(const AdoptionEvent& event, std::uint64_t place) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  auto view_inos = builder.CreateVector(event.view_inos);
  return seal_record(
      RecordKind::adoption,
      flat::finish(builder, records::CreateAdoption(builder, event.sequence, event.version, model, event.number,
                                                    event.published_ns, view_inos, place)));
}

std::vector<std::byte> encode(const PinEvent& event, std::uint64_t place) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  return seal_record(RecordKind::pin, flat::finish(builder, records::CreatePin(builder, event.sequence, model,
                                                                               event.number, event.pinned, place)));
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

}  // namespace

std::vector<std::byte> encode_event(const Event& event, std::uint64_t place) {
  return std::visit([place](const auto& it) { return encode(it, place); }, event);
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

}  // namespace weft
