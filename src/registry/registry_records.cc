#include "registry/registry_records.h"

#include <fmt/core.h>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/hash.h"
#include "diskformat/record.h"
#include "diskformat/uuid.h"
#include "registry_generated.h"
#include "weft/names.h"

namespace weft {
namespace {

namespace wire = registry_records;

constexpr std::string_view kMarkName = "mark";  // instead of a key: the mirror's mark is bound to this

std::uint64_t seed_of(std::string_view bound) {
  return xxh3_64(std::as_bytes(std::span(bound)));
}

template <class Table>
std::vector<std::byte> finish(flat::Builder& builder, flat::Offset<Table> root, RecordKind kind,
                              std::string_view bound) {
  return seal_record(kind, flat::finish(builder, root), seed_of(bound));
}

Error refused(std::string_view bound, std::string_view why) {
  return Error{Errc::corrupt, fmt::format("registry key {}: {}", printable(bound), why)};
}

// An opened value. `payload` owns the memory of `table`.
template <class Table>
struct Opened {
  std::vector<std::byte> payload;
  const Table* table = nullptr;
};

template <class Table>
Result<Opened<Table>> open(RecordKind kind, std::span<const std::byte> value, std::string_view bound) {
  auto payload = open_record(kind, value, fmt::format("registry key {}", printable(bound)), seed_of(bound));
  if (!payload.ok() && payload.error().code == Errc::unsupported) return std::move(payload).error();
  if (!payload.ok()) return refused(bound, fmt::format("its value of {} bytes does not verify", value.size()));
  Opened<Table> opened{std::move(payload).value(), nullptr};
  opened.table = flat::root<Table>(opened.payload);
  if (opened.table == nullptr) return refused(bound, "its value is not of the type that its key requires");
  return opened;
}

flat::Offset<wire::Version> pack(flat::Builder& builder, const MirroredVersion& version) {
  const VersionRow& row = version.version;
  auto message = builder.CreateString(row.message);
  auto metrics = flat::pack(builder, row.metrics);
  auto parents = flat::pack(builder, row.parents);
  auto elsewhere = flat::pack(builder, row.elsewhere);
  auto publisher = builder.CreateString(row.publisher);
  auto packs = builder.CreateVector(version.packs);
  records::Digest manifest = flat::pack(row.manifest);
  return wire::CreateVersion(builder, &manifest, row.time_ns, row.logical_bytes, message, metrics, parents, elsewhere,
                             row.tensors, row.tensor_bytes, version.tree_nodes, publisher, packs,
                             row.kind == VersionKind::dataset);
}

std::string fault_of(const VersionRow& row) {
  if (!parse_uuid(row.publisher)) return "its publisher";
  if (row.message.size() > limits::kMessageMax || !plain_text(row.message, TextLines::many)) return "its message";
  if (row.metrics.size() > limits::kMetricsMax) return "its metrics";
  for (const auto& [key, value] : row.metrics)
    if (key.size() > limits::kMetricTextMax || value.size() > limits::kMetricTextMax ||
        !plain_text(key, TextLines::one) || !plain_text(value, TextLines::one))
      return "a metric";
  if (row.parents.size() > limits::kParentsMax || row.elsewhere.size() > limits::kParentsMax) return "its parents";
  for (const ParentRef& parent : row.parents)
    if (!check_model_name(parent.model).ok() || parent.number == 0 || parent.number > limits::kVersionNumberMax)
      return "a parent";
  for (const std::string& name : row.elsewhere)
    if (name.size() > limits::kBaseNameMax || !plain_text(name, TextLines::one)) return "a parent that is elsewhere";
  if (row.logical_bytes > limits::kVersionBytesMax || row.tensor_bytes > limits::kVersionBytesMax) return "its size";
  return {};
}

Result<MirroredVersion> unpack(const wire::Version& table, std::string_view bound) {
  if (table.manifest() == nullptr) return refused(bound, "a version without a manifest");
  MirroredVersion version;
  VersionRow& row = version.version;
  row.manifest = flat::unpack(*table.manifest());
  row.time_ns = table.time_ns();
  row.logical_bytes = table.logical_bytes();
  row.message = flat::text(table.message());
  row.metrics = flat::unpack(table.metrics());
  row.parents = flat::unpack(table.parents());
  row.elsewhere = flat::unpack(table.elsewhere());
  row.tensors = table.tensors();
  row.tensor_bytes = table.tensor_bytes();
  row.kind = table.dataset() ? VersionKind::dataset : VersionKind::model;
  for (ParentRef& parent : row.parents) parent.id = 0;  // ids are local to a store
  version.tree_nodes = table.tree_nodes();
  version.packs = flat::numbers(table.packs());
  row.publisher = flat::text(table.publisher());
  std::string fault = fault_of(row);
  if (fault.empty() && (version.tree_nodes == 0 || version.tree_nodes > limits::kTreeNodesMax))
    fault = "the size of its tree";
  if (fault.empty() && version.packs.size() > limits::kRegistryPacksMax) fault = "its packs";
  if (!fault.empty()) return refused(bound, fmt::format("no weft publishes so: {}", fault));
  return version;
}

bool is_number(std::uint64_t number) {
  return number > 0 && number <= limits::kVersionNumberMax;
}

}  // namespace

std::vector<std::byte> seal(const RegistryMeta& meta, std::string_view bound) {
  flat::Builder builder;
  auto cluster = builder.CreateString(meta.cluster);
  return finish(builder, wire::CreateMeta(builder, meta.format, cluster, meta.created_ns), RecordKind::registry_meta,
                bound);
}

std::vector<std::byte> seal(const RegistryHead& head, std::string_view bound) {
  const auto kind = static_cast<std::uint8_t>(head.kind ? 1 + static_cast<int>(*head.kind) : 0);
  flat::Builder builder;
  return finish(builder, wire::CreateHead(builder, head.next_number, head.created_ns, kind), RecordKind::registry_head,
                bound);
}

std::vector<std::byte> seal(const MirroredVersion& version, std::string_view bound) {
  flat::Builder builder;
  return finish(builder, pack(builder, version), RecordKind::registry_version, bound);
}

std::vector<std::byte> seal(const RegistryTombstone& tombstone, std::string_view bound) {
  flat::Builder builder;
  auto version = pack(builder, tombstone.version);
  auto lost = builder.CreateString(tombstone.version.version.lost);
  auto root = wire::CreateTombstone(builder, version, tombstone.version.version.removed_ns, tombstone.revision, lost);
  return finish(builder, root, RecordKind::registry_tombstone, bound);
}

std::vector<std::byte> seal(const RegistryTag& tag, std::string_view bound) {
  flat::Builder builder;
  return finish(builder, wire::CreateTag(builder, tag.number, tag.time_ns), RecordKind::registry_tag, bound);
}

std::vector<std::byte> seal(const Member& member, std::string_view bound) {
  flat::Builder builder;
  auto name = builder.CreateString(member.name);
  auto address = builder.CreateString(member.address);
  auto provider = builder.CreateString(member.provider);
  return finish(builder, wire::CreateMember(builder, name, address, provider, member.since_ns),
                RecordKind::registry_member, bound);
}

std::vector<std::byte> seal_moment(std::uint64_t time_ns, std::string_view bound) {
  flat::Builder builder;
  return finish(builder, wire::CreateMoment(builder, time_ns), RecordKind::registry_moment, bound);
}

Result<RegistryMeta> open_meta(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Meta>(RecordKind::registry_meta, value, bound));
  RegistryMeta meta{opened.table->format(), flat::text(opened.table->cluster()), opened.table->created_ns()};
  if (meta.format != kRegistryFormat)
    return Error{Errc::unsupported, fmt::format("registry key {}: expected a cluster of format {}, got {}: export with "
                                                "the old version, import with the new one",
                                                bound, kRegistryFormat, meta.format)};
  if (!parse_uuid(meta.cluster)) return refused(bound, "a cluster without an id");
  return meta;
}

