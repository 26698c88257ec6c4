// Writes a bundle.
#include <unistd.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "blobs/open_blobs.h"
#include "bundle/members.h"
#include "bundle/sink.h"
#include "bundle/source.h"
#include "diskformat/uuid.h"
#include "os/sys.h"
#include "weft/model/version_content.h"
#include "weft/names.h"
#include "weft/programs/bundle.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kReadAtOnce = 8 * kDigestChunk;

class Creating {
 public:
  Creating(Store& store, ManifestResolver& resolver, const BundleOptions& options, Progress& progress)
      : store_(store), resolver_(resolver), options_(options), progress_(progress) {}

  Result<BundleReport> run(const std::string& path) {
    progress_.phase("listing versions");
    WEFT_CHECK(choose());
    if (!options_.since.empty()) WEFT_CHECK(leave_out_since());
    WEFT_CHECK(list());
    WEFT_TRY(const auto sink, sink_at(path));
    WEFT_CHECK(write(*sink));
    return report_;
  }

 private:
  Status choose() {
    std::vector<std::string> models;
    const bool several = options_.all || options_.tagged;
    for (const std::string& spec : options_.specs) {
      if (several && spec.find('@') == std::string::npos) {
        WEFT_TRY(const ModelRow model, model_of(store_, spec));
        WEFT_CHECK(choose_of(model));
        continue;
      }
      WEFT_TRY(VersionRow row, version_of(store_, spec));
      add(std::move(row));
    }
    if (several && options_.specs.empty())
      WEFT_CHECK(each_row(store_, list_models(), [&](const ModelRow& model) { return choose_of(model); }));
    if (rows_.empty()) return Error{Errc::not_found, "a bundle: expected at least one version, got none"};
    // Parents come first. Versions of an earlier import have ids in another order, and keep their times.
    std::ranges::sort(rows_, {}, [](const VersionRow& row) { return std::pair(row.time_ns, row.id); });
    return choose_tags();
  }

  Status choose_of(const ModelRow& model) {
    std::set<std::uint64_t> tagged;
    if (!options_.all) {
      WEFT_CHECK(each_row(store_, list_tags(model.id), [&](const TagRow& tag) -> Status {
        tagged.insert(tag.number);
        return {};
      }));
    }
    return each_row(store_, list_versions(model.id), [&](VersionRow row) -> Status {
      if (options_.all || (!row.removed && tagged.contains(row.number))) add(std::move(row));
      return {};
    });
  }

  void add(VersionRow row) {
    if (chosen_.insert(row.id).second) rows_.push_back(std::move(row));
  }

  Status choose_tags() {
    std::set<ModelId> models;
    std::set<VersionName> names;
    for (const VersionRow& row : rows_) names.insert({row.model_name, row.number});
    for (const VersionRow& row : rows_) {
      if (!models.insert(row.model).second) continue;
      WEFT_CHECK(each_row(store_, list_tags(row.model), [&](TagRow tag) -> Status {
        if (names.contains({row.model_name, tag.number}))
          list_.tags.push_back({row.model_name, std::move(tag.name), tag.number, tag.time_ns});
        return {};
      }));
    }
    return {};
  }

  // Leaves out the blobs of all versions that the earlier bundle lists, as far as this store still has their manifests.
  Status leave_out_since() {
    WEFT_TRY(const BundleFiles files, bundle_at(options_.since));
    WEFT_TRY(const auto since, read_bundle_list(files));
    list_.since = since->uuid;
    std::set<Digest> seen;
    for (const BundledVersion& version : since->versions) {
      WEFT_CHECK(check_cancelled(progress_));
      if (!seen.insert(version.row.manifest).second) continue;
      const auto reader = store_.open_manifest(version.row.manifest);
      if (!reader.ok()) continue;
      WEFT_TRY(const VersionContent content, content_decoder()((*reader)->bytes()));
      each_blob(content, [&](const ContentId& id) { listed_.insert(id); });
      manifests_.insert(version.row.manifest);
    }
    return {};
  }

  template <class Visit>
  static void each_blob(const VersionContent& content, const Visit& visit) {
    for (const auto& file : content.files)
      for (const Extent& extent : file.extents) visit(extent.id);
  }

