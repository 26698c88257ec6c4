#include "repair/rebuild_packs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include <fmt/core.h>

#include "base/thread_pool.h"
#include "catalog/apply.h"
#include "diskformat/pack_names.h"
#include "index/manifests.h"
#include "os/sys.h"
#include "packs/blob_check.h"
#include "packs/manifest_packs.h"
#include "repair/rescue.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Limits of one transaction. Its changed pages stay in memory until the commit, and each blob changes a few pages.
constexpr std::size_t kPacksMax = 1000;
constexpr std::size_t kBlobsMax = 8192;

// A pack that does not match its table of contents: there is none, or the pack is shorter or has other bytes.
struct Suspect {
  PackToc toc;        // the table of contents as stored; empty if it is unreadable
  bool mute = false;  // the table of contents is unreadable
};

// Returns `before` with those entries only that fit into the pack and overlap no entry of `now`.
PackToc rest_of(const PackToc& before, const PackToc& now) {
  PackToc rest = before;
  std::erase_if(rest.entries, [&now](const PackEntry& entry) {
    return entry.offset > now.size || entry.id.length > now.size - entry.offset ||
           overlaps_any(now.entries, {entry.offset, entry.id.length});
  });
  return rest;
}

bool has_all(const PackToc& toc, const PackToc& of) {
  return std::ranges::all_of(of.entries,
                             [&toc](const PackEntry& entry) { return lists_blob(toc, entry.id, entry.offset); });
}

PackToc with_entries(PackToc toc, const std::vector<PackEntry>& more) {
  toc.entries.insert(toc.entries.end(), more.begin(), more.end());
  std::ranges::sort(toc.entries, {}, &PackEntry::offset);
  return toc;
}

class PackIndexer {
 public:
  PackIndexer(Env& env, const WriterLock& lock, const RebuildInput& input, Progress& progress, FsckReport& report)
      : env_(env),
        lock_(lock),
        input_(input),
        progress_(progress),
        report_(report),
        assembled_(input.store_path / "cache") {}

  Result<FoundPacks> run(const std::function<Result<WantedExtents>()>& wanted) {
    WantedExtents extents;
    if (input_.mend && input_.data) {
      WEFT_TRY(extents, wanted());
      for (const auto* part : {&extents.here, &extents.elsewhere})
        for (const Extent& extent : *part) needed_.insert(extent.id);
    }
    WEFT_CHECK(sort_packs());
    if (suspects_.empty()) WEFT_CHECK(trust_unread());
    for (PackToc& toc : std::exchange(cached_, {})) WEFT_CHECK(add(std::move(toc)));
    WEFT_CHECK(flush());
    if (!input_.mend) {
      WEFT_CHECK(add_fitting());
      return FoundPacks();
    }
    if (!input_.data) {
      const auto assembled = assembled_.list();
      if (suspects_.empty() && (!assembled.ok() || assembled->empty())) return FoundPacks();
      WEFT_TRY(extents, wanted());
    }
    WEFT_CHECK(rescue(extents));
    return std::move(found_);
  }

 private:
  // Indexes the undamaged packs and sets the others aside.
  Status sort_packs() {
    WEFT_TRY(std::vector<PackId> packs, input_.packs.list_with_copies());
    for (PackId pack : packs) {
      if (progress_.cancelled()) return Error{Errc::cancelled, "stopped"};
      WEFT_CHECK(sort_pack(pack));
    }
    return {};
  }

