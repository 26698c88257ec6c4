#include "store/publishing/publish_steps.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "archindex/index.h"
#include "base/limits.h"
#include "base/plain_text.h"
#include "base/sha256.h"
#include "diskformat/pack_names.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "os/sys.h"

namespace weft {
namespace {

// True if the index knows any of these packs. That happens only after a rebuild.
bool any_indexed(Txn& txn, std::span<const NewBlob> blobs) {
  return std::any_of(blobs.begin(), blobs.end(), [&txn](const NewBlob& blob) {
    auto found = find_blob(txn, blob.id);
    return !found.ok() || (*found && (*found)->row.place.pack == blob.place.pack);
  });
}

Kept kept(const StoreParts& parts) {
  return parts.cluster.joined() ? Kept::as_file : Kept::anywhere;
}

}  // namespace

std::vector<PackId> pack_ids(std::span<const NewBlob> blobs) {
  std::vector<PackId> packs;
  for (const NewBlob& blob : blobs) packs.push_back(blob.place.pack);
  std::sort(packs.begin(), packs.end());
  packs.erase(std::unique(packs.begin(), packs.end()), packs.end());
  return packs;
}

Status check_request(const PublishRequest& request) {
  const std::pair<std::size_t, std::size_t> bounds[] = {
      {request.manifest.size(), limits::kManifestMax}, {request.content.files.size(), limits::kFilesPerVersionMax},
      {request.message.size(), limits::kMessageMax},   {request.metrics.size(), limits::kMetricsMax},
      {request.parents.size(), limits::kParentsMax},   {request.elsewhere.size(), limits::kParentsMax}};
  const std::string_view names[] = {"manifest bytes", "files",   "message bytes",
                                    "metrics",        "parents", "parents that are not stored"};
  for (std::size_t i = 0; i < std::size(bounds); ++i)
    if (bounds[i].first > bounds[i].second)
      return Error{Errc::invalid, fmt::format("{}: {}: expected at most {}, got {}", request.model, names[i],
                                              bounds[i].second, bounds[i].first)};
  return check_source(request.source);
}

Result<SealedManifest> seal(StoreParts& parts, const GiveManifest& manifest, Importer& packs) {
  WEFT_CHECK(packs.begin_seal());
  SealedManifest sealed;
  WEFT_CHECK(manifest([&](std::span<const std::byte> bytes) -> Status {
    if (bytes.size() > limits::kManifestMax)
      return Error{Errc::invalid,
                   fmt::format("manifest bytes: expected at most {}, got {}", limits::kManifestMax, bytes.size())};
    sealed.digest = sha256(bytes);
    WEFT_TRY(sealed.staged, parts.manifests.stage(sealed.digest, bytes, kept(parts)));
    return {};
  }));
  sealed.staged.begin_sync();
  WEFT_CHECK(packs.seal());
  WEFT_CHECK(sealed.staged.sync());
  return sealed;
}

// All renames come before the first directory sync, because that sync writes the other renames too.
Status place(StoreParts& parts, SealedManifest manifest, Importer& packs) {
  WEFT_CHECK(parts.manifests.place(std::move(manifest.staged), manifest.digest, kept(parts)));
  WEFT_CHECK(packs.place());
  return parts.manifests.sync();
}

Result<WriterLock> lock_with_shared(StoreParts& parts, Importer& packs) {
  for (;;) {
    std::vector<ContentId> lost;
    {
      WEFT_TRY(WriterLock lock, parts.index.lock());
      WEFT_TRY(lost, packs.lost());
      if (lost.empty()) return lock;
    }
    WEFT_CHECK(packs.store_again(lost));
  }
}

void foresee(StoreParts& parts, const PublishRequest& request) {
  auto txn = parts.index.read();
  if (!txn.ok()) return;
  VersionRow version;
  version.id = UINT64_MAX;
  version.metrics = request.metrics;
  static_cast<void>(foresee_architecture(*txn, version, request.content.architecture));
}

Status replace_damaged(StoreParts& parts, const WriterLock& lock, std::span<const NewBlob> new_blobs) {
  if (std::ranges::none_of(new_blobs, &NewBlob::replaces)) return {};
  return parts.index.write(lock, [&](Txn& txn) -> Status {
    for (const NewBlob& blob : new_blobs) {
      if (!blob.replaces) continue;
      WEFT_TRY(const std::optional<FoundBlob> found, find_blob(txn, blob.id));
      if (found) WEFT_CHECK(place_blob(txn, *found, blob.place));
    }
    return bump_sequence(txn);
  });
}

void discard(StoreParts& parts, std::span<const NewBlob> blobs) {
  auto lock = parts.index.env().lock_writer();  // without a replay of the journal: the replay may have failed
  if (!lock.ok()) return;
  auto txn = parts.index.read();
  if (!txn.ok()) return;
  auto counters = get_counters(*txn);
  auto journal = parts.index.journal().size();
  if (!counters.ok() || !journal.ok() || counters->journal_end != *journal) return;
  if (!any_indexed(*txn, blobs))
    for (PackId pack : pack_ids(blobs)) {
      static_cast<void>(remove_file(pack_path(parts.path, pack)));
      static_cast<void>(remove_file(toc_path(parts.path, pack)));
    }
}

}  // namespace weft
