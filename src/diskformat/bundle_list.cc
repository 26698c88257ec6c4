#include "diskformat/bundle_list.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "base/plain_text.h"
#include "diskformat/catalog_record.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"
#include "diskformat/uuid.h"

namespace weft {
namespace {

Error corrupt_list(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> record_in(flat::Builder& builder, const CatalogEvent& event) {
  const std::vector<std::byte> record = encode_catalog_event(event, {});
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(record.data()), record.size());
}

// Decodes a record of one kind.
template <class Row>
Result<Row> row_in(const flatbuffers::Vector<std::uint8_t>* record, std::string_view where) {
  if (record == nullptr) return corrupt_list(where, "expected a record, got none");
  const std::span bytes(reinterpret_cast<const std::byte*>(record->data()), record->size());
  if (bytes.size() > limits::kCatalogEventMax)
    return corrupt_list(
        where, fmt::format("a record: expected at most {} bytes, got {}", limits::kCatalogEventMax, bytes.size()));
  WEFT_TRY(CatalogRecord decoded, decode_catalog_event(bytes, where));
  if (auto* row = std::get_if<Row>(&decoded.event)) return std::move(*row);
  return corrupt_list(where, "a record of another kind");
}

class ListReading {
 public:
  ListReading(const records::Bundle& in, std::string_view where) : in_(in), where_(where) {}

  Result<BundleList> run() {
    WEFT_CHECK(read_heads());
    if (in_.blobs() != nullptr && !lies_aligned<records::ContentId>(*in_.blobs()))
      return corrupt_list(where_, "blobs out of alignment");
    if (in_.versions() != nullptr) {
      if (in_.versions()->size() > limits::kBundleVersionsMax) return too_many("versions", in_.versions()->size());
      for (const records::BundledVersion* version : *in_.versions()) WEFT_CHECK(take(*version));
    }
    if (next_blob_ != blob_count()) return corrupt_list(where_, "blobs of no version");
    if (in_.tags() != nullptr) {
      if (in_.tags()->size() > limits::kBundleVersionsMax) return too_many("tags", in_.tags()->size());
      for (const records::BundledTag* tag : *in_.tags()) WEFT_CHECK(take(*tag));
    }
    return std::move(list_);
  }

 private:
  std::size_t blob_count() const { return in_.blobs() == nullptr ? 0 : in_.blobs()->size(); }

  Error too_many(std::string_view what, std::size_t got) const {
    return corrupt_list(where_, fmt::format("{}: expected at most {}, got {}", what, limits::kBundleVersionsMax, got));
  }

  Status read_heads() {
    if (in_.uuid() == nullptr || !parse_uuid(in_.uuid()->string_view()))
      return corrupt_list(where_, "expected the id of a bundle");
    list_.uuid = in_.uuid()->str();
    if (in_.since() != nullptr) list_.since = in_.since()->str();
    if (!list_.since.empty() && !parse_uuid(list_.since))
      return corrupt_list(where_, "expected the id of an earlier bundle");
    list_.created_ns = in_.created_ns();
    if (list_.created_ns > limits::kTimeNsMax) return corrupt_list(where_, "a time that is none");
    return {};
  }

  Status take(const records::BundledVersion& in) {
    BundledVersion& version = list_.versions.emplace_back();
    WEFT_TRY(version.row, row_in<VersionRow>(in.record(), where_));
    const VersionRow& row = version.row;
    const std::string spec = spec_of(row);
    if (!versions_.emplace(VersionName{row.model_name, row.number}, row.removed).second)
      return corrupt_list(where_, fmt::format("{} is listed twice", spec));
    if (row.uid.empty() || !identities_.insert(row.uid).second)
      return corrupt_list(where_, fmt::format("{}: expected an identity of its own", spec));
    if (std::max({row.time_ns, row.undeleted_ns, row.removed_ns}) > limits::kTimeNsMax)
      return corrupt_list(where_, fmt::format("{}: a time that is none", spec));
    if (std::ranges::any_of(row.parents, [&](const ParentRef& parent) {
          return parent.model == row.model_name && parent.number == row.number;
        }))
      return corrupt_list(where_, fmt::format("{}: it is its own parent", spec));
    if (row.lost.size() > limits::kMessageMax || !plain_text(row.lost, TextLines::one))
      return corrupt_list(where_, fmt::format("{}: a reason of a loss that no weft writes", spec));
    for (const std::string& tag : row.removed_tags)
      if (const Status named = check_key_tag(tag); !named.ok()) return corrupt_list(where_, named.error().message);
    version.manifest_bytes = in.manifest_bytes();
    if (version.manifest_bytes > limits::kManifestMax)
      return corrupt_list(where_, fmt::format("{}: its manifest: expected at most {} bytes, got {}", spec,
                                              limits::kManifestMax, version.manifest_bytes));
    if (version.manifest_bytes != 0 && !manifests_.insert(row.manifest).second)
      return corrupt_list(where_, fmt::format("{}: its manifest is listed twice", spec));
    if (row.removed && (version.manifest_bytes != 0 || in.blobs() != 0))
      return corrupt_list(where_, fmt::format("{}: content of a removed version", spec));
    return take_blobs(in.blobs(), version, spec);
  }

