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
#include "said_generated.h"
#include "weft/names.h"

namespace weft {
namespace {

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
  flat::Builder builder;
  auto model = builder.CreateString(tag.model);
  auto name = builder.CreateString(tag.name);
  auto whose = builder.CreateString(cluster);
  return seal_record(RecordKind::said_tag,
                     flat::finish(builder, records::CreateSaidTag(builder, model, name, tag.number, tag.time_ns, whose,
                                                                  tag.revision)));
}

std::vector<std::byte> encode(const MirroredRemoval& removal, std::string_view /*cluster*/) {
  flat::Builder builder;
  auto model = builder.CreateString(removal.model);
  auto lost = builder.CreateString(removal.lost);
  return seal_record(
      RecordKind::said_removal,
      flat::finish(builder, records::CreateSaidRemoval(builder, model, removal.number, removal.time_ns, lost)));
}

Status check_number(std::uint64_t number, std::string_view where) {
  if (number <= limits::kVersionNumberMax) return {};
  return corrupt(where, fmt::format("expected a number up to {}, got {}", limits::kVersionNumberMax, number));
}

Status check_subject(std::string_view model, std::uint64_t number, std::string_view where) {
  if (const Status named = check_key_name(model); !named.ok()) return corrupt(where, named.error().message);
  return check_number(number, where);
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
  const auto* in = flat::root<records::SaidTag>(payload);
  if (in == nullptr) return corrupt(where, "not a tag");
  MirroredTag tag{flat::text(in->model()), flat::text(in->name()), in->number(), in->time_ns(), in->revision()};
  WEFT_CHECK(check_subject(tag.model, tag.number, where));
  if (const Status named = check_key_tag(tag.name); !named.ok()) return corrupt(where, named.error().message);
  std::string cluster = flat::text(in->cluster());
  if (cluster.size() > kClusterMax) return corrupt(where, "a cluster's id that none has");
  return SaidRecord{std::move(tag), std::move(cluster)};
}

Result<SaidRecord> decode_removal(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::SaidRemoval>(payload);
  if (in == nullptr || in->number() == 0) return corrupt(where, "not a removal");
  MirroredRemoval removal{flat::text(in->model()), in->number(), in->time_ns(), flat::text(in->lost())};
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
