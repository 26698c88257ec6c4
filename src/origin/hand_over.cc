#include "origin/hand_over.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/bounded_calls.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "origin/dir.h"
#include "os/file_ops.h"
#include "os/sys.h"
#include "weft/deadline.h"
#include "weft/model/manifest.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::size_t kHandOverHoldersAsked = 8;

// A blob, and the manifests of versions that hold it.
struct Needed {
  ContentId id;
  std::vector<Digest> manifests;
};

// Checks in the origin's files which blobs it has. A call may hang, so it runs on a thread that can be abandoned.
class OriginHas {
 public:
  explicit OriginHas(OriginDir origin) : origin_(std::move(origin)) {}
  bool all(const std::vector<Needed>& blobs) {
    return std::ranges::all_of(blobs, [this](const Needed& blob) { return has(blob); });
  }

 private:
  bool has(const Needed& blob) {
    return std::ranges::any_of(blob.manifests, [&](const Digest& manifest) {
      const Places* places = read_once(places_, manifest, [&] { return origin_.places(manifest); });
      const auto place = places == nullptr ? std::nullopt : places->find(blob.id);
      if (!place) return false;
      const PackToc* toc = read_once(tocs_, place->pack, [&] { return whole_toc(place->pack); });
      return toc != nullptr && lists_blob(*toc, blob.id, place->offset);
    });
  }

  Result<PackToc> whole_toc(PackId pack) const {
    WEFT_TRY(PackToc toc, origin_.toc(pack));
    WEFT_TRY(const Fd file, origin_.open_pack(pack));
    const std::string path = origin_pack_name(origin_.path(), pack);
    WEFT_TRY(const struct stat st, stat_fd(file.get(), path));
    if (static_cast<std::uint64_t>(st.st_size) < toc.size)
      return Error{Errc::corrupt, fmt::format("{}: expected {} bytes, got {}", path, toc.size, st.st_size)};
    return toc;
  }

  const OriginDir origin_;
  std::map<Digest, std::optional<Places>> places_;
  std::map<PackId, std::optional<PackToc>> tocs_;
};

class HandOver {
 public:
  HandOver(Store& store, OriginLedger& ledger, FetchedCache& cache, ManifestResolver& resolver,
           const HandOverOptions& options)
      : store_(store),
        ledger_(ledger),
        cache_(cache),
        resolver_(resolver),
        options_(options),
        calls_("origin " + options.origin, 1) {}

  Result<HandOverReport> run() {
    WEFT_TRY(const std::string known, ledger_.origin());
    const std::string cluster = store_.cluster() ? store_.cluster()->cluster : "";
    WEFT_TRY(has_, calls_.call<std::shared_ptr<OriginHas>>(
                       [path = options_.origin, known, cluster]() -> Result<std::shared_ptr<OriginHas>> {
                         WEFT_TRY(OriginDir dir, OriginDir::open_known(path, known, cluster));
                         return std::make_shared<OriginHas>(std::move(dir));
                       },
                       deadline_in(options_.patience)));
    WEFT_TRY(const auto packs, packs_asked_for());
    for (const PackId pack : packs) {
      if (options_.cancelled()) return Error{Errc::cancelled, "interrupted; packs that have become cache stay so"};
      WEFT_CHECK(judge(pack));
    }
    return report_;
  }

 private:
  Result<std::set<PackId>> packs_asked_for() {
    if (options_.version) return packs_of(*options_.version);
    std::set<PackId> packs;
    WEFT_TRY(const auto names, list_directory(store_.directory() / "packs"));
    for (const std::string& name : names)
      if (const auto pack = pack_of_name(name, ".pack"); pack && kind_of_pack(*pack) == PackKind::blobs)
        packs.insert(*pack);
    return packs;
  }

  Result<std::set<PackId>> packs_of(VersionId version) {
    VersionRow row;
    {
      WEFT_TRY(const auto snapshot, store_.snapshot());
      WEFT_TRY(row, snapshot->version(version));
    }
    WEFT_TRY(const auto bytes, manifest_of(store_, resolver_, row));
    WEFT_TRY(const Manifest manifest, decode_manifest(bytes->bytes()));
    std::set<PackId> packs;
    Renewed renewed(store_);
    for (const File& file : manifest.files)
      for (const Extent& extent : file.extents) {
        WEFT_TRY(Snapshot * now, renewed.get());
        if (const auto place = now->find_blob(extent.id); place.ok()) packs.insert(place->pack);
      }
    return packs;
  }

  Status judge(PackId pack) {
    auto toc = read_toc_of(store_.directory(), pack);
    const auto st = stat_file(pack_path(store_.directory(), pack));
    if (!toc.ok() || !st.ok() || toc->cached) return {};
    WEFT_TRY(auto blobs, needed_of(*toc));
    bool given = false;
    if (blobs) {
      WEFT_TRY(given, is_at_origin(std::move(*blobs)));
    }
    if (given) {
      WEFT_TRY(given, cache_.make_evictable(pack));
    }
    ++(given ? report_.packs : report_.kept_packs);
    (given ? report_.disk_bytes : report_.kept_disk_bytes) += allocated_bytes(*st);
    return {};
  }

  Result<bool> is_at_origin(std::vector<Needed> blobs) {
    return calls_.call<bool>([has = has_, blobs = std::move(blobs)] { return Result<bool>(has->all(blobs)); },
                             deadline_in(options_.patience));
  }

  // Returns the blobs in a pack that versions hold. Nothing if the node must keep the pack in any case.
  Result<std::optional<std::vector<Needed>>> needed_of(const PackToc& toc) {
    std::vector<Needed> blobs;
    Renewed renewed(store_);
    for (const PackEntry& entry : toc.entries) {
      WEFT_TRY(Snapshot * snapshot, renewed.get(4 * kHandOverHoldersAsked));
      const auto place = snapshot->find_blob(entry.id);
      if (!place.ok()) return std::optional<std::vector<Needed>>();  // of a running or dead publish
      if (place->pack != toc.pack) continue;
      WEFT_TRY(auto holders, snapshot->some_holders(entry.id, kHandOverHoldersAsked));
      Needed blob{entry.id, {}};
      for (const auto& [version, file] : holders) {
        WEFT_TRY(const bool unsaved, lists_version(*snapshot, &Snapshot::unsaved, version));
        if (unsaved) return std::optional<std::vector<Needed>>();
        WEFT_TRY(const VersionRow row, snapshot->version(version));
        if (std::ranges::find(blob.manifests, row.manifest) == blob.manifests.end())
          blob.manifests.push_back(row.manifest);
      }
      if (!holders.empty()) blobs.push_back(std::move(blob));
    }
    return std::optional(std::move(blobs));
  }

  Store& store_;
  OriginLedger& ledger_;
  FetchedCache& cache_;
  ManifestResolver& resolver_;
  const HandOverOptions& options_;
  BoundedCalls calls_;
  std::shared_ptr<OriginHas> has_;  // shared with a call that hangs
  HandOverReport report_;
};

}  // namespace

Result<HandOverReport> hand_over(Store& store, OriginLedger& ledger, FetchedCache& cache, ManifestResolver& resolver,
                                 const HandOverOptions& options) {
  return HandOver(store, ledger, cache, resolver, options).run();
}

}  // namespace weft
