#include "registry/registry_records.h"

#include <fmt/core.h>

#include <algorithm>

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

namespace wire = registry_records;

template <class F>
void fields(F& f, RegistryMeta& m) {
  f(wire::Meta::VT_FORMAT, m.format)(wire::Meta::VT_CLUSTER, m.cluster)(wire::Meta::VT_CREATED_NS, m.created_ns);
  f(wire::Meta::VT_GENERATION, m.generation).text_if_any(wire::Meta::VT_LOST, m.lost);
}

// A kind is stored as its number and 1.
template <class F>
void fields(F& f, RegistryHead& m) {
  auto kind = static_cast<std::uint8_t>(m.kind ? 1 + static_cast<int>(*m.kind) : 0);
  f(wire::Head::VT_NEXT_NUMBER, m.next_number)(wire::Head::VT_CREATED_NS, m.created_ns)(wire::Head::VT_KIND, kind);
  if constexpr (F::kReads)
    if (kind != 0) m.kind = static_cast<VersionKind>(kind - 1);
}

template <class F>
void fields(F& f, MirroredVersion& m) {
  using T = wire::Version;
  VersionRow& row = m.version;
  f(T::VT_MANIFEST, row.manifest)(T::VT_TIME_NS, row.time_ns)(T::VT_LOGICAL_BYTES, row.logical_bytes);
  f(T::VT_MESSAGE, row.message)(T::VT_METRICS, row.metrics)(T::VT_PARENTS, row.parents)(T::VT_ELSEWHERE, row.elsewhere);
  f(T::VT_TENSORS, row.tensors)(T::VT_TENSOR_BYTES, row.tensor_bytes)(T::VT_TREE_NODES, m.tree_nodes);
  f(T::VT_PUBLISHER, row.publisher)(T::VT_PACKS, m.packs).dataset(T::VT_DATASET, row.kind);
  f(T::VT_DESCRIBED_NS, row.described_ns)(T::VT_UNDELETED_NS, row.undeleted_ns)(T::VT_PUBLISHED_AT, m.published_at);
  f(T::VT_UID, row.uid)(T::VT_RETURNED, m.returned);
  if (F::kReads || !m.former.empty()) f(T::VT_FORMER, m.former);
  f.table_if_any(T::VT_SOURCE, row.source);
  f.text_if_any(T::VT_USER, row.by.user).text_if_any(T::VT_NODE, row.by.node);
}

template <class F>
void fields(F& f, RegistryTombstone& m) {
  using T = wire::Tombstone;
  VersionRow& row = m.version.version;
  f.table(T::VT_VERSION, m.version)(T::VT_REMOVED_NS, row.removed_ns)(T::VT_REVISION, m.revision)(T::VT_LOST, row.lost);
  f.text_if_any(T::VT_USER, m.version.removed_by.user).text_if_any(T::VT_NODE, m.version.removed_by.node);
  f(T::VT_TAGS, m.version.tags)(T::VT_GENERATION, m.version.at.generation);
}

template <class F>
void fields(F& f, RegistryTag& m) {
  using T = wire::Tag;
  f(T::VT_NUMBER, m.number)(T::VT_TIME_NS, m.time_ns)(T::VT_UID, m.uid);
  f(T::VT_GENERATION, m.generation)(T::VT_CHANGED_AT, m.changed_at);
  f.text_if_any(T::VT_USER, m.by.user).text_if_any(T::VT_NODE, m.by.node).text_if_any(T::VT_OWNER, m.owner);
}

template <class F>
void fields(F& f, RegistryMoment& m) {
  f(wire::Moment::VT_TIME_NS, m.time_ns)(wire::Moment::VT_UID, m.uid);
}

template <class F>
void fields(F& f, RegistryPurge& m) {
  using T = wire::Purge;
  f(T::VT_TIME_NS, m.time_ns)(T::VT_UID, m.uid);
  f.text_if_any(T::VT_USER, m.by.user).text_if_any(T::VT_NODE, m.by.node);
}

template <class F>
void fields(F& f, RefusedChange& m) {
  using T = wire::Refused;
  f(T::VT_MODEL, m.model)(T::VT_UID, m.uid)(T::VT_WHY, m.why).text_if_any(T::VT_TAG, m.tag);
  f(T::VT_PURGE, m.purge);
}