  Status sort_pack(PackId pack) {
    const SafePath path = input_.packs.pack_file(pack);
    auto toc = input_.packs.toc(pack);
    WEFT_TRY(auto st, if_there(stat_file(path)));
    if (kind_of_pack(pack) == PackKind::manifests) return sort_manifests(pack, std::move(toc), st.has_value());
    if (!st) return {};  // gc or a failed publish has just removed it
    if (!toc.ok()) return note_mute(pack, toc.error());
    const bool cut = static_cast<std::uint64_t>(st->st_size) < toc->size;
    if (!input_.mend && cut && has_lost(*toc, static_cast<std::uint64_t>(st->st_size)))
      report_.problems.push_back(fmt::format("{}: expected {} bytes, got {}", path, toc->size, st->st_size));
    WEFT_TRY(const bool intact, cut ? Result<bool>(false) : is_intact(*toc));
    if (!intact) {
      suspects_.push_back({std::move(*toc), false});
      return {};
    }
    if (input_.mend && input_.data && !needs_any(*toc)) {
      unread_.push_back(std::move(*toc));
      return {};
    }
    if (!toc->cached) return add(std::move(*toc));
    cached_.push_back(std::move(*toc));
    return {};
  }

  // Indexes a pack of manifests. If the run reads data, or a file of the pack is damaged or gone, it looks at each
  // manifest in both copies.
  Status sort_manifests(PackId pack, Result<PackToc> toc, bool there) {
    if (!toc.ok() && !is_damage(toc.error())) return std::move(toc).error();
    if (!input_.mend) {
      if (!toc.ok()) report_.problems.push_back(fmt::format("pack {}: {}", pack_name(pack), toc.error().message));
      if (!there)
        report_.problems.push_back(fmt::format("{}: is missing, and a copy of it is left; run `weft fsck --rebuild`",
                                               input_.packs.pack_file(pack)));
      return toc.ok() ? place_manifests(pack, toc->entries) : Status{};
    }
    if (toc.ok() && there && !input_.data) return place_manifests(pack, toc->entries);
    WEFT_TRY(FoundManifests found, find_manifests(input_.packs, pack, progress_));
    WEFT_CHECK(place_manifests(pack, found.whole));
    if (found.lists_more)
      report_.repaired.push_back(fmt::format("pack {}: its table of contents is rebuilt with {} manifests",
                                             pack_name(pack), found.toc.entries.size()));
    if (!found.broken.empty())
      report_.repaired.push_back(fmt::format("pack {}: {} manifests are written again from the other copy",
                                             pack_name(pack), found.broken.size()));
    if (found.is_damaged()) found_.manifests.push_back(std::move(found));
    return {};
  }

  // Adds manifests to the index, without versions that need them. If two packs have a manifest, either place will do.
  Status place_manifests(PackId pack, std::span<const PackEntry> entries) {
    while (!entries.empty()) {
      const auto batch = entries.first(std::min(kBlobsMax, entries.size()));
      entries = entries.subspan(batch.size());
      Status placed = env_.write(lock_, [&](Txn& txn) -> Status {
        for (const PackEntry& entry : batch) {
          if (!names_manifest(entry)) continue;
          WEFT_CHECK(place_manifest(txn, manifest_digest(entry), {pack, entry.offset}, entry.id.length));
        }
        return {};
      });
      WEFT_CHECK(std::move(placed));
    }
    return {};
  }

  // Adds a suspect without a readable table of contents. If its .toc belongs to another pack, because two files were
  // swapped, keeps that one as a stray.
  Status note_mute(PackId pack, const Error& error) {
    if (!is_damage(error)) return error;
    suspects_.push_back({PackToc{pack, 0, {}}, true});
    if (!input_.mend) report_.problems.push_back(fmt::format("pack {}: {}", pack_name(pack), error.message));
    auto toc = read_toc(input_.packs.toc_file(pack));
    if (!toc.ok()) return is_damage(toc.error()) ? Status{} : Status{std::move(toc).error()};
    strays_.push_back(std::move(*toc));
    return {};
  }

  bool needs_any(const PackToc& toc) const {
    return std::ranges::any_of(toc.entries, [this](const PackEntry& entry) { return needed_.contains(entry.id); });
  }

