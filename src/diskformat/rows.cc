#include "diskformat/rows.h"

#include "base/limits.h"
#include "diskformat/flatbuffer_codec.h"

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
  return flat::finish(builder, records::CreateCounters(builder, row.sequence, row.next_version, row.next_model,
                                                       row.next_ino, row.journal_end, row.lineage_clock,
                                                       row.number_floor, row.registry_revision, row.next_blob));
}

template <>
Result<Counters> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Counters>(payload);
  if (in == nullptr) return flat::bad(where, "not counters");
  return Counters{in->sequence(),      in->next_version(), in->next_model(),        in->next_ino(), in->journal_end(),
                  in->lineage_clock(), in->number_floor(), in->registry_revision(), in->next_blob()};
}

template <>
RecordKind record_kind_of<ModelRow>() {
  return RecordKind::model;
}

template <>
std::vector<std::byte> encode_row(const ModelRow& row) {
  Builder builder;
  return flat::finish(
      builder, records::CreateModel(builder, row.id, builder.CreateString(row.name), row.next_number, row.latest,
                                    row.ino, row.latest_ino, row.created_ns, row.changed_ns, row.live, row.tags,
                                    row.kind == VersionKind::dataset));
}

template <>
Result<ModelRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Model>(payload);
  if (in == nullptr) return flat::bad(where, "not a model");
  return ModelRow{in->id(),         flat::text(in->name()), in->next_number(), in->latest(), in->ino(),
                  in->latest_ino(), in->created_ns(),       in->changed_ns(),  in->live(),   in->tags(),
                  in->dataset() ? VersionKind::dataset : VersionKind::model};
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
  return flat::finish(builder, records::CreateName(builder, row.is_model, row.ino, row.live, row.datasets));
}

template <>
Result<NameRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Name>(payload);
  if (in == nullptr) return flat::bad(where, "not a name");
  return NameRow{in->is_model(), in->ino(), in->live(), in->datasets()};
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

using flat::Builder;

template <>
RecordKind record_kind_of<VersionRow>() {
  return RecordKind::version;
}

template <>
std::vector<std::byte> encode_row(const VersionRow& row) {
  Builder builder;
  auto model_name = builder.CreateString(row.model_name);
  auto message = builder.CreateString(row.message);
  auto metrics = flat::pack(builder, row.metrics);
  auto parents = flat::pack(builder, row.parents);
  auto manifest = flat::pack(row.manifest);
  auto elsewhere = flat::pack(builder, row.elsewhere);
  auto publisher = flat::pack_uuid(row.publisher);
  const flat::Offset<flatbuffers::String> lost =
      row.lost.empty() ? flat::Offset<flatbuffers::String>() : builder.CreateString(row.lost);
  return flat::finish(builder, records::CreateVersion(builder, row.id, row.model, model_name, row.number, &manifest,
                                                      row.time_ns, row.logical_bytes, message, metrics, parents,
                                                      row.removed, row.removed_ns, row.tensors, row.tensor_bytes,
                                                      elsewhere, row.born, row.died, flat::pointer(publisher), lost,
                                                      row.kind == VersionKind::dataset));
}

template <>
Result<VersionRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Version>(payload);
  if (in == nullptr || in->manifest() == nullptr) return flat::bad(where, "not a version");
  VersionRow row;
  row.id = in->id();
  row.model = in->model();
  row.model_name = flat::text(in->model_name());
  row.number = in->number();
  row.manifest = flat::unpack(*in->manifest());
  row.time_ns = in->time_ns();
  row.logical_bytes = in->logical_bytes();
  row.message = flat::text(in->message());
  row.metrics = flat::unpack(in->metrics());
  row.parents = flat::unpack(in->parents());
  row.removed = in->removed();
  row.removed_ns = in->removed_ns();
  row.tensors = in->tensors();
  row.tensor_bytes = in->tensor_bytes();
  row.elsewhere = flat::unpack(in->elsewhere());
  row.born = in->born();
  row.died = in->died();
  row.publisher = flat::unpack_uuid(in->publisher());
  row.lost = flat::text(in->lost());
  row.kind = in->dataset() ? VersionKind::dataset : VersionKind::model;
  return row;
}

template <>
RecordKind record_kind_of<TagRow>() {
  return RecordKind::tag;
}

template <>
std::vector<std::byte> encode_row(const TagRow& row) {
  Builder builder;
  return flat::finish(builder,
                      records::CreateTag(builder, builder.CreateString(row.name), row.number, row.ino, row.time_ns));
}