  Status list() {
    list_.uuid = random_uuid();
    list_.created_ns = now_ns();
    for (const VersionRow& row : rows_) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(list(row));
    }
    report_.uuid = list_.uuid;
    report_.tags = list_.tags.size();
    encoded_ = encode_bundle_list(list_);
    if (encoded_.size() <= limits::kBundleListMax && list_.versions.size() <= limits::kBundleVersionsMax) return {};
    return Error{Errc::invalid, fmt::format("a bundle: expected a list of at most {} versions and {} bytes, got {} and "
                                            "{}: make several bundles",
                                            limits::kBundleVersionsMax, limits::kBundleListMax, list_.versions.size(),
                                            encoded_.size())};
  }

  // Of a removed version, only its record is in the bundle.
  Status list(const VersionRow& row) {
    if (row.removed) {
      list_.versions.emplace_back().row = row;
      return {};
    }
    ++report_.versions;
    WEFT_TRY(holds_.emplace_back(), store_.hold_version(row.id));
    WEFT_TRY(const auto reader, manifest_of(store_, resolver_, row));
    WEFT_TRY(const VersionContent content, content_decoder()(reader->bytes()));
    BundledVersion& version = list_.versions.emplace_back();
    version.row = row;
    if (manifests_.insert(row.manifest).second) version.manifest_bytes = reader->bytes().size();
    each_blob(content, [&](const ContentId& id) {
      if (!listed_.insert(id).second) return;
      version.blobs.push_back(id);
      report_.bytes += id.length;
    });
    report_.blobs += version.blobs.size();
    WEFT_TRY(const auto places, open_present_blobs(store_, version.blobs));
    const auto absent = std::ranges::count_if(places, [](const OpenPlace& place) { return place.pack == nullptr; });
    if (absent == 0) return {};
    return Error{Errc::absent, fmt::format("{}: {} of its blobs are not on this node; run `weft prefetch {}` first",
                                           spec_of(row), absent, spec_of(row))};
  }

  Result<std::unique_ptr<BundleSink>> sink_at(const std::string& path) const {
    if (path == "-") return bundle_stream(STDOUT_FILENO, "standard output", list_.created_ns);
    return options_.directory ? bundle_directory(path) : bundle_file(path, list_.created_ns);
  }

  Status write(BundleSink& sink) {
    progress_.phase("writing the bundle");
    progress_.total(report_.bytes);
    WEFT_CHECK(sink.begin(kBundleListName, encoded_.size()));
    WEFT_CHECK(sink.write(encoded_));
    for (const BundleMember& member : members_of(list_)) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_CHECK(sink.begin(member.name, member.size));
      const BundledVersion& version = list_.versions[member.version];
      WEFT_CHECK(member.is_manifest ? write_manifest(sink, version.row) : write_blobs(sink, version));
    }
    progress_.phase("waiting for the disk");
    return sink.finish();
  }

  Status write_manifest(BundleSink& sink, const VersionRow& row) const {
    WEFT_TRY(const auto reader, store_.open_manifest(row.manifest));
    return sink.write(reader->bytes());
  }

  Status write_blobs(BundleSink& sink, const BundledVersion& version) {
    constexpr std::size_t kOpenAtOnce = 1024;
    for (std::size_t first = 0; first < version.blobs.size(); first += kOpenAtOnce) {
      const auto some = std::span(version.blobs).subspan(first, std::min(kOpenAtOnce, version.blobs.size() - first));
      WEFT_TRY(const auto places, open_blobs(store_, some));
      for (std::size_t i = 0; i < some.size(); ++i) WEFT_CHECK(write_blob(sink, version.row, some[i], places[i]));
    }
    return {};
  }

  Status write_blob(BundleSink& sink, const VersionRow& row, const ContentId& id, const OpenPlace& place) {
    std::vector<Digest> chunks;
    for (std::uint64_t at = 0; at < id.length; at += kReadAtOnce) {
      WEFT_CHECK(check_cancelled(progress_));
      buffer_.resize(std::min(kReadAtOnce, id.length - at));
      WEFT_CHECK(read_exact(place.pack->fd(), place.offset + at, buffer_, spec_of(row)));
      std::vector<Digest> some(chunk_count(buffer_.size()));
      sha256_chunks(buffer_, some);
      chunks.insert(chunks.end(), some.begin(), some.end());
      WEFT_CHECK(sink.write(buffer_));
      progress_.advance(buffer_.size());
    }
    if (tree_root(id.length, chunks) == id.root) return {};
    return Error{Errc::corrupt,
                 fmt::format("{}: {} stored bytes are damaged; run `weft fsck`", spec_of(row), id.length)};
  }

  Store& store_;
  ManifestResolver& resolver_;
  const BundleOptions& options_;
  Progress& progress_;
  BundleReport report_;
  BundleList list_;
  std::vector<std::byte> encoded_;
  std::vector<VersionRow> rows_;
  std::set<VersionId> chosen_;
  std::vector<VersionHold> holds_;
  std::set<Digest> manifests_;            // listed here, or in the earlier bundle
  std::unordered_set<ContentId> listed_;  // the same
  std::vector<std::byte> buffer_;
};

}  // namespace

Result<BundleReport> create_bundle(Store& store, ManifestResolver& resolver, const BundleOptions& options,
                                   const std::string& path, Progress& progress) {
  return Creating(store, resolver, options, progress).run(path);
}

}  // namespace weft
