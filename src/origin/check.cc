#include "origin/check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "diskformat/catalog_record.h"
#include "origin/deletions.h"
#include "origin/pack_repair.h"
#include "os/sys.h"
#include "weft/model/manifest.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr std::size_t kLinesMax = 200;  // of problems, and of repairs

class OriginCheck {
 public:
  OriginCheck(OriginDir origin, CollectionOrder& order, RepairSource* source, Progress& progress)
      : origin_(std::move(origin)), order_(order), source_(source), progress_(progress) {}

  Result<OriginFsckReport> run() {
    WEFT_TRY(directory_, origin_.directory());
    WEFT_TRY(const std::vector<VersionRow> rows, order_.versions());
    for (const VersionRow& row : rows)
      if (!row.removed) live_.try_emplace(row.manifest, row);
    WEFT_CHECK(check_manifests());
    WEFT_CHECK(check_places());
    WEFT_CHECK(find_unplaced());
    WEFT_CHECK(check_packs());
    WEFT_CHECK(place_again());
    WEFT_CHECK(check_journal(rows));
    return report_;
  }

 private:
  void add_problem(std::string line) {
    ++report_.damaged;
    if (report_.problems.size() < kLinesMax) report_.problems.push_back(std::move(line));
  }
  // Records a fault, and whether it was repaired. Only a cancel ends the check.
  Status record(std::string fault, const std::optional<Status>& repaired) {
    if (repaired && !repaired->ok() && repaired->error().code == Errc::cancelled) return *repaired;
    if (!repaired) return add_problem(std::move(fault)), Status{};
    if (!repaired->ok())
      return add_problem(fmt::format("{}; not repaired: {}", fault, repaired->error().message)), Status{};
    ++report_.damaged;
    if (report_.repaired.size() < kLinesMax) report_.repaired.push_back(std::move(fault));
    return {};
  }

  // Reads all manifests. A damaged one of a live version is written again.
  Status check_manifests() {
    progress_.phase("reading manifests");
    WEFT_TRY(const auto names, list_manifest_names(directory_ / "manifests"));
    for (const ManifestName& name : names) {
      WEFT_CHECK(check_cancelled(progress_));
      const SafePath path = directory_ / "manifests" / text_of(name);
      const auto bytes = read_file(path, limits::kManifestMax);
      ++report_.manifests;
      if (!bytes.ok() && bytes.error().code == Errc::not_found) continue;  // freed meanwhile
      present_.insert(name.digest);
      if (bytes.ok() && sha256(*bytes) == name.digest) continue;
      std::optional<Status> repaired;
      if (source_ != nullptr) repaired = write_manifest(name.digest, path);
      WEFT_CHECK(record(
          bytes.ok() ? fmt::format("{}: its bytes do not match the digest in its name", path) : bytes.error().message,
          repaired));
    }
    return {};
  }

  Status write_manifest(const Digest& digest, const SafePath& path) {
    const auto row = live_.find(digest);
    if (row == live_.end()) return Error{Errc::not_found, "no live version has it; `weft gc --origin` frees it"};
    WEFT_TRY(const auto bytes, order_.manifest(row->second));
    if (sha256(bytes) != digest) return Error{Errc::corrupt, "the manifest of this node is damaged too"};
    return replace_at_origin(directory_, path, bytes);
  }

  // Reads the places of all live versions.
  Status check_places() {
    progress_.phase("reading places");
    for (const auto& [digest, row] : live_) {
      WEFT_CHECK(check_cancelled(progress_));
      const auto places = origin_.places(digest);
      const bool missing = !places.ok() && places.error().code == Errc::not_found;
      if (missing && !present_.contains(digest)) {
        ++report_.waiting;
        waiting_.insert(digest);
        continue;
      }
      ++report_.versions;
      if (!places.ok()) {
        unplaced_.emplace(digest, places.error().message);
        continue;
      }
      for (const auto& [id, place] : places->blobs) needed_[place.pack].emplace_back(id, place.offset);
      if (!present_.contains(digest)) {
        std::optional<Status> repaired;
        if (source_ != nullptr)
          repaired =
              write_manifest(digest, directory_ / "manifests" / text_of({digest, origin_.freed().names_of(digest)}));
        WEFT_CHECK(record(fmt::format("{}: its manifest is not at the origin", spec_of(row)), repaired));
      }
    }
    return {};
  }