template <class F>
void fields(F& f, RegistryShare& m) {
  f(wire::Share::VT_GENERATION, m.generation)(wire::Share::VT_REFUSED, m.refused)(wire::Share::VT_OTHERS, m.others);
}

template <class F>
void fields(F& f, Member& m) {
  using T = wire::Member;
  f(T::VT_NAME, m.name)(T::VT_ADDRESS, m.address)(T::VT_PROVIDER, m.provider)(T::VT_SINCE_NS, m.since_ns);
  f.text_if_any(T::VT_KEY_PROOF, m.key_proof)(T::VT_PROCESS, m.process)(T::VT_PLACE, m.place);
}

template <class F>
void fields(F& f, KnownNode& m) {
  using T = wire::Node;
  f(T::VT_NAME, m.name)(T::VT_ADDRESS, m.address)(T::VT_FIRST_NS, m.first_ns)(T::VT_LAST_NS, m.last_ns);
  f(T::VT_DRAINED_NS, m.drained_ns);
}

template <class F>
void fields(F& f, ClaimHolder& m) {
  using T = wire::Claim;
  f(T::VT_NODE, m.node)(T::VT_NAME, m.name)(T::VT_SINCE_NS, m.since_ns);
}

template <class F>
void fields(F& f, OriginCollection& m) {
  using T = wire::Collection;
  f(T::VT_ORIGIN, m.origin)(T::VT_SEQUENCE, m.sequence)(T::VT_HORIZON_NS, m.horizon_ns);
}

template <class F>
void fields(F& f, MirrorMark& m) {
  using T = wire::Mark;
  f(T::VT_GENERATION, m.generation)(T::VT_KNOWN, m.known)(T::VT_REVISION, m.revision)(T::VT_VALUE, m.value);
}

namespace {

constexpr std::string_view kMarkName = "mark";  // instead of a key: the mirror's mark is bound to this

std::uint64_t seed_of(std::string_view bound) {
  return xxh3_64(std::as_bytes(std::span(bound)));
}

template <class Value>
std::vector<std::byte> seal_as(RecordKind kind, const Value& value, std::string_view bound) {
  return seal_record(kind, flat::encode(value), seed_of(bound));
}

Error refused_record(std::string_view bound, std::string_view why) {
  return Error{Errc::corrupt, fmt::format("registry key {}: {}", printable(bound), why)};
}

template <class Table, class Value>
Result<Value> open(RecordKind kind, std::span<const std::byte> bytes, std::string_view bound) {
  auto payload = open_record(kind, bytes, fmt::format("registry key {}", printable(bound)), seed_of(bound));
  if (!payload.ok() && payload.error().code == Errc::unsupported) return std::move(payload).error();
  if (!payload.ok()) return refused_record(bound, fmt::format("its value of {} bytes does not verify", bytes.size()));
  Value value;
  if (!flat::decode<Table>(*payload, value))
    return refused_record(bound, "its value is not of the type that its key requires");
  return value;
}

std::string fault_of(const VersionRow& row) {
  if (!parse_uuid(row.publisher) || !can_be_author(row.by)) return "its publisher";
  if (row.uid.empty()) return "its identity";
  if (const Status described = check_description(row.message, row.metrics, row.described_ns); !described.ok())
    return described.error().message;
  if (const Status source = check_source(row.source); !source.ok()) return source.error().message;
  if (row.parents.size() > limits::kParentsMax || row.elsewhere.size() > limits::kParentsMax) return "its parents";
  for (const ParentRef& parent : row.parents)
    if (!check_model_name(parent.model).ok() || parent.number == 0 || parent.number > limits::kVersionNumberMax)
      return "a parent";
  for (const std::string& name : row.elsewhere)
    if (name.size() > limits::kBaseNameMax || !plain_text(name, TextLines::one)) return "a parent that is elsewhere";
  if (row.logical_bytes > limits::kVersionBytesMax || row.tensor_bytes > limits::kVersionBytesMax) return "its size";
  if (row.removed_ns > limits::kTimeNsMax || row.undeleted_ns > limits::kTimeNsMax) return "a time";
  return {};
}

bool is_number(std::uint64_t number) {
  return number > 0 && number <= limits::kVersionNumberMax;
}

// Checks a version from the registry, and removes the ids of parents, which are local to a store.
Status admit(MirroredVersion& version, std::string_view bound) {
  for (ParentRef& parent : version.version.parents) parent.id = 0;
  std::string fault = fault_of(version.version);
  if (fault.empty() && (version.tree_nodes == 0 || version.tree_nodes > limits::kTreeNodesMax))
    fault = "the size of its tree";
  if (fault.empty() && version.packs.size() > limits::kRegistryPacksMax) fault = "its packs";
  if (fault.empty() &&
      (version.former.size() > limits::kFormerNumbersMax || !std::ranges::all_of(version.former, is_number)))
    fault = "its former numbers";
  if (!fault.empty()) return refused_record(bound, fmt::format("no weft publishes so: {}", fault));
  return {};
}

}  // namespace

