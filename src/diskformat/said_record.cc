#include "diskformat/said_record.h"

#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/plain_text.h"
#include "base/sha256.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"
#include "diskformat/rows.h"
#include "weft/names.h"

namespace weft {

template <class F>
void fields(F& f, MirroredRemoval& m) {
  using T = records::SaidRemoval;
  f(T::VT_MODEL, m.model)(T::VT_NUMBER, m.number)(T::VT_TIME_NS, m.time_ns)(T::VT_LOST, m.lost);
}

namespace {

struct SaidTag {
  MirroredTag tag;
  std::string cluster;
};
template <class F>
void fields(F& f, SaidTag& m) {
  using T = records::SaidTag;
  f(T::VT_MODEL, m.tag.model)(T::VT_NAME, m.tag.name)(T::VT_NUMBER, m.tag.number)(T::VT_TIME_NS, m.tag.time_ns);
  f(T::VT_CLUSTER, m.cluster)(T::VT_REVISION, m.tag.revision);
}

constexpr std::size_t kHashDigits = 16;
constexpr std::size_t kClusterMax = 64;  // bytes of an id; a uuid has 36

Error corrupt(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

std::string name_of(std::uint64_t time_ns, std::string_view what, std::string_view ending) {
  const std::string hash = to_hex(sha256(std::as_bytes(std::span(what)))).substr(0, kHashDigits);
  return fmt::format("{:016x}-{}{}", time_ns, hash, ending);
}

std::string name_of(const VersionRow& row, std::string_view /*cluster*/) {
  return name_of(row.time_ns, fmt::format("{}@{}", row.model_name, row.number), "");
}

std::string name_of(const MirroredTag& tag, std::string_view cluster) {
  return name_of(tag.time_ns, fmt::format("{}@{}={} {} {}", tag.model, tag.name, tag.number, cluster, tag.revision),
                 ".tag");
}

std::string name_of(const MirroredRemoval& removal, std::string_view /*cluster*/) {
  return name_of(removal.time_ns, fmt::format("{}@{}", removal.model, removal.number), ".rm");
}

std::vector<std::byte> encode(const VersionRow& row, std::string_view /*cluster*/) {
  return seal_record(RecordKind::version, encode_row(row));
}

std::vector<std::byte> encode(const MirroredTag& tag, std::string_view cluster) {
  return seal_record(RecordKind::said_tag, flat::encode(SaidTag{tag, std::string(cluster)}));
}

std::vector<std::byte> encode(const MirroredRemoval& removal, std::string_view /*cluster*/) {
  return seal_record(RecordKind::said_removal, flat::encode(removal));
}

Status check_subject(std::string_view model, std::uint64_t number, std::string_view where) {
  if (const Status named = check_key_name(model); !named.ok()) return corrupt(where, named.error().message);
  if (number <= limits::kVersionNumberMax) return {};
  return corrupt(where, fmt::format("expected a number up to {}, got {}", limits::kVersionNumberMax, number));
}

Result<SaidRecord> decode_version(std::span<const std::byte> payload, std::string_view where) {
  auto row = decode_row<VersionRow>(payload, where);
  if (!row.ok() || row->number == 0) return corrupt(where, "not a version");
  WEFT_CHECK(check_subject(row->model_name, row->number, where));
  const bool small = row->message.size() <= limits::kMessageMax && row->metrics.size() <= limits::kMetricsMax &&
                     row->parents.size() <= limits::kParentsMax && row->elsewhere.size() <= limits::kParentsMax &&
                     row->logical_bytes <= limits::kVersionBytesMax;
  if (!small) return corrupt(where, "a version of impossible size");
  for (const ParentRef& parent : row->parents) WEFT_CHECK(check_subject(parent.model, parent.number, where));
  return SaidRecord{std::move(*row), {}};
}

Result<SaidRecord> decode_tag(std::span<const std::byte> payload, std::string_view where) {
  SaidTag said;
  if (!flat::decode<records::SaidTag>(payload, said)) return corrupt(where, "not a tag");
  WEFT_CHECK(check_subject(said.tag.model, said.tag.number, where));
  if (const Status named = check_key_tag(said.tag.name); !named.ok()) return corrupt(where, named.error().message);
  if (said.cluster.size() > kClusterMax) return corrupt(where, "a cluster's id that none has");
  return SaidRecord{std::move(said.tag), std::move(said.cluster)};
}

Result<SaidRecord> decode_removal(std::span<const std::byte> payload, std::string_view where) {
  MirroredRemoval removal;
  if (!flat::decode<records::SaidRemoval>(payload, removal) || removal.number == 0)
    return corrupt(where, "not a removal");
  WEFT_CHECK(check_subject(removal.model, removal.number, where));
  if (removal.lost.size() > limits::kMessageMax || !plain_text(removal.lost, TextLines::one))
    return corrupt(where, "a reason of a loss that no weft writes");
  return SaidRecord{std::move(removal), {}};
}

}  // namespace

std::string said_name(const Said& said, std::string_view cluster) {
  return std::visit([cluster](const auto& one) { return name_of(one, cluster); }, said);
}

std::vector<std::byte> encode_said(const Said& said, std::string_view cluster) {
  return std::visit([cluster](const auto& one) { return encode(one, cluster); }, said);
}

Result<SaidRecord> decode_said(std::span<const std::byte> bytes, std::string_view where) {
  if (record_length(bytes) != bytes.size())
    return corrupt(where, fmt::format("bad checksum of a record of {} bytes", bytes.size()));
  const RecordKind kind = record_kind(bytes);
  WEFT_TRY(const std::vector<std::byte> payload, open_record(kind, bytes, where));
  switch (kind) {
    case RecordKind::version:
      return decode_version(payload, where);
    case RecordKind::said_tag:
      return decode_tag(payload, where);
    case RecordKind::said_removal:
      return decode_removal(payload, where);
    default:
      return corrupt(where, fmt::format("expected a version, a tag or a removal, got a record of kind {}",
                                        static_cast<unsigned>(kind)));
  }
}

}  // namespace weft