  Status check_packs() {
    progress_.phase("reading packs");
    WEFT_TRY(const auto listed, origin_.packs());
    std::set<PackId> packs(listed.begin(), listed.end());
    for (const auto& [pack, blobs] : needed_) packs.insert(pack);
    for (const PackId pack : packs) {
      auto& needed = needed_[pack];
      std::ranges::sort(needed);
      needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
      OriginPack one(directory_, pack, std::move(needed));
      WEFT_TRY(auto fault, one.check(progress_));
      ++report_.packs;
      report_.bytes_read += one.bytes_read();
      progress_.advance(one.bytes_read());
      if (!fault || !is_needed_now(pack)) continue;
      std::optional<Status> repaired;
      if (source_ != nullptr) repaired = repair_pack(pack, one);
      WEFT_CHECK(record(*std::move(fault), repaired));
    }
    return {};
  }

  // False if a collection has listed the pack, and no places lead to it now: the collection may have deleted it since
  // this check read the places. In doubt true.
  bool is_needed_now(PackId pack) {
    if (!origin_.know_freed(0).ok() || !origin_.freed().has_pack(pack) || !unplaced_.empty()) return true;
    return std::ranges::any_of(live_, [&](const auto& one) {
      const auto places = origin_.places(one.first);
      if (!places.ok()) return places.error().code != Errc::not_found;
      return std::ranges::any_of(places->blobs, [&](const auto& blob) { return blob.second.pack == pack; });
    });
  }

  // Finds the blobs of versions without places in the tables of contents, so that a repair of packs keeps them.
  Status find_unplaced() {
    for (const auto& [digest, fault] : unplaced_) {
      WEFT_CHECK(check_cancelled(progress_));
      auto bytes = origin_.manifest(digest);
      if (!bytes.ok()) bytes = order_.manifest(live_.at(digest));
      const auto manifest = bytes.ok() ? decode_manifest(*bytes) : Result<Manifest>(bytes.error());
      if (!manifest.ok()) {
        unlocated_ = true;
        continue;
      }
      Places& places = found_[digest];
      places.manifest = digest;
      std::set<ContentId> ids;
      for (const File& file : manifest->files)
        for (const Extent& extent : file.extents) ids.insert(extent.id);
      for (const ContentId& id : ids) {
        places.blobs.emplace_back(id, BlobPlace{});
        wanted_.try_emplace(id);
      }
    }
    if (wanted_.empty()) return {};
    WEFT_CHECK(locate());
    for (const auto& [id, place] : wanted_)
      if (place)
        needed_[place->pack].emplace_back(id, place->offset);
      else
        unlocated_ = true;
    return {};
  }

  Status locate() {
    WEFT_TRY(const auto packs, origin_.packs());
    for (const PackId pack : packs) {
      WEFT_CHECK(check_cancelled(progress_));
      const auto toc = origin_.toc(pack);
      if (!toc.ok() || origin_.freed().has_pack(pack)) continue;
      for (const PackEntry& entry : toc->entries)
        if (const auto at = wanted_.find(entry.id); at != wanted_.end()) at->second = BlobPlace{pack, entry.offset};
    }
    return {};
  }

  // A pack without its table of contents may have the blobs of a version that no other file locates.
  Status repair_pack(PackId pack, OriginPack& one) {
    if (unlocated_ && !origin_.toc(pack).ok())
      return Error{Errc::busy, "a live version has blobs that no table of contents locates; this pack may have them"};
    return one.repair(*source_, progress_);
  }

  Status place_again() {
    for (const auto& [digest, fault] : unplaced_) {
      std::optional<Status> repaired;
      if (source_ != nullptr) repaired = write_places(digest);
      WEFT_CHECK(record(fault, repaired));
    }
    return {};
  }