Result<RegistryHead> open_head(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Head>(RecordKind::registry_head, value, bound));
  RegistryHead head{opened.table->next_number(), opened.table->created_ns()};
  if (!is_number(head.next_number)) return refused(bound, fmt::format("a next number of {}", head.next_number));
  const unsigned kind = opened.table->kind();
  if (kind > 2) return refused(bound, fmt::format("a kind of {}", kind));
  if (kind != 0) head.kind = static_cast<VersionKind>(kind - 1);
  return head;
}

Result<MirroredVersion> open_version(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Version>(RecordKind::registry_version, value, bound));
  return unpack(*opened.table, bound);
}

Result<RegistryTombstone> open_tombstone(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Tombstone>(RecordKind::registry_tombstone, value, bound));
  if (opened.table->version() == nullptr) return refused(bound, "a removal of nothing");
  RegistryTombstone tombstone;
  WEFT_TRY(tombstone.version, unpack(*opened.table->version(), bound));
  tombstone.version.version.removed = true;
  tombstone.version.version.removed_ns = opened.table->removed_ns();
  tombstone.revision = opened.table->revision();
  std::string& lost = tombstone.version.version.lost;
  lost = flat::text(opened.table->lost());
  if (lost.size() > limits::kMessageMax || !plain_text(lost, TextLines::one)) return refused(bound, "why it was lost");
  return tombstone;
}

Result<RegistryTag> open_tag(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Tag>(RecordKind::registry_tag, value, bound));
  RegistryTag tag{opened.table->number(), opened.table->time_ns()};
  if (!is_number(tag.number)) return refused(bound, fmt::format("a tag of number {}", tag.number));
  return tag;
}

Result<Member> open_member(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto opened, open<wire::Member>(RecordKind::registry_member, value, bound));
  const wire::Member& table = *opened.table;
  Member member{
      {}, flat::text(table.name()), flat::text(table.address()), flat::text(table.provider()), table.since_ns()};
  for (const std::string* text : {&member.name, &member.address, &member.provider})
    if (text->size() > limits::kEndpointAddressMax || !plain_text(*text, TextLines::one))
      return refused(bound, "the facts of a member are out of bounds");
  return member;
}

std::vector<std::byte> seal(const MirrorMark& mark) {
  flat::Builder builder;
  auto key = builder.CreateString(mark.key);
  std::optional<records::Digest> value;
  if (mark.value) value = flat::pack(*mark.value);
  return finish(builder,
                wire::CreateMark(builder, mark.known, mark.etcd, mark.revision, key, value ? &*value : nullptr),
                RecordKind::registry_mark, kMarkName);
}

Result<MirrorMark> open_mark(std::span<const std::byte> bytes) {
  WEFT_TRY(auto opened, open<wire::Mark>(RecordKind::registry_mark, bytes, kMarkName));
  const wire::Mark& table = *opened.table;
  MirrorMark mark{table.known(), table.etcd(), table.revision(), flat::text(table.key()), std::nullopt};
  if (table.value() != nullptr) mark.value = flat::unpack(*table.value());
  if (mark.key.empty()) return refused(kMarkName, "a mark without a key");
  return mark;
}

}  // namespace weft
