#include "diskformat/rows.h"

#include "base/limits.h"
#include "diskformat/flatbuffer_codec.h"

namespace weft {

template <class F>
void fields(F& f, StoreInfo& m) {
  using T = records::Identity;
  f(T::VT_FORMAT, m.format)(T::VT_UUID, m.uuid)(T::VT_CREATED_NS, m.created_ns);
}

template <class F>
void fields(F& f, OriginInfo& m) {
  using T = records::Origin;
  f(T::VT_FORMAT, m.format)(T::VT_UUID, m.uuid)(T::VT_CLUSTER, m.cluster)(T::VT_CREATED_NS, m.created_ns);
}

template <class F>
void fields(F& f, ClusterIdentity& m) {
  f(records::Cluster::VT_CLUSTER, m.cluster)(records::Cluster::VT_NODE, m.node);
}

template <class F>
void fields(F& f, Counters& m) {
  using T = records::Counters;
  f(T::VT_SEQUENCE, m.sequence)(T::VT_NEXT_VERSION, m.next_version)(T::VT_NEXT_MODEL, m.next_model);
  f(T::VT_NEXT_INO, m.next_ino)(T::VT_JOURNAL_END, m.journal_end)(T::VT_LINEAGE_CLOCK, m.lineage_clock);
  f(T::VT_NUMBER_FLOOR, m.number_floor)(T::VT_REGISTRY_REVISION, m.registry_revision)(T::VT_NEXT_BLOB, m.next_blob);
  f(T::VT_LAST_RENAME, m.last_rename);
}

template <class F>
void fields(F& f, ModelRow& m) {
  using T = records::Model;
  f(T::VT_ID, m.id)(T::VT_NAME, m.name)(T::VT_NEXT_NUMBER, m.next_number)(T::VT_LATEST, m.latest)(T::VT_INO, m.ino);
  f(T::VT_LATEST_INO, m.latest_ino)(T::VT_CREATED_NS, m.created_ns)(T::VT_CHANGED_NS, m.changed_ns);
  f(T::VT_LIVE, m.live)(T::VT_TAGS, m.tags)(T::VT_FIRST_NUMBER, m.first_number).dataset(T::VT_DATASET, m.kind);
}

template <class F>
void fields(F& f, ModelNameRow& m) {
  using T = records::ModelName;
  f(T::VT_NAME, m.name)(T::VT_RENAMED, m.renamed)(T::VT_RENAMED_NS, m.renamed_ns);
}

template <class F>
void fields(F& f, FormerNameRow& m) {
  f(records::FormerName::VT_MODEL, m.model)(records::FormerName::VT_NEXT_NUMBER, m.next_number);
}

template <class F>
void fields(F& f, NameRow& m) {
  using T = records::Name;
  f(T::VT_IS_MODEL, m.is_model)(T::VT_INO, m.ino)(T::VT_LIVE, m.live)(T::VT_DATASETS, m.datasets);
}

template <class F>
void fields(F& f, NumberRow& m) {
  f(records::Number::VT_VALUE, m.value);
}

template <class F>
void fields(F& f, VersionRow& m) {
  using T = records::Version;
  f(T::VT_ID, m.id)(T::VT_MODEL, m.model)(T::VT_MODEL_NAME, m.model_name)(T::VT_NUMBER, m.number);
  f(T::VT_MANIFEST, m.manifest)(T::VT_TIME_NS, m.time_ns)(T::VT_LOGICAL_BYTES, m.logical_bytes);
  f(T::VT_MESSAGE, m.message)(T::VT_METRICS, m.metrics)(T::VT_PARENTS, m.parents)(T::VT_REMOVED, m.removed);
  f(T::VT_REMOVED_NS, m.removed_ns)(T::VT_TENSORS, m.tensors)(T::VT_TENSOR_BYTES, m.tensor_bytes);
  f(T::VT_ELSEWHERE, m.elsewhere)(T::VT_BORN, m.born)(T::VT_DIED, m.died).uuid(T::VT_PUBLISHER, m.publisher);
  f.text_if_any(T::VT_LOST, m.lost).table_if_any(T::VT_SOURCE, m.source).dataset(T::VT_DATASET, m.kind);
  f(T::VT_DESCRIBED_NS, m.described_ns)(T::VT_DESCRIBED, m.described);
  f(T::VT_UNDELETED_NS, m.undeleted_ns)(T::VT_UNDELETED, m.undeleted);
  f(T::VT_UID, m.uid);
  if (F::kReads || !m.removed_tags.empty()) f(T::VT_REMOVED_TAGS, m.removed_tags);
  f.text_if_any(T::VT_USER, m.by.user).text_if_any(T::VT_NODE, m.by.node);
}

template <class F>
void fields(F& f, TagRow& m) {
  using T = records::Tag;
  f(T::VT_NAME, m.name)(T::VT_NUMBER, m.number)(T::VT_INO, m.ino)(T::VT_TIME_NS, m.time_ns);
  f(T::VT_REVISION, m.stamp.revision)(T::VT_GENERATION, m.stamp.generation);
  f.text_if_any(T::VT_OWNER, m.owner);
}

template <class F>
void fields(F& f, TagMove& m) {
  using T = records::TagMove;
  f(T::VT_NAME, m.name)(T::VT_BEFORE, m.before)(T::VT_NUMBER, m.number)(T::VT_TIME_NS, m.time_ns);
  f(T::VT_REVISION, m.stamp.revision)(T::VT_GENERATION, m.stamp.generation);
  f.text_if_any(T::VT_USER, m.by.user).text_if_any(T::VT_NODE, m.by.node);
}

template <class F>
void fields(F& f, LocalRow& m) {
  using T = records::Local;
  f(T::VT_INO_BASE, m.ino_base)(T::VT_INO_COUNT, m.ino_count)(T::VT_VIEW_INOS, m.view_inos);
  f(T::VT_OUTLINE, m.outline)(T::VT_BLOBS, m.blobs);
}

template <class F>
void fields(F& f, BlobRow& m) {
  using T = records::Blob;
  f(T::VT_PACK, m.place.pack)(T::VT_OFFSET, m.place.offset)(T::VT_NUMBER, m.number);
}

template <class F>
void fields(F& f, ManifestRow& m) {
  using T = records::Manifest;
  f(T::VT_VERSIONS, m.versions)(T::VT_PACK, m.place.pack)(T::VT_OFFSET, m.place.offset)(T::VT_LENGTH, m.length);
}

template <class F>
void fields(F& f, HintRow& m) {
  f(records::Hint::VT_ROOT, m.root);
}

template <class F>
void fields(F& f, InodeRow& m) {
  using T = records::Inode;
  f(T::VT_KIND, m.kind)(T::VT_BASE, m.base)(T::VT_COUNT, m.count)(T::VT_MODEL, m.model)(T::VT_VERSION, m.version);
  f(T::VT_NAME, m.name)(T::VT_CONTENT, m.view.content)(T::VT_DTYPE, m.view.dtype)(T::VT_SHAPE, m.view.shape);
  f(T::VT_DESCR, m.view.descr)(T::VT_CHANGED_NS, m.changed_ns)(T::VT_LINKS, m.view_links);
  f(T::VT_VERSIONS, m.view_versions)(T::VT_TIME_NS, m.view_time_ns)(T::VT_FIRST, m.view_first);
}

namespace {

template <class Row>
Status check(const Row& /*row*/, std::string_view /*where*/) {
  return {};
}

Status check(const OriginInfo& row, std::string_view where) {
  if (row.format == kOriginFormat) return {};
  return Error{Errc::unsupported,
               fmt::format("{}: expected an origin of format {}, got {}: export with the old version, import with the "
                           "new one",
                           where, kOriginFormat, row.format)};
}

Status check(const ManifestRow& row, std::string_view where) {
  if (row.length <= limits::kPackedManifestMax) return {};
  return flat::bad(where, "not a manifest's place");
}

Status check(const InodeRow& row, std::string_view where) {
  if (row.kind >= InodeKind::namespace_dir && row.kind <= InodeKind::view) return {};
  return flat::bad(where, fmt::format("unknown kind of inode {}", static_cast<unsigned>(row.kind)));
}

}  // namespace

// The table that stores a row, the kind of its record, and the fault of bytes that are none.
template <class Row>
struct StoredRow;

template <class Row>
RecordKind record_kind_of() {
  return StoredRow<Row>::kKind;
}

template <class Row>
std::vector<std::byte> encode_row(const Row& row) {
  return flat::encode(row);
}

template <class Row>
Result<Row> decode_row(std::span<const std::byte> payload, std::string_view where) {
  Row row;
  if (!flat::decode<typename StoredRow<Row>::Table>(payload, row)) return flat::bad(where, StoredRow<Row>::kNot);
  WEFT_CHECK(check(row, where));
  return row;
}

#define WEFT_ROW(Row, Of, kind, no)                           \
  template <>                                                 \
  struct StoredRow<Row> {                                     \
    using Table = records::Of;                                \
    static constexpr RecordKind kKind = RecordKind::kind;     \
    static constexpr std::string_view kNot = no;              \
  };                                                          \
  template RecordKind record_kind_of<Row>();                  \
  template std::vector<std::byte> encode_row(const Row& row); \
  template Result<Row> decode_row(std::span<const std::byte> payload, std::string_view where);
WEFT_ROW(StoreInfo, Identity, identity, "not an identity")
WEFT_ROW(OriginInfo, Origin, origin, "not an origin's identity")
WEFT_ROW(ClusterIdentity, Cluster, cluster, "not a cluster's identity")
WEFT_ROW(Counters, Counters, counters, "not counters")
WEFT_ROW(ModelRow, Model, model, "not a model")
WEFT_ROW(ModelNameRow, ModelName, model_name, "not a model's name")
WEFT_ROW(FormerNameRow, FormerName, former_name, "not a former name")
WEFT_ROW(NameRow, Name, name, "not a name")
WEFT_ROW(NumberRow, Number, number, "not a number")
WEFT_ROW(VersionRow, Version, version, "not a version")
WEFT_ROW(TagRow, Tag, tag, "not a tag")
WEFT_ROW(TagMove, TagMove, tag_move, "not a change of a tag")
WEFT_ROW(LocalRow, Local, local, "not a version's local part")
WEFT_ROW(BlobRow, Blob, blob, "not a blob")
WEFT_ROW(HintRow, Hint, hint, "not a hint")
WEFT_ROW(ManifestRow, Manifest, manifest, "not a manifest's place")
WEFT_ROW(InodeRow, Inode, inode, "not an inode")
#undef WEFT_ROW

}  // namespace weft