  Status take_blobs(std::uint64_t count, BundledVersion& version, std::string_view spec) {
    if (count > blob_count() - next_blob_)
      return corrupt_list(where_,
                          fmt::format("{}: expected at most {} blobs, got {}", spec, blob_count() - next_blob_, count));
    version.blobs.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i, ++next_blob_) {
      const auto at = static_cast<flatbuffers::uoffset_t>(next_blob_);
      const auto id = std::bit_cast<ContentId>(*in_.blobs()->Get(at));
      if (id.length == 0 || id.length > limits::kVersionBytesMax || bytes_ > limits::kBundleBytesMax - id.length)
        return corrupt_list(where_, fmt::format("{}: a blob of {} bytes", spec, id.length));
      if (!blobs_.insert(id).second) return corrupt_list(where_, fmt::format("{}: a blob is listed twice", spec));
      bytes_ += id.length;
      version.blobs.push_back(id);
    }
    return {};
  }

  Status take(const records::BundledTag& in) {
    WEFT_TRY(MirroredTag tag, row_in<MirroredTag>(in.record(), where_));
    const auto version = versions_.find({tag.model, tag.number});
    if (version == versions_.end() || version->second)
      return corrupt_list(where_, fmt::format("tag {} of {}: expected a version of the list", tag.name,
                                              spec_of(tag.model, tag.number)));
    if (!tags_.emplace(tag.model, tag.name).second)
      return corrupt_list(where_, fmt::format("tag {} of {} is listed twice", tag.name, tag.model));
    list_.tags.push_back(std::move(tag));
    return {};
  }

  const records::Bundle& in_;
  const std::string_view where_;
  BundleList list_;
  std::map<VersionName, bool> versions_;  // true: removed
  std::set<Uuid> identities_;
  std::set<Digest> manifests_;
  std::unordered_set<ContentId> blobs_;
  std::set<std::pair<std::string, std::string>> tags_;  // model and tag
  std::size_t next_blob_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::vector<std::byte> encode_bundle_list(const BundleList& list) {
  flat::Builder builder;
  std::vector<flatbuffers::Offset<records::BundledVersion>> versions;
  std::vector<records::ContentId> blobs;
  for (const BundledVersion& version : list.versions) {
    const auto record = record_in(builder, version.row);
    versions.push_back(records::CreateBundledVersion(builder, record, version.manifest_bytes, version.blobs.size()));
    for (const ContentId& id : version.blobs) blobs.push_back(std::bit_cast<records::ContentId>(id));
  }
  std::vector<flatbuffers::Offset<records::BundledTag>> tags;
  for (const MirroredTag& tag : list.tags) tags.push_back(records::CreateBundledTag(builder, record_in(builder, tag)));
  const auto uuid = builder.CreateString(list.uuid);
  const auto since = builder.CreateString(list.since);
  const auto version_list = builder.CreateVector(versions);
  const auto tag_list = builder.CreateVector(tags);
  const auto blob_list = builder.CreateVectorOfStructs(blobs);
  return seal_record(RecordKind::bundle,
                     flat::finish(builder, records::CreateBundle(builder, kBundleFormat, uuid, since, list.created_ns,
                                                                 version_list, tag_list, blob_list)));
}

Result<BundleList> decode_bundle_list(std::span<const std::byte> bytes, std::string_view where) {
  WEFT_TRY(const std::vector<std::byte> payload, open_record(RecordKind::bundle, bytes, where));
  const auto* in = flat::root<records::Bundle>(payload);
  if (in == nullptr) return corrupt_list(where, "not the list of a bundle");
  if (in->format() != kBundleFormat)
    return Error{Errc::unsupported,
                 fmt::format("{}: expected a bundle of format {}, got {}", where, kBundleFormat, in->format())};
  return ListReading(*in, where).run();
}

}  // namespace weft