std::vector<std::byte> seal(const RegistryMeta& meta, std::string_view bound) {
  return seal_as(RecordKind::registry_meta, meta, bound);
}

std::vector<std::byte> seal(const RegistryHead& head, std::string_view bound) {
  return seal_as(RecordKind::registry_head, head, bound);
}

std::vector<std::byte> seal(const MirroredVersion& version, std::string_view bound) {
  return seal_as(RecordKind::registry_version, version, bound);
}

std::vector<std::byte> seal(const RegistryTombstone& tombstone, std::string_view bound) {
  return seal_as(RecordKind::registry_tombstone, tombstone, bound);
}

std::vector<std::byte> seal(const RegistryTag& tag, std::string_view bound) {
  return seal_as(RecordKind::registry_tag, tag, bound);
}

std::vector<std::byte> seal(const Member& member, std::string_view bound) {
  return seal_as(RecordKind::registry_member, member, bound);
}

std::vector<std::byte> seal(const KnownNode& node, std::string_view bound) {
  return seal_as(RecordKind::registry_node, node, bound);
}

std::vector<std::byte> seal(const ClaimHolder& holder, std::string_view bound) {
  return seal_as(RecordKind::registry_claim, holder, bound);
}

std::vector<std::byte> seal(const OriginCollection& collection, std::string_view bound) {
  return seal_as(RecordKind::registry_collection, collection, bound);
}

std::vector<std::byte> seal(const RegistryMoment& moment, std::string_view bound) {
  return seal_as(RecordKind::registry_moment, moment, bound);
}

std::vector<std::byte> seal(const RegistryPurge& purge, std::string_view bound) {
  return seal_as(RecordKind::registry_purge, purge, bound);
}

std::vector<std::byte> seal(const RegistryShare& share, std::string_view bound) {
  return seal_as(RecordKind::registry_mark, share, bound);
}

Result<RegistryMeta> open_meta(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto meta, (open<wire::Meta, RegistryMeta>(RecordKind::registry_meta, value, bound)));
  if (meta.format != kRegistryFormat)
    return Error{Errc::unsupported, fmt::format("registry key {}: expected a cluster of format {}, got {}: export with "
                                                "the old version, import with the new one",
                                                bound, kRegistryFormat, meta.format)};
  if (!parse_uuid(meta.cluster)) return refused_record(bound, "a cluster without an id");
  if (meta.lost.size() > limits::kMessageMax || !plain_text(meta.lost, TextLines::one))
    return refused_record(bound, "what it has lost");
  return meta;
}

Result<RegistryHead> open_head(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto head, (open<wire::Head, RegistryHead>(RecordKind::registry_head, value, bound)));
  if (!is_number(head.next_number)) return refused_record(bound, fmt::format("a next number of {}", head.next_number));
  if (head.kind && *head.kind > VersionKind::dataset)
    return refused_record(bound, fmt::format("a kind of {}", 1 + static_cast<unsigned>(*head.kind)));
  return head;
}

Result<MirroredVersion> open_version(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto version, (open<wire::Version, MirroredVersion>(RecordKind::registry_version, value, bound)));
  WEFT_CHECK(admit(version, bound));
  return version;
}

