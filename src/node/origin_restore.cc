// A store made again from its origin.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "node/origin_copy.h"
#include "node/origin_dir.h"
#include "node/origin_names.h"
#include "store/pack_file.h"
#include "store/restore.h"
#include "weft/manifest.h"
#include "weft/names.h"
#include "weft/node.h"
#include "weft/origin.h"

namespace weft {
namespace {

// What a live version's manifest asks of the store.
struct Needs {
  std::set<PackId> packs;
  std::uint64_t tree_nodes = 0;
  std::uint32_t tree_layout = 0;
};

Status check_agrees(const VersionRow& row, const VersionContent& content) {
  if (content.logical_bytes == row.logical_bytes && content.views.size() == row.tensors) return {};
  return Error{Errc::corrupt, "its record is not as its manifest"};
}

class Restoring {
 public:
  Restoring(OriginDir origin, const RestoreOptions& options, Progress& progress)
      : origin_(std::move(origin)), options_(options), progress_(progress) {}

  Result<RestoreReport> run(const std::string& store_path) {
    WEFT_TRY(names_, read_names(origin_, progress_));
    report_.problems = std::move(names_.problems);
    WEFT_CHECK(look_at_versions());
    WEFT_CHECK(look_at_packs());
    if (refuses()) return report_;
    WEFT_TRY(const StoreRestore store, StoreRestore::begin(store_path, origin_.uuid(), options_.patience));
    WEFT_CHECK(copy_packs(store));
    if (refuses()) return report_;
    WEFT_CHECK(copy_manifests(store));
    WEFT_TRY(const auto problems, store.take(changes(), content_decoder(), progress_));
    report_.problems.insert(report_.problems.end(), problems.begin(), problems.end());
    if (refuses()) return report_;
    WEFT_CHECK(store.finish());
    return report_;
  }

 private:
  bool refuses() {
    report_.refused = !report_.problems.empty() && !options_.accept_loss;
    return report_.refused;
  }
  void tell(std::string problem) { report_.problems.push_back(std::move(problem)); }
  Status check_cancelled() const {
    if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    return {};
  }

  Status look_at_versions();
  Status look_at_packs();
  Status look_at(const VersionRow& row);
  Result<std::set<ContentId>> blobs_of(const Digest& manifest) const;
  void lose(VersionRow& row, std::string_view why);
  Status lose_incomplete();
  Status copy_packs(const StoreRestore& store);
  Status copy_pack_to(const StoreRestore& store, PackToc toc);
  Status copy_manifests(const StoreRestore& store) const;
  std::vector<MirrorChange> changes();

