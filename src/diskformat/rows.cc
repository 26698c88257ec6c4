#include "diskformat/rows.h"

#include "diskformat/flat.h"

namespace weft {

using flat::Builder;

template <>
RecordKind record_kind_of<StoreInfo>() {
  return RecordKind::identity;
}

template <>
std::vector<std::byte> encode_row(const StoreInfo& info) {
  Builder builder;
  return flat::finish(builder,
                      records::CreateIdentity(builder, info.format, builder.CreateString(info.uuid), info.created_ns));
}

template <>
Result<StoreInfo> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Identity>(payload);
  if (in == nullptr) return flat::bad(where, "not an identity");
  return StoreInfo{in->format(), flat::text(in->uuid()), in->created_ns()};
}

template <>
RecordKind record_kind_of<OriginInfo>() {
  return RecordKind::origin;
}

template <>
std::vector<std::byte> encode_row(const OriginInfo& row) {
  Builder builder;
  auto uuid = builder.CreateString(row.uuid);
  auto cluster = builder.CreateString(row.cluster);
  return flat::finish(builder, records::CreateOrigin(builder, row.format, uuid, cluster, row.created_ns));
}

template <>
Result<OriginInfo> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Origin>(payload);
  if (in == nullptr) return flat::bad(where, "not an origin's identity");
  if (in->format() != kOriginFormat)
    return Error{Errc::unsupported,
                 fmt::format("{}: expected an origin of format {}, got {}: export with the old version, import with "
                             "the new one",
                             where, kOriginFormat, in->format())};
  return OriginInfo{in->format(), flat::text(in->uuid()), flat::text(in->cluster()), in->created_ns()};
}

template <>
RecordKind record_kind_of<ClusterIdentity>() {
  return RecordKind::cluster;
}

template <>
std::vector<std::byte> encode_row(const ClusterIdentity& row) {
  Builder builder;
  auto cluster = builder.CreateString(row.cluster);
  return flat::finish(builder, records::CreateCluster(builder, cluster, builder.CreateString(row.node)));
}

template <>
Result<ClusterIdentity> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Cluster>(payload);
  if (in == nullptr) return flat::bad(where, "not a cluster's identity");
  return ClusterIdentity{flat::text(in->cluster()), flat::text(in->node())};
}

template <>
RecordKind record_kind_of<Counters>() {
  return RecordKind::counters;
}

template <>
std::vector<std::byte> encode_row(const Counters& row) {
  Builder builder;
  return flat::finish(
      builder, records::CreateCounters(builder, row.sequence, row.next_version, row.next_model, row.next_ino,
                                       row.journal_end, row.lineage_clock, row.number_floor, row.registry_revision));
}

template <>
Result<Counters> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Counters>(payload);
  if (in == nullptr) return flat::bad(where, "not counters");
  return Counters{in->sequence(),    in->next_version(),  in->next_model(),   in->next_ino(),
                  in->journal_end(), in->lineage_clock(), in->number_floor(), in->registry_revision()};
}

template <>
RecordKind record_kind_of<ModelRow>() {
  return RecordKind::model;
}

template <>
std::vector<std::byte> encode_row(const ModelRow& row) {
  Builder builder;
  return flat::finish(builder, records::CreateModel(builder, row.id, builder.CreateString(row.name), row.next_number,
                                                    row.latest, row.ino, row.latest_ino, row.created_ns));
}

template <>
Result<ModelRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Model>(payload);
  if (in == nullptr) return flat::bad(where, "not a model");
  return ModelRow{in->id(),  flat::text(in->name()), in->next_number(), in->latest(),
                  in->ino(), in->latest_ino(),       in->created_ns()};
}

template <>
RecordKind record_kind_of<ModelNameRow>() {
  return RecordKind::model_name;
}

template <>
std::vector<std::byte> encode_row(const ModelNameRow& row) {
  Builder builder;
  return flat::finish(builder, records::CreateModelName(builder, builder.CreateString(row.name)));
}

template <>
Result<ModelNameRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::ModelName>(payload);
  if (in == nullptr) return flat::bad(where, "not a model's name");
  return ModelNameRow{flat::text(in->name())};
}

template <>
RecordKind record_kind_of<NameRow>() {
  return RecordKind::name;
}

template <>
std::vector<std::byte> encode_row(const NameRow& row) {
  Builder builder;
  return flat::finish(builder, records::CreateName(builder, row.is_model, row.ino, row.live));
}

template <>
Result<NameRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Name>(payload);
  if (in == nullptr) return flat::bad(where, "not a name");
  return NameRow{in->is_model(), in->ino(), in->live()};
}

template <>
RecordKind record_kind_of<NumberRow>() {
  return RecordKind::number;
}

template <>
std::vector<std::byte> encode_row(const NumberRow& row) {
  Builder builder;
  return flat::finish(builder, records::CreateNumber(builder, row.value));
}

template <>
Result<NumberRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Number>(payload);
  if (in == nullptr) return flat::bad(where, "not a number");
  return NumberRow{in->value()};
}

}  // namespace weft
