// Restores a store, or a registry, from an origin.
#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "base/sha256.h"
#include "diskformat/toc.h"
#include "diskformat/uuid.h"
#include "origin/blobs.h"
#include "origin/copy.h"
#include "origin/dir.h"
#include "origin/names.h"
#include "weft/cluster/origin.h"
#include "weft/names.h"
#include "weft/programs/operations.h"
#include "weft/store/restore.h"

namespace weft {
namespace {

// The content that a live version's manifest needs.
struct Needs {
  std::vector<const OriginBlobs::Blob*> blobs;  // distinct
  std::uint64_t tree_nodes = 0;
};

Status check_agrees(const VersionRow& row, const VersionContent& content) {
  if (content.logical_bytes == row.logical_bytes && content.views.size() == row.tensors) return {};
  return Error{Errc::corrupt, "its record is not as its manifest"};
}

std::uint64_t bytes_of(const PackToc& toc) {
  std::uint64_t bytes = 0;
  for (const PackEntry& entry : toc.entries) bytes += entry.id.length;
  return bytes;
}

class Restoring {
 public:
  Restoring(OriginDir origin, const RestoreOptions& options, Progress& progress)
      : origin_(std::move(origin)), options_(options), progress_(progress) {}

  Result<RestoreReport> run(const std::string& store_path) {
    WEFT_CHECK(scan());
    if (refuses()) return report_;
    WEFT_TRY(const StoreRestore store, StoreRestore::begin(store_path, origin_.uuid(), options_.patience));
    WEFT_CHECK(copy_packs(store));
    if (refuses()) return report_;
    WEFT_CHECK(copy_manifests(store));
    std::vector<MirrorChange> all = changes();
    for (MirrorChange& change : all)  // the store belongs to no cluster
      if (auto* version = std::get_if<MirroredVersion>(&change)) version->version.publisher.clear();
    WEFT_TRY(const auto problems, store.take(all, content_decoder(), progress_));
    report_.problems.insert(report_.problems.end(), problems.begin(), problems.end());
    if (refuses()) return report_;
    WEFT_CHECK(store.finish());
    tell_mended();
    return report_;
  }

  Result<OriginRegistry> registry(Publishers publishers) {
    skips_incomplete_ = publishers == Publishers::as_published;
    WEFT_CHECK(scan());
    if (refuses()) return OriginRegistry{{}, report_};
    OriginRegistry out{changes(), {}};
    std::erase_if(out.changes, [this](const MirrorChange& change) {
      const auto* version = std::get_if<MirroredVersion>(&change);
      return version != nullptr && skipped_.contains(version->version.uid);
    });
    for (MirrorChange& change : out.changes)
      if (auto* version = std::get_if<MirroredVersion>(&change)) {
        version->packs.clear();
        const bool keeps = publishers == Publishers::as_published && !version->version.publisher.empty();
        if (!keeps) version->version.publisher = publisher();
        if (version->version.removed) version->tree_nodes = 1;  // a registry requires one; it stays unused
      }
    tell_mended();
    out.report = report_;
    return out;
  }

 private:
  bool refuses() {
    report_.refused = !report_.problems.empty() && !options_.accept_loss;
    return report_.refused;
  }
  void tell(std::string problem) { report_.problems.push_back(std::move(problem)); }

  Status scan() {
    WEFT_TRY(names_, read_names(origin_, progress_));
    report_.problems = std::move(names_.problems);
    WEFT_CHECK(scan_versions());
    WEFT_CHECK(blobs_.search(progress_));
    return lose_incomplete();
  }

  void tell_mended() {
    report_.mended = std::move(names_.mended);
    for (std::string& mended : blobs_.mended()) report_.mended.push_back(std::move(mended));
  }

  // Returns the origin's id in the form of a node id. No node has this id.
  std::string publisher() const {
    const Digest digest = sha256(std::as_bytes(std::span(origin_.uuid())));
    Uuid uuid;
    static_assert(sizeof uuid <= sizeof digest.bytes);
    std::memcpy(&uuid, digest.bytes.data(), sizeof uuid);
    return uuid_text(uuid);
  }

  Status scan_versions() {
    progress_.phase("reading manifests");
    for (auto& [name, row] : names_.versions) {
      WEFT_CHECK(check_cancelled(progress_));
      if (row.removed) continue;
      const Status scanned = scan_version(row);
      if (!scanned.ok()) lose(row, scanned.error().message);
    }
    return {};
  }

  Status scan_version(const VersionRow& row) {
    WEFT_TRY(const auto bytes, origin_.manifest(row.manifest));
    WEFT_TRY(const VersionContent content, content_decoder()(bytes));
    WEFT_CHECK(check_agrees(row, content));
    if (!needs_.contains(row.manifest)) needs_.emplace(row.manifest, needs_of(row.manifest, content));
    return {};
  }

  Needs needs_of(const Digest& manifest, const VersionContent& content) {
    Needs needs{{}, content.tree_nodes};
    const auto said = origin_.places(manifest);
    std::vector<ContentId> unsaid;
    for (const auto& file : content.files)
      for (const Extent& extent : file.extents) {
        const auto place = said.ok() ? said->find(extent.id) : std::nullopt;
        if (!place) unsaid.push_back(extent.id);
        needs.blobs.push_back(blobs_.want(extent.id, place));
      }
    if (!unsaid.empty())
      blobs_.fault(said.ok() ? fmt::format("places of manifest {}: {} of its blobs are not among them",
                                           to_hex(manifest), unsaid.size())
                             : said.error().message,
                   std::move(unsaid));
    std::ranges::sort(needs.blobs);
    needs.blobs.erase(std::unique(needs.blobs.begin(), needs.blobs.end()), needs.blobs.end());
    return needs;
  }