  const OriginDir origin_;
  const RestoreOptions& options_;
  Progress& progress_;
  RestoreReport report_;
  OriginNames names_;
  std::map<Digest, Needs> needs_;
  std::map<ContentId, BlobPlace> places_;
  std::map<PackId, PackToc> packs_;  // with the blobs that are needed
  std::set<ContentId> bad_;          // blobs that are damaged or missing
};

Result<std::set<ContentId>> Restoring::blobs_of(const Digest& manifest) const {
  WEFT_TRY(const auto bytes, origin_.manifest(manifest));
  WEFT_TRY(const Manifest decoded, decode_manifest(bytes));
  std::set<ContentId> blobs;
  for (const File& file : decoded.files)
    for (const Extent& extent : file.extents) blobs.insert(extent.id);
  return blobs;
}

// A tombstone says the most that is still true of a version whose bytes are gone.
void Restoring::lose(VersionRow& row, std::string_view why) {
  tell(fmt::format("{}: {}", spec_of(row.model_name, row.number), why));
  row.removed = true;
  row.removed_ns = now_ns();
}

Status Restoring::look_at(const VersionRow& row) {
  WEFT_TRY(const auto bytes, origin_.manifest(row.manifest));
  WEFT_TRY(const VersionContent content, content_decoder()(bytes));
  WEFT_CHECK(check_agrees(row, content));
  if (needs_.contains(row.manifest)) return {};
  WEFT_TRY(const Places there, origin_.places(row.manifest));
  Needs needs{{}, content.tree_nodes, content.tree_layout};
  for (const auto& file : content.files)
    for (const ContentId& id : file.extents) {
      auto known = places_.find(id);
      if (known == places_.end()) {
        const auto place = there.find(id);
        if (!place || place->pack == 0)
          return Error{Errc::corrupt,
                       fmt::format("it is not said where the {} bytes with digest {} lie", id.length, to_hex(id.root))};
        known = places_.emplace(id, *place).first;
      }
      needs.packs.insert(known->second.pack);
    }
  needs_.emplace(row.manifest, std::move(needs));
  return {};
}

Status Restoring::look_at_versions() {
  progress_.phase("reading manifests");
  for (auto& [name, row] : names_.versions) {
    WEFT_CHECK(check_cancelled());
    if (row.removed) continue;
    const Status looked = look_at(row);
    if (!looked.ok()) lose(row, looked.error().message);
  }
  return {};
}

Status Restoring::look_at_packs() {
  std::map<PackId, std::vector<std::pair<ContentId, std::uint64_t>>> wanted;
  for (const auto& [id, place] : places_) wanted[place.pack].emplace_back(id, place.offset);
  for (auto& [pack, blobs] : wanted) {
    WEFT_CHECK(check_cancelled());
    auto toc = origin_.toc(pack);
    if (!toc.ok()) {
      tell(toc.error().message);
      for (const auto& [id, offset] : blobs) bad_.insert(id);
      continue;
    }
    toc->cached = toc->promoted = false;
    const std::set<std::pair<ContentId, std::uint64_t>> here(blobs.begin(), blobs.end());
    std::erase_if(toc->entries, [&](const PackEntry& entry) { return !here.contains({entry.id, entry.offset}); });
    for (const auto& [id, offset] : blobs)
      if (!lists_blob(*toc, id, offset)) {
        tell(fmt::format("{}: lists no {} bytes with digest {} at {}", toc_path(origin_.path(), pack), id.length,
                         to_hex(id.root), offset));
        bad_.insert(id);
      }
    if (toc->entries.empty()) continue;
    toc->size = toc->entries.back().offset + toc->entries.back().id.length;  // entries are in order, and within bounds
    packs_.emplace(pack, std::move(*toc));
  }
  return lose_incomplete();
}

// Versions that need what is bad.
Status Restoring::lose_incomplete() {
  if (bad_.empty()) return {};
  for (auto& [name, row] : names_.versions) {
    WEFT_CHECK(check_cancelled());
    if (row.removed) continue;
    WEFT_TRY(const auto blobs, blobs_of(row.manifest));
    const auto missing = std::ranges::count_if(blobs, [this](const ContentId& id) { return bad_.contains(id); });
    if (missing != 0) lose(row, fmt::format("{} of its extents are damaged or missing", missing));
  }
  return {};
}

Status Restoring::copy_packs(const StoreRestore& store) {
  std::uint64_t bytes = 0;
  std::set<PackId> needed;
  for (const auto& [pack, toc] : packs_) {
    needed.insert(pack);
    for (const PackEntry& entry : toc.entries) bytes += entry.id.length;
  }
  WEFT_CHECK(store.keep_packs(needed));
  progress_.phase("copying packs");
  progress_.total(bytes);
  for (const auto& [pack, toc] : packs_) WEFT_CHECK(copy_pack_to(store, toc));
  return lose_incomplete();
}

Status Restoring::copy_pack_to(const StoreRestore& store, PackToc toc) {
  std::uint64_t bytes = 0;
  for (const PackEntry& entry : toc.entries) bytes += entry.id.length;
  WEFT_TRY(const bool there, store.has_pack(toc));
  if (there) {
    progress_.advance(bytes);
  } else {
    const std::string where = pack_path(origin_.path(), toc.pack);
    std::vector<ContentId> damaged;
    const auto fd = origin_.open_pack(toc.pack);
    if (!fd.ok()) {
      tell(fd.error().message);
      for (const PackEntry& entry : toc.entries) bad_.insert(entry.id);
      return {};
    }
    const std::string file = store.pack_file();
    WEFT_CHECK(copy_pack(toc, fd->get(), file, progress_, &damaged));
    if (!damaged.empty())
      tell(fmt::format("{}: of {} blobs that versions need {} are damaged", where, toc.entries.size(), damaged.size()));
    bad_.insert(damaged.begin(), damaged.end());
    std::erase_if(toc.entries, [this](const PackEntry& entry) { return bad_.contains(entry.id); });
    bytes = 0;
    for (const PackEntry& entry : toc.entries) bytes += entry.id.length;
    if (toc.entries.empty()) return remove_file(file);
    WEFT_CHECK(store.add_pack(file, toc));
  }
  ++report_.packs;
  report_.bytes += bytes;
  return {};
}

Status Restoring::copy_manifests(const StoreRestore& store) const {
  progress_.phase("copying manifests");
  std::set<Digest> copied;
  for (const auto& [name, row] : names_.versions) {
    if (row.removed || !copied.insert(row.manifest).second) continue;
    WEFT_CHECK(check_cancelled());
    WEFT_TRY(const auto bytes, origin_.manifest(row.manifest));
    WEFT_CHECK(store.add_manifest(row.manifest, bytes));
  }
  return {};
}

std::vector<MirrorChange> Restoring::changes() {
  progress_.phase("making the index");
  std::vector<MirrorChange> changes;
  std::set<PackId> brought;
  std::set<std::string_view> models;
  for (const VersionRow* row : in_order(names_.versions)) {
    models.insert(row->model_name);
    MirroredVersion version{*row, 0, 0, {}, {}};
    ++(row->removed ? report_.removed : report_.versions);
    if (!row->removed) {
      const Needs& needs = needs_.at(row->manifest);
      version.tree_nodes = needs.tree_nodes;
      version.tree_layout = needs.tree_layout;
      for (const PackId pack : needs.packs)
        if (brought.insert(pack).second) version.packs.push_back(pack);
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

}  // namespace

Result<RestoreReport> restore_store(const std::string& origin, const std::string& store, const RestoreOptions& options,
                                    Progress& progress) {
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  return Restoring(std::move(dir), options, progress).run(store);
}

}  // namespace weft