template <>
Result<TagRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Tag>(payload);
  if (in == nullptr) return flat::bad(where, "not a tag");
  return TagRow{flat::text(in->name()), in->number(), in->ino(), in->time_ns()};
}

template <>
RecordKind record_kind_of<LocalRow>() {
  return RecordKind::local;
}

template <>
std::vector<std::byte> encode_row(const LocalRow& row) {
  Builder builder;
  auto inos = builder.CreateVector(row.view_inos);
  auto blobs = flat::pack(builder, row.blobs);
  const auto outline = flat::pack(row.outline);
  return flat::finish(builder, records::CreateLocal(builder, row.ino_base, row.ino_count, inos, &outline, blobs));
}

template <>
Result<LocalRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Local>(payload);
  if (in == nullptr || in->outline() == nullptr) return flat::bad(where, "not a version's local part");
  return LocalRow{in->ino_base(), in->ino_count(), flat::numbers(in->view_inos()), flat::ranges(in->blobs()),
                  flat::unpack(*in->outline())};
}

template <>
RecordKind record_kind_of<BlobRow>() {
  return RecordKind::blob;
}

template <>
std::vector<std::byte> encode_row(const BlobRow& row) {
  Builder builder;
  return flat::finish(builder, records::CreateBlob(builder, row.place.pack, row.place.offset, row.number));
}

template <>
Result<BlobRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Blob>(payload);
  if (in == nullptr) return flat::bad(where, "not a blob");
  return BlobRow{{in->pack(), in->offset()}, in->number()};
}

template <>
RecordKind record_kind_of<ManifestRow>() {
  return RecordKind::manifest;
}

template <>
std::vector<std::byte> encode_row(const ManifestRow& row) {
  Builder builder;
  return flat::finish(builder,
                      records::CreateManifest(builder, row.versions, row.place.pack, row.place.offset, row.length));
}

template <>
Result<ManifestRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Manifest>(payload);
  if (in == nullptr || in->length() > limits::kPackedManifestMax) return flat::bad(where, "not a manifest's place");
  return ManifestRow{in->versions(), {in->pack(), in->offset()}, in->length()};
}

template <>
RecordKind record_kind_of<HintRow>() {
  return RecordKind::hint;
}

template <>
std::vector<std::byte> encode_row(const HintRow& row) {
  Builder builder;
  const auto root = flat::pack(row.root);
  return flat::finish(builder, records::CreateHint(builder, &root));
}

template <>
Result<HintRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Hint>(payload);
  if (in == nullptr || in->root() == nullptr) return flat::bad(where, "not a hint");
  return HintRow{flat::unpack(*in->root())};
}

template <>
RecordKind record_kind_of<InodeRow>() {
  return RecordKind::inode;
}

template <>
std::vector<std::byte> encode_row(const InodeRow& row) {
  Builder builder;
  auto name = builder.CreateString(row.name);
  auto shape = builder.CreateVector(row.view.shape);
  auto descr = builder.CreateString(row.view.descr);
  const ContentId& id = row.view.content;
  records::ContentId content(id.length, flat::pack(id.root));
  return flat::finish(
      builder,
      records::CreateInode(builder, static_cast<std::uint8_t>(row.kind), row.base, row.count, row.model, row.version,
                           name, &content, static_cast<std::uint8_t>(row.view.dtype), shape, descr, row.changed_ns,
                           row.view_links, row.view_versions, row.view_time_ns, row.view_first));
}

template <>
Result<InodeRow> decode_row(std::span<const std::byte> payload, std::string_view where) {
  const auto* in = flat::root<records::Inode>(payload);
  if (in == nullptr || in->content() == nullptr) return flat::bad(where, "not an inode");
  if (in->kind() < static_cast<std::uint8_t>(InodeKind::namespace_dir) ||
      in->kind() > static_cast<std::uint8_t>(InodeKind::view))
    return flat::bad(where, fmt::format("unknown kind of inode {}", in->kind()));
  InodeRow row;
  row.kind = static_cast<InodeKind>(in->kind());
  row.base = in->base();
  row.count = in->count();
  row.model = in->model();
  row.version = in->version();
  row.name = flat::text(in->name());
  const records::ContentId& id = *in->content();
  row.view.content = {id.length(), flat::unpack(id.root())};
  row.view.dtype = static_cast<DType>(in->dtype());
  row.view.shape = flat::numbers(in->shape());
  row.view.descr = flat::text(in->descr());
  row.changed_ns = in->changed_ns();
  row.view_links = in->links();
  row.view_versions = in->versions();
  row.view_time_ns = in->time_ns();
  row.view_first = in->first();
  return row;
}

}  // namespace weft