  // Turns a version whose bytes are lost into a tombstone, which keeps everything else that is known of it.
  void lose(VersionRow& row, std::string_view why) {
    row.removed = true;
    row.removed_ns = now_ns();
    if (skips_incomplete_) {
      skipped_.insert(row.uid);
      return;
    }
    tell(fmt::format("{}: {}", spec_of(row.model_name, row.number), why));
  }

  // Turns versions into tombstones if they need blobs that no pack has intact.
  Status lose_incomplete() {
    const auto losses = blobs_.take_losses();
    if (losses.empty()) return {};
    if (!skips_incomplete_)
      for (const std::string& loss : losses) tell(loss);
    for (auto& [name, row] : names_.versions) {
      WEFT_CHECK(check_cancelled(progress_));
      if (row.removed) continue;
      const auto& blobs = needs_.at(row.manifest).blobs;
      const auto missing = std::ranges::count_if(blobs, [](const auto* blob) { return blob->second.lost; });
      if (missing != 0) lose(row, fmt::format("{} of its extents are damaged or missing", missing));
    }
    return {};
  }

  // Copies packs until all blobs are copied. If a blob is damaged in one pack, another pack is copied with more blobs.
  Status copy_packs(const StoreRestore& store) {
    std::uint64_t bytes = 0;
    std::set<PackId> grown = blobs_.take_grown();
    for (const PackId pack : grown) bytes += bytes_of(blobs_.packs().at(pack));
    WEFT_CHECK(store.keep_packs(grown));
    progress_.phase("copying packs");
    progress_.total(bytes);
    for (; !grown.empty(); grown = blobs_.take_grown()) {
      for (const PackId pack : grown) WEFT_CHECK(copy_pack_to(store, blobs_.packs().at(pack)));
      WEFT_CHECK(blobs_.search(progress_));
    }
    count_packs();
    return lose_incomplete();
  }

  Status copy_pack_to(const StoreRestore& store, PackToc toc) {
    WEFT_TRY(const bool there, store.has_pack(toc));
    if (there) {
      progress_.advance(bytes_of(toc));
      return {};
    }
    std::vector<ContentId> damaged;
    const auto fd = origin_.open_pack(toc.pack);
    if (!fd.ok()) {
      for (const PackEntry& entry : toc.entries) damaged.push_back(entry.id);
      blobs_.not_whole(toc.pack, fd.error().message, damaged);
      return {};
    }
    const SafePath file = store.pack_file();
    WEFT_CHECK(copy_pack(toc, fd->get(), file, progress_, &damaged));
    if (!damaged.empty()) {
      blobs_.not_whole(toc.pack,
                       fmt::format("{}: of {} blobs that versions need {} are damaged",
                                   origin_pack_name(origin_.path(), toc.pack), toc.entries.size(), damaged.size()),
                       damaged);
      toc.entries = blobs_.packs().at(toc.pack).entries;
    }
    return toc.entries.empty() ? remove_file(file) : store.add_pack(file, toc);
  }

  void count_packs() {
    for (const auto& [pack, toc] : blobs_.packs()) {
      if (!toc.entries.empty()) ++report_.packs;
      report_.bytes += bytes_of(toc);
    }
  }

  Status copy_manifests(const StoreRestore& store) const {
    progress_.phase("copying manifests");
    std::set<Digest> copied;
    for (const auto& [name, row] : names_.versions) {
      if (row.removed || !copied.insert(row.manifest).second) continue;
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_TRY(const auto bytes, origin_.manifest(row.manifest));
      WEFT_CHECK(store.add_manifest(row.manifest, bytes));
    }
    return {};
  }

  std::vector<MirrorChange> changes() {
    progress_.phase("making the index");
    std::vector<MirrorChange> changes;
    std::set<PackId> brought;
    std::set<std::string_view> models;
    for (const VersionRow* row : in_order(names_.versions)) {
      models.insert(row->model_name);
      MirroredVersion version;
      version.version = *row;
      ++(row->removed ? report_.removed : report_.versions);
      if (!row->removed) {
        const Needs& needs = needs_.at(row->manifest);
        version.tree_nodes = needs.tree_nodes;
        for (const auto* blob : needs.blobs)
          if (brought.insert(blob->second.pack).second) version.packs.push_back(blob->second.pack);
      }
      changes.emplace_back(std::move(version));
    }
    for (MirroredTag& tag : names_.tags) {
      if (names_.versions.at({tag.model, tag.number}).removed) continue;
      ++report_.tags;
      changes.emplace_back(std::move(tag));
    }
    report_.models = models.size();
    return changes;
  }

  const OriginDir origin_;
  const RestoreOptions& options_;
  Progress& progress_;
  RestoreReport report_;
  OriginNames names_;
  std::map<Digest, Needs> needs_;
  bool skips_incomplete_ = false;  // another node may have the bytes of such versions
  std::set<Uuid> skipped_;
  OriginBlobs blobs_{origin_};
};

}  // namespace

Result<RestoreReport> restore_store(const std::string& origin, const std::string& store, const RestoreOptions& options,
                                    Progress& progress) {
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  return Restoring(std::move(dir), options, progress).run(store);
}

Result<OriginRegistry> registry_at_origin(const std::string& origin, bool accept_loss, Publishers publishers,
                                          Progress& progress) {
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  const RestoreOptions options{accept_loss, {}};
  return Restoring(std::move(dir), options, progress).registry(publishers);
}

Status take_over_origin(const std::string& origin, std::string_view cluster) {
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  return dir.take_over(cluster);
}

}  // namespace weft