Result<RegistryTombstone> open_tombstone(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto tombstone, (open<wire::Tombstone, RegistryTombstone>(RecordKind::registry_tombstone, value, bound)));
  WEFT_CHECK(admit(tombstone.version, bound));
  VersionRow& row = tombstone.version.version;
  row.removed = true;
  if (row.lost.size() > limits::kMessageMax || !plain_text(row.lost, TextLines::one))
    return refused_record(bound, "why it was lost");
  if (!can_be_author(tombstone.version.removed_by)) return refused_record(bound, "who removed it");
  const std::vector<std::string>& tags = tombstone.version.tags;
  if (tags.size() > limits::kRegistryTagsMax ||
      !std::ranges::all_of(tags, [](const std::string& tag) { return check_tag_name(tag).ok(); }))
    return refused_record(bound, "its tags");
  return tombstone;
}

Result<RegistryTag> open_tag(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto tag, (open<wire::Tag, RegistryTag>(RecordKind::registry_tag, value, bound)));
  if (tag.number > limits::kVersionNumberMax)
    return refused_record(bound, fmt::format("a tag of number {}", tag.number));
  if ((tag.number == 0) != tag.uid.empty()) return refused_record(bound, "a tag without its version's identity");
  if (!can_be_author(tag.by) || !can_be_author({tag.owner})) return refused_record(bound, "who set or protected it");
  return tag;
}

Result<RegistryMoment> open_moment(std::span<const std::byte> value, std::string_view bound) {
  return open<wire::Moment, RegistryMoment>(RecordKind::registry_moment, value, bound);
}

Result<RegistryPurge> open_purge(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto purge, (open<wire::Purge, RegistryPurge>(RecordKind::registry_purge, value, bound)));
  if (purge.uid.empty() || purge.time_ns > limits::kTimeNsMax || !can_be_author(purge.by))
    return refused_record(bound, "the facts of a purge are out of bounds");
  return purge;
}

Result<RegistryShare> open_share(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto share, (open<wire::Share, RegistryShare>(RecordKind::registry_mark, value, bound)));
  if (share.refused.size() > kRefusedMax || share.others.size() > kRefusedOthersMax)
    return refused_record(bound, "too many refused changes");
  for (const RefusedChange& refused : share.refused) {
    if (!check_key_name(refused.model).ok() || (!refused.tag.empty() && !check_key_tag(refused.tag).ok()))
      return refused_record(bound, "the name of a refused change");
    if (refused.why.size() > limits::kMessageMax || !plain_text(refused.why, TextLines::one))
      return refused_record(bound, "why a change was refused");
  }
  return share;
}

Result<Member> open_member(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto member, (open<wire::Member, Member>(RecordKind::registry_member, value, bound)));
  for (const std::string* text :
       {&member.name, &member.address, &member.provider, &member.key_proof, &member.process, &member.place})
    if (text->size() > limits::kEndpointAddressMax || !plain_text(*text, TextLines::one))
      return refused_record(bound, "the facts of a member are out of bounds");
  return member;
}

Result<KnownNode> open_node(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto node, (open<wire::Node, KnownNode>(RecordKind::registry_node, value, bound)));
  for (const std::string* text : {&node.name, &node.address})
    if (text->size() > limits::kEndpointAddressMax || !plain_text(*text, TextLines::one))
      return refused_record(bound, "the facts of a node are out of bounds");
  return node;
}

Result<ClaimHolder> open_claim(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto holder, (open<wire::Claim, ClaimHolder>(RecordKind::registry_claim, value, bound)));
  if (!parse_uuid(holder.node)) return refused_record(bound, "the node of a claim has no uuid");
  if (holder.name.size() > limits::kEndpointAddressMax || !plain_text(holder.name, TextLines::one))
    return refused_record(bound, "the name of a claim's node is out of bounds");
  return holder;
}

Result<OriginCollection> open_collection(std::span<const std::byte> value, std::string_view bound) {
  WEFT_TRY(auto collection, (open<wire::Collection, OriginCollection>(RecordKind::registry_collection, value, bound)));
  if (collection.origin.empty() || collection.origin.size() > limits::kNodeIdMax || collection.sequence == 0)
    return refused_record(bound, "a collection without an origin or a sequence");
  if (collection.horizon_ns > limits::kTimeNsMax) return refused_record(bound, "the horizon of a collection");
  return collection;
}

std::vector<std::byte> seal(const MirrorMark& mark) {
  return seal_as(RecordKind::registry_mark, mark, kMarkName);
}

Result<MirrorMark> open_mark(std::span<const std::byte> bytes) {
  return open<wire::Mark, MirrorMark>(RecordKind::registry_mark, bytes, kMarkName);
}

}  // namespace weft