  // Reads and verifies the needed blobs of a pack. An I/O error is reported, but the pack counts as intact: a search of
  // the pack would not find the bytes elsewhere.
  Result<bool> is_intact(const PackToc& toc) {
    std::vector<const PackEntry*> entries;
    for (const PackEntry& entry : toc.entries)
      if (needed_.contains(entry.id)) entries.push_back(&entry);
    if (entries.empty()) return true;
    WEFT_TRY(const auto pack, input_.packs.open(toc.pack));
    const SafePath where = input_.packs.pack_file(toc.pack);
    std::vector<Status> checks(entries.size());
    pool_.parallel_for(entries.size(), [&](std::size_t i) {
      checks[i] = check_blob(pack->fd(), where, *entries[i], progress_);
      progress_.advance(entries[i]->id.length);
    });
    bool intact = true;
    for (const Status& check : checks) {
      if (check.ok()) continue;
      if (check.error().code == Errc::cancelled) return check.error();
      if (check.error().code == Errc::io) report_.problems.push_back(check.error().message);
      intact = intact && check.error().code == Errc::io;
    }
    return intact;
  }

  Status add(PackToc toc) {
    waiting_blobs_ += toc.entries.size();
    waiting_.push_back(std::move(toc));
    return waiting_.size() < kPacksMax && waiting_blobs_ < kBlobsMax ? Status{} : flush();
  }

  // Commits the waiting packs to the index.
  Status flush() {
    const std::vector<PackToc> packs = std::exchange(waiting_, {});
    waiting_blobs_ = 0;
    return env_.write(lock_, [&](Txn& txn) -> Status {
      for (const PackToc& toc : packs) {
        for (const PackEntry& entry : toc.entries) WEFT_CHECK(add_entry(txn, toc.pack, entry));
        if (toc.cached && !toc.entries.empty()) WEFT_CHECK(put_note(txn, kCached, toc.pack));
        if (toc.promoted) WEFT_CHECK(put_note(txn, kPromoted, toc.pack));
      }
      return {};
    });
  }

