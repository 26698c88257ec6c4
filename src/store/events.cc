#include "store/events.h"

#include <algorithm>

#include "store/flat.h"
#include "store/record.h"

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

NamedInodes unpack(const flatbuffers::Vector<flat::Offset<records::NamedInode>>* inodes) {
  NamedInodes out;
  if (inodes == nullptr) return out;
  for (const records::NamedInode* inode : *inodes) out.push_back({flat::text(inode->name()), inode->ino()});
  return out;
}

std::vector<std::byte> encode(const PublishEvent& event) {
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
  return seal_record(
      RecordKind::publish,
      flat::finish(builder,
                   records::CreatePublish(builder, event.sequence, version.id, version.model, model_name,
                                          version.number, &manifest, version.time_ns, version.logical_bytes, message,
                                          metrics, parents, tags, event.model_ino, event.latest_ino, directories,
                                          event.local.tree_layout, event.local.ino_base, event.local.ino_count,
                                          view_inos, packs, version.tensors, version.tensor_bytes, elsewhere)));
}

std::vector<std::byte> encode(const TagsEvent& event) {
  Builder builder;
  std::vector<flat::Offset<records::TagChange>> changes;
  for (const TagChange& change : event.changes)
    changes.push_back(records::CreateTagChange(builder, builder.CreateString(change.name), change.number, change.ino));
  auto list = builder.CreateVector(changes);
  auto model = builder.CreateString(event.model);
  return seal_record(RecordKind::tags,
                     flat::finish(builder, records::CreateTags(builder, event.sequence, model, event.time_ns, list)));
}

std::vector<std::byte> encode(const RemovalEvent& event) {
  Builder builder;
  auto model = builder.CreateString(event.model);
  return seal_record(RecordKind::removal, flat::finish(builder, records::CreateRemoval(builder, event.sequence, model,
                                                                                       event.number, event.time_ns)));
}

// Counters go on after these numbers: none may be near where they would wrap.
bool plausible(const PublishEvent& event) {
  constexpr std::uint64_t kMax = 1ULL << 62U;
  auto small = [](std::uint64_t number) { return number < kMax; };
  auto named = [&small](const NamedInode& inode) { return small(inode.ino); };
  const VersionRow& version = event.version;
  const LocalRow& local = event.local;
  return small(version.id) && small(version.model) && small(version.number) && version.number > 0 &&
         small(event.model_ino) && small(event.latest_ino) && small(local.ino_base) && small(local.ino_count) &&
         std::all_of(local.view_inos.begin(), local.view_inos.end(), small) &&
         std::all_of(event.tags.begin(), event.tags.end(), named) &&
         std::all_of(event.directories.begin(), event.directories.end(), named);
}

Result<Event> decode_publish(std::span<const std::byte> payload, std::string_view where) {
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
  event.tags = unpack(in->tags());
  event.model_ino = in->model_ino();
  event.latest_ino = in->latest_ino();
  event.directories = unpack(in->directories());
  event.local = {in->tree_layout(), in->ino_base(), in->ino_count(), flat::numbers(in->view_inos())};
  event.packs = flat::numbers(in->packs());
  if (!plausible(event)) return flat::bad(where, "a publish of impossible numbers");
  return Event(std::move(event));
}

Result<Event> decode_tags(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Tags>(payload);
  if (in == nullptr) return flat::bad(where, "not a change of tags");
  TagsEvent event{in->sequence(), flat::text(in->model_name()), in->time_ns(), {}};
  if (in->changes() != nullptr)
    for (const records::TagChange* change : *in->changes())
      event.changes.push_back({flat::text(change->name()), change->number(), change->ino()});
  return Event(std::move(event));
}

Result<Event> decode_removal(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Removal>(payload);
  if (in == nullptr) return flat::bad(where, "not a removal");
  return Event(RemovalEvent{in->sequence(), flat::text(in->model_name()), in->number(), in->time_ns()});
}

}  // namespace

std::vector<std::byte> encode_event(const Event& event) {
  return std::visit([](const auto& it) { return encode(it); }, event);
}

Result<Event> decode_event(std::span<const std::byte> record, std::string_view where) {
  RecordKind kind = record_kind(record);
  WEFT_TRY(std::vector<std::byte> payload, open_record(kind, record, where));
  switch (kind) {
    case RecordKind::publish:
      return decode_publish(payload, where);
    case RecordKind::tags:
      return decode_tags(payload, where);
    case RecordKind::removal:
      return decode_removal(payload, where);
    default:
      return Error{Errc::corrupt, fmt::format("{}: no event has record kind {}", where, static_cast<unsigned>(kind))};
  }
}

std::uint64_t event_sequence(const Event& event) {
  return std::visit([](const auto& it) { return it.sequence; }, event);
}

}  // namespace weft