  Status write_places(const Digest& digest) {
    const auto at = found_.find(digest);
    if (at == found_.end()) return Error{Errc::not_found, "its manifest is damaged or missing too"};
    for (auto& [id, place] : at->second.blobs) {
      const auto& now = wanted_.at(id);
      if (!now)
        return Error{Errc::not_found, fmt::format("no pack of the origin lists the {} bytes with digest {}", id.length,
                                                  to_hex(id.root))};
      place = *now;
    }
    const std::string name = text_of({digest, origin_.freed().names_of(digest)});
    return replace_at_origin(directory_, directory_ / "places" / name, encode_places(at->second));
  }

  // Reads all records. A node that knows the changes writes damaged and missing ones again.
  Status check_journal(const std::vector<VersionRow>& rows) {
    progress_.phase("reading the journal");
    WEFT_TRY(const auto names, origin_.events());
    std::map<std::string, std::string> faults;
    for (const std::string& name : names) {
      WEFT_CHECK(check_cancelled(progress_));
      if (name.starts_with('.')) continue;  // NFS keeps deleted open files as .nfs*
      ++report_.records;
      const auto record = origin_.event(name);
      const std::string path = fmt::format("{}/journal/{}", origin_.path(), printable(name));
      if (!record.ok())
        faults.emplace(name, record.error().message);
      else if (const std::string expected = catalog_event_name(record->event, record->cluster); expected != name)
        faults.emplace(name, fmt::format("{}: expected a record named {}", path, expected));
    }
    const std::set<std::string> present(names.begin(), names.end());
    for (const VersionRow& row : rows) {
      std::string name = catalog_event_name(row, {});
      if (!row.removed && !present.contains(name) && lacks_record(row, name))
        faults.emplace(std::move(name), fmt::format("{}: its record is not in the origin's journal", spec_of(row)));
    }
    std::set<std::string> repaired;
    if (source_ != nullptr && !faults.empty()) WEFT_CHECK(write_records(faults, repaired));
    for (auto& [name, fault] : faults) {
      std::optional<Status> done;
      if (source_ != nullptr)
        done = repaired.contains(name) ? Status{} : Error{Errc::not_found, "this node does not know the change"};
      WEFT_CHECK(record(std::move(fault), done));
    }
    return {};
  }

  // A writer puts the record after the content, perhaps since the journal was listed. A version that was not at the
  // origin when this check began still waits for its record.
  bool lacks_record(const VersionRow& row, const std::string& name) const {
    if (waiting_.contains(row.manifest) || !origin_.holds(row.manifest)) return false;
    const auto record = origin_.event(name);
    return !record.ok() && record.error().code == Errc::not_found;
  }

  Status write_records(const std::map<std::string, std::string>& faults, std::set<std::string>& repaired) {
    for (std::uint64_t from = 0;;) {
      WEFT_CHECK(check_cancelled(progress_));
      WEFT_TRY(const CatalogEvents batch, source_->events(from));
      for (const CatalogEvent& event : batch.events) {
        const std::string name = catalog_event_name(event, origin_.cluster());
        if (!faults.contains(name) || !repaired.insert(name).second) continue;
        WEFT_CHECK(replace_at_origin(directory_, directory_ / "journal" / name,
                                     encode_catalog_event(event, origin_.cluster())));
      }
      if (batch.end <= from) return {};
      from = batch.end;
    }
  }

  OriginDir origin_;
  SafePath directory_;
  CollectionOrder& order_;
  RepairSource* const source_;
  Progress& progress_;
  OriginFsckReport report_;
  std::map<Digest, VersionRow> live_;            // one live version of each manifest
  std::set<Digest> present_;                     // manifests at the origin
  std::set<Digest> waiting_;                     // of live versions that were not at the origin when the check began
  std::map<PackId, OriginPack::Needed> needed_;  // blobs of live versions
  std::map<Digest, Places> found_;               // manifests of unplaced_ with their blobs
  std::map<ContentId, std::optional<BlobPlace>> wanted_;  // these blobs, and where tables of contents have them
  bool unlocated_ = false;                  // some blobs of unplaced_ are not known, or in no table of contents
  std::map<Digest, std::string> unplaced_;  // live versions whose places are damaged or missing, and the fault
};

}  // namespace

Result<OriginFsckReport> check_origin_files(OriginDir origin, CollectionOrder& order, RepairSource* source,
                                            Progress& progress) {
  return OriginCheck(std::move(origin), order, source, progress).run();
}

}  // namespace weft