  // Indexes one blob. Two packs may have it, after a compaction or concurrent imports. Then chooses a copy that
  // verifies, or for fsck, the copy of the index under test.
  Status add_entry(Txn& txn, PackId pack, const PackEntry& entry) {
    BlobPlace place{pack, entry.offset};
    WEFT_CHECK(put_hint(txn, entry.id, entry.hint));
    WEFT_TRY(bool made, add_blob(txn, entry.id, place));
    if (made) return {};
    WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, entry.id));
    std::optional<FoundBlob> known = input_.known ? input_.known(entry.id) : std::nullopt;
    if (known) return known->row.place == place ? place_blob(txn, *found, place) : Status{};
    WEFT_TRY(bool good, verifies(entry, found->row.place));
    if (good) return {};
    WEFT_TRY(good, verifies(entry, place));
    return good ? place_blob(txn, *found, place) : Status{};
  }

  Result<bool> verifies(const PackEntry& entry, const BlobPlace& place) {
    auto pack = input_.packs.open(place.pack);
    if (!pack.ok()) return is_damage(pack.error()) ? Result<bool>(false) : std::move(pack).error();
    PackEntry there = entry;
    there.offset = place.offset;
    Status status = check_blob((*pack)->fd(), pack_name(place.pack), there, progress_, {});
    if (!status.ok() && !is_damage(status.error())) return std::move(status).error();
    return status.ok();
  }

  // For fsck, which does not search packs: indexes those entries of the suspects that fit into their packs.
  Status add_fitting() {
    for (Suspect& suspect : suspects_) {
      if (suspect.mute) continue;
      WEFT_TRY(const struct stat st, stat_file(input_.packs.pack_file(suspect.toc.pack)));
      const auto size = static_cast<std::uint64_t>(st.st_size);
      std::erase_if(suspect.toc.entries, [size](const PackEntry& entry) {
        return entry.offset > size || entry.id.length > size - entry.offset;
      });
      WEFT_CHECK(add(std::move(suspect.toc)));
    }
    return flush();
  }

  // For fsck: true if a truncated pack has lost a blob that may be needed. A rebuild searches such blobs in other
  // packs, and reports those that it does not find.
  bool has_lost(const PackToc& toc, std::uint64_t size) const {
    return std::ranges::any_of(toc.entries, [&](const PackEntry& entry) {
      if (entry.offset + entry.id.length <= size) return false;
      if (!input_.known) return true;
      const std::optional<FoundBlob> known = input_.known(entry.id);
      return known && known->row.place == BlobPlace{toc.pack, entry.offset};
    });
  }

  // Indexes the unread packs by their tables of contents. Call without suspects: a pack that was swapped with an unread
  // one would be a suspect.
  Status trust_unread() {
    for (PackToc& toc : std::exchange(unread_, {})) {
      if (toc.cached)
        cached_.push_back(std::move(toc));
      else
        WEFT_CHECK(add(std::move(toc)));
    }
    std::ranges::sort(cached_, {}, &PackToc::pack);
    return {};
  }

  // Searches the suspects for wanted blobs, then the unread packs, with which a suspect may have been swapped, then the
  // assembled files.
  Status rescue(const WantedExtents& wanted) {
    progress_.phase("looking for blobs in damaged packs");
    WantedBlobs blobs;
    WEFT_CHECK(add_missing(wanted.here, blobs));
    WEFT_CHECK(add_missing(wanted.elsewhere, blobs));
    WEFT_TRY(auto known, known_places());
    for (const Suspect& suspect : suspects_)
      WEFT_CHECK(rescue_suspect(suspect, std::move(known[suspect.toc.pack]), blobs));
    for (PackToc& toc : unread_)
      WEFT_CHECK(blobs.empty() ? add(std::move(toc)) : rescue_suspect({std::move(toc), false}, {}, blobs));
    WEFT_CHECK(flush());
    WEFT_TRY(found_.fresh, rescue_from_assembled(wanted.here));
    return add_damaged();
  }

  Status rescue_suspect(const Suspect& suspect, std::vector<PlacedBlob> known, WantedBlobs& wanted) {
    WEFT_TRY(PackToc toc, rescue_pack(suspect, std::move(known), wanted));
    WEFT_CHECK(add(toc));
    WEFT_CHECK(flush());
    PackToc rest = rest_of(suspect.toc, toc);
    PackToc all = with_entries(toc, rest.entries);
    if (!rest.entries.empty()) damaged_.push_back(std::move(rest));
    if (!suspect.mute && has_all(suspect.toc, toc)) return {};
    report_.repaired.push_back(fmt::format("pack {}: its table of contents is rebuilt with {} blobs",
                                           pack_name(all.pack), all.entries.size()));
    found_.remade.push_back(std::move(all));
    return {};
  }

  // Copies blobs that no pack has from assembled files into a new pack; null if there are none. `wanted` excludes the
  // versions of other nodes, whose blobs are fetched when they are read.
  Result<std::unique_ptr<RepairPack>> rescue_from_assembled(const std::vector<Extent>& wanted) {
    WantedBlobs missing;
    WEFT_CHECK(add_missing(wanted, missing));
    if (missing.empty()) return std::unique_ptr<RepairPack>();
    WEFT_TRY(auto fresh, RepairPack::create(input_.store_path));
    WEFT_CHECK(rescue_assembled(assembled_, missing, *fresh, progress_));
    if (fresh->blobs().empty()) return std::unique_ptr<RepairPack>();
    PackToc toc{fresh->id(), 0, {}};
    for (const NewBlob& blob : fresh->blobs()) toc.entries.push_back({blob.id, blob.place.offset, {}, blob.hint});
    WEFT_CHECK(add(toc));
    WEFT_CHECK(flush());
    report_.repaired.push_back(
        fmt::format("pack {}: made from assembled files, of {} blobs that no other pack has whole", pack_name(toc.pack),
                    toc.entries.size()));
    return fresh;
  }

  // Returns a table of contents with the verified blobs of the pack.
  Result<PackToc> rescue_pack(const Suspect& suspect, std::vector<PlacedBlob> known, WantedBlobs& wanted) {
    const PackId pack = suspect.toc.pack;
    WEFT_TRY(const std::vector<PlacedBlob> rows, salvaged_rows(input_.packs, pack));
    std::ranges::copy(rows, std::back_inserter(known));
    for (const PackToc& stray : strays_)
      if (stray.pack == pack) std::ranges::copy(rows_of(stray), std::back_inserter(known));
    for (const PlacedBlob& blob : rows_of_suspects())
      if (wanted.contains(blob.id)) known.push_back(blob);
    WEFT_TRY(PackToc toc, rescue_toc(input_.packs, pack, known, wanted, progress_));
    toc.cached = suspect.toc.cached;
    toc.promoted = suspect.toc.promoted;
    return toc;
  }

  // Adds to `missing` those wanted extents that no indexed pack has.
  Status add_missing(const std::vector<Extent>& wanted, WantedBlobs& missing) {
    WEFT_TRY(Txn txn, env_.read());
    for (const Extent& extent : wanted) {
      WEFT_TRY(std::optional<FoundBlob> found, find_blob(txn, extent.id));
      if (!found) missing.add(extent);
    }
    return {};
  }

  Result<std::map<PackId, std::vector<PlacedBlob>>> known_places() {
    std::set<PackId> mute;
    for (const Suspect& suspect : suspects_)
      if (suspect.mute) mute.insert(suspect.toc.pack);
    if (mute.empty() || !input_.placed) return std::map<PackId, std::vector<PlacedBlob>>();
    return input_.placed(mute);
  }

  // Returns the entries of all suspects. If two packs were swapped, each has the blobs that the other's entries list.
  std::vector<PlacedBlob> rows_of_suspects() const {
    std::vector<PlacedBlob> rows;
    for (const Suspect& suspect : suspects_) std::ranges::copy(rows_of(suspect.toc), std::back_inserter(rows));
    return rows;
  }

  // Indexes damaged blobs at their old places, because a repair needs the places, and reports the needed ones.
  Status add_damaged() {
    for (const PackToc& toc : damaged_) {
      WEFT_CHECK(add(toc));
      WEFT_CHECK(flush());
      WEFT_TRY(Txn txn, env_.read());
      for (const PackEntry& entry : toc.entries) {
        WEFT_TRY(const std::optional<FoundBlob> found, find_blob(txn, entry.id));
        if (!needed_.contains(entry.id) || !found || found->row.place != BlobPlace{toc.pack, entry.offset}) continue;
        report_.problems.push_back(
            fmt::format("{}: the blob {} of {} bytes at {} is damaged, and no pack has another copy",
                        input_.packs.pack_file(toc.pack), to_hex(entry.id.root), entry.id.length, entry.offset));
      }
    }
    return {};
  }

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  Progress& progress_;
  FsckReport& report_;
  ThreadPool pool_{0};
  std::unordered_set<ContentId> needed_;  // blobs that versions need; empty unless the run reads data
  std::vector<PackToc> waiting_;          // packs to be indexed by flush()
  std::size_t waiting_blobs_ = 0;
  std::vector<PackToc> cached_;  // indexed last, so that the node's own packs take precedence
  std::vector<Suspect> suspects_;
  std::vector<PackToc> unread_;   // packs without needed blobs; only if the run reads data
  std::vector<PackToc> damaged_;  // entries of suspects whose blobs were not found
  FoundPacks found_;
  std::vector<PackToc> strays_;  // undamaged tables of contents that are stored under another pack's name
  const PackDir assembled_;
};

}  // namespace

Result<FoundPacks> index_packs(Env& env, const WriterLock& lock, const RebuildInput& input,
                               const std::function<Result<WantedExtents>()>& wanted, Progress& progress,
                               FsckReport& report) {
  return PackIndexer(env, lock, input, progress, report).run(wanted);
}

}  // namespace weft
