#include "diskformat/catalog_record.h"

#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/sha256.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "diskformat/uuid.h"
#include "weft/names.h"

namespace weft {

template <class F>
void fields(F& f, MirroredRemoval& m) {
  using T = records::CatalogRemoval;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_TIME_NS, m.time_ns)(T::VT_LOST, m.lost);
  f(T::VT_UID, m.uid);
}

template <class F>
void fields(F& f, MirroredUndelete& m) {
  using T = records::CatalogUndelete;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_TIME_NS, m.time_ns)(T::VT_UID, m.uid);
}

template <class F>
void fields(F& f, MirroredRenumber& m) {
  using T = records::CatalogRenumber;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_TO, m.to)(T::VT_TIME_NS, m.time_ns)(T::VT_UID, m.uid);
}

template <class F>
void fields(F& f, MirroredDescription& m) {
  using T = records::CatalogDescription;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_MESSAGE, m.message)(T::VT_METRICS, m.metrics);
  f(T::VT_TIME_NS, m.time_ns)(T::VT_UID, m.uid);
}

namespace {

struct CatalogTag {
  MirroredTag tag;
  std::string cluster;
};
template <class F>
void fields(F& f, CatalogTag& m) {
  using T = records::CatalogTag;
  f(T::VT_MODEL, m.tag.model)(T::VT_NAME, m.tag.name)(T::VT_NUMBER, m.tag.number)(T::VT_TIME_NS, m.tag.time_ns);
  f(T::VT_CLUSTER, m.cluster)(T::VT_REVISION, m.tag.revision);
  f(T::VT_UID, m.tag.uid)(T::VT_GENERATION, m.tag.generation);
  f.text_if_any(T::VT_USER, m.tag.by.user).text_if_any(T::VT_NODE, m.tag.by.node).text_if_any(T::VT_OWNER, m.tag.owner);
}

constexpr std::size_t kHashDigits = 16;
constexpr std::size_t kClusterMax = 64;  // bytes of an id; a uuid has 36

Error corrupt_record(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

std::string name_of(std::uint64_t time_ns, std::string_view what, std::string_view ending) {
  const std::string hash = to_hex(sha256(std::as_bytes(std::span(what)))).substr(0, kHashDigits);
  return fmt::format("{:016x}-{}{}", time_ns, hash, ending);
}

std::string subject_of(std::string_view model, std::uint64_t number, const Uuid& uid) {
  return fmt::format("{}@{} {}", model, number, uuid_text(uid));
}

std::string name_of(const VersionRow& row, std::string_view /*cluster*/) {
  return name_of(row.time_ns, subject_of(row.model_name, row.number, row.uid), "");
}

std::string name_of(const MirroredTag& tag, std::string_view cluster) {
  return name_of(
      tag.time_ns,
      fmt::format("{}@{}={} {} {} {}", tag.model, tag.name, tag.number, uuid_text(tag.uid), cluster, tag.revision),
      ".tag");
}

std::string name_of(const MirroredRemoval& removal, std::string_view /*cluster*/) {
  return name_of(removal.time_ns, subject_of(removal.model, removal.number, removal.uid), ".rm");
}

std::string name_of(const MirroredDescription& description, std::string_view /*cluster*/) {
  return name_of(description.time_ns, subject_of(description.model, description.number, description.uid), ".note");
}

std::string name_of(const MirroredUndelete& undelete, std::string_view /*cluster*/) {
  return name_of(undelete.time_ns, subject_of(undelete.model, undelete.number, undelete.uid), ".undelete");
}

std::string name_of(const MirroredRenumber& renumber, std::string_view /*cluster*/) {
  return name_of(renumber.time_ns, subject_of(renumber.model, renumber.to, renumber.uid), ".moved");
}

std::vector<std::byte> encode(const VersionRow& row, std::string_view /*cluster*/) {
  return seal_record(RecordKind::version, encode_row(row));
}

std::vector<std::byte> encode(const MirroredTag& tag, std::string_view cluster) {
  return seal_record(RecordKind::catalog_tag, flat::encode(CatalogTag{tag, std::string(cluster)}));
}

std::vector<std::byte> encode(const MirroredRemoval& removal, std::string_view /*cluster*/) {
  return seal_record(RecordKind::catalog_removal, flat::encode(removal));
}

std::vector<std::byte> encode(const MirroredDescription& description, std::string_view /*cluster*/) {
  return seal_record(RecordKind::catalog_description, flat::encode(description));
}

std::vector<std::byte> encode(const MirroredUndelete& undelete, std::string_view /*cluster*/) {
  return seal_record(RecordKind::catalog_undelete, flat::encode(undelete));
}

std::vector<std::byte> encode(const MirroredRenumber& renumber, std::string_view /*cluster*/) {
  return seal_record(RecordKind::catalog_renumber, flat::encode(renumber));
}

Status check_subject(std::string_view model, std::uint64_t number, std::string_view where) {
  if (const Status named = check_key_name(model); !named.ok()) return corrupt_record(where, named.error().message);
  if (number <= limits::kVersionNumberMax) return {};
  return corrupt_record(where, fmt::format("expected a number up to {}, got {}", limits::kVersionNumberMax, number));
}

Result<CatalogRecord> decode_version(std::span<const std::byte> payload, std::string_view where) {
  auto row = decode_row<VersionRow>(payload, where);
  if (!row.ok() || row->number == 0) return corrupt_record(where, "not a version");
  WEFT_CHECK(check_subject(row->model_name, row->number, where));
  const bool small = row->parents.size() <= limits::kParentsMax && row->elsewhere.size() <= limits::kParentsMax &&
                     row->logical_bytes <= limits::kVersionBytesMax;
  if (!small) return corrupt_record(where, "a version of impossible size");
  if (const Status valid = check_description(row->message, row->metrics, row->described_ns); !valid.ok())
    return corrupt_record(where, valid.error().message);
  if (const Status known = check_source(row->source); !known.ok()) return corrupt_record(where, known.error().message);
  if (!can_be_author(row->by)) return corrupt_record(where, "a publisher that no weft writes");
  for (const ParentRef& parent : row->parents) WEFT_CHECK(check_subject(parent.model, parent.number, where));
  return CatalogRecord{std::move(*row), {}};
}

Result<CatalogRecord> decode_tag(std::span<const std::byte> payload, std::string_view where) {
  CatalogTag row;
  if (!flat::decode<records::CatalogTag>(payload, row)) return corrupt_record(where, "not a tag");
  WEFT_CHECK(check_subject(row.tag.model, row.tag.number, where));
  if (const Status named = check_key_tag(row.tag.name); !named.ok())
    return corrupt_record(where, named.error().message);
  if (row.cluster.size() > kClusterMax) return corrupt_record(where, "a cluster's id that none has");
  if (!can_be_author(row.tag.by) || !can_be_author({row.tag.owner}))
    return corrupt_record(where, "an author that no weft writes");
  return CatalogRecord{std::move(row.tag), std::move(row.cluster)};
}

Result<CatalogRecord> decode_removal(std::span<const std::byte> payload, std::string_view where) {
  MirroredRemoval removal;
  if (!flat::decode<records::CatalogRemoval>(payload, removal) || removal.number == 0 ||
      removal.time_ns > limits::kTimeNsMax)
    return corrupt_record(where, "not a removal");
  WEFT_CHECK(check_subject(removal.model, removal.number, where));
  if (removal.lost.size() > limits::kMessageMax || !plain_text(removal.lost, TextLines::one))
    return corrupt_record(where, "a reason of a loss that no weft writes");
  return CatalogRecord{std::move(removal), {}};
}

Result<CatalogRecord> decode_description(std::span<const std::byte> payload, std::string_view where) {
  MirroredDescription description;
  if (!flat::decode<records::CatalogDescription>(payload, description) || description.number == 0 ||
      description.time_ns == 0)
    return corrupt_record(where, "not a message and metrics");
  WEFT_CHECK(check_subject(description.model, description.number, where));
  if (const Status valid = check_description(description.message, description.metrics, description.time_ns);
      !valid.ok())
    return corrupt_record(where, valid.error().message);
  return CatalogRecord{std::move(description), {}};
}

Result<CatalogRecord> decode_undelete(std::span<const std::byte> payload, std::string_view where) {
  MirroredUndelete undelete;
  if (!flat::decode<records::CatalogUndelete>(payload, undelete) || undelete.number == 0 ||
      undelete.time_ns > limits::kTimeNsMax)
    return corrupt_record(where, "not an undelete");
  WEFT_CHECK(check_subject(undelete.model, undelete.number, where));
  return CatalogRecord{std::move(undelete), {}};
}

Result<CatalogRecord> decode_renumber(std::span<const std::byte> payload, std::string_view where) {
  MirroredRenumber renumber;
  if (!flat::decode<records::CatalogRenumber>(payload, renumber) || renumber.number == 0 || renumber.to == 0 ||
      renumber.time_ns > limits::kTimeNsMax)
    return corrupt_record(where, "not a new number");
  WEFT_CHECK(check_subject(renumber.model, renumber.number, where));
  WEFT_CHECK(check_subject(renumber.model, renumber.to, where));
  return CatalogRecord{std::move(renumber), {}};
}

}  // namespace

std::string catalog_event_name(const CatalogEvent& event, std::string_view cluster) {
  return std::visit([cluster](const auto& one) { return name_of(one, cluster); }, event);
}

std::vector<std::byte> encode_catalog_event(const CatalogEvent& event, std::string_view cluster) {
  return std::visit([cluster](const auto& one) { return encode(one, cluster); }, event);
}

Result<CatalogRecord> decode_catalog_event(std::span<const std::byte> bytes, std::string_view where) {
  if (record_length(bytes) != bytes.size())
    return corrupt_record(where, fmt::format("bad checksum of a record of {} bytes", bytes.size()));
  const RecordKind kind = record_kind(bytes);
  WEFT_TRY(const std::vector<std::byte> payload, open_record(kind, bytes, where));
  switch (kind) {
    case RecordKind::version:
      return decode_version(payload, where);
    case RecordKind::catalog_tag:
      return decode_tag(payload, where);
    case RecordKind::catalog_removal:
      return decode_removal(payload, where);
    case RecordKind::catalog_description:
      return decode_description(payload, where);
    case RecordKind::catalog_undelete:
      return decode_undelete(payload, where);
    case RecordKind::catalog_renumber:
      return decode_renumber(payload, where);
    default:
      return corrupt_record(
          where,
          fmt::format(
              "expected a version, a tag, a removal, an undelete, a note or a new number, got a record of kind {}",
              static_cast<unsigned>(kind)));
  }
}

}  // namespace weft
