// A store made again from its origin.
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "node/origin_copy.h"
#include "node/origin_survey.h"
#include "store/pack_file.h"
#include "store/restore.h"
#include "weft/node.h"
#include "weft/origin.h"

namespace weft {
namespace {

class Restoring {
 public:
  Restoring(OriginDir origin, const RestoreOptions& options, Progress& progress)
      : found_(std::move(origin), options.accept_loss, progress), options_(options), progress_(progress) {}

  Result<RestoreReport> run(const std::string& store_path) {
    WEFT_CHECK(found_.look());
    if (found_.refuses()) return found_.report();
    WEFT_TRY(const StoreRestore store, StoreRestore::begin(store_path, found_.origin().uuid(), options_.patience));
    WEFT_CHECK(copy_packs(store));
    if (found_.refuses()) return found_.report();
    WEFT_CHECK(copy_manifests(store));
    progress_.phase("making the index");
    WEFT_TRY(const auto problems, store.take(found_.changes(), content_decoder(), progress_));
    found_.report().problems.insert(found_.report().problems.end(), problems.begin(), problems.end());
    if (found_.refuses()) return found_.report();
    WEFT_CHECK(store.finish());
    return found_.finish();
  }

 private:
  Status copy_packs(const StoreRestore& store);
  Status copy_pack_to(const StoreRestore& store, PackToc toc);
  void count_packs();
  Status copy_manifests(const StoreRestore& store);

  OriginSurvey found_;
  const RestoreOptions& options_;
  Progress& progress_;
};

std::uint64_t bytes_of(const PackToc& toc) {
  std::uint64_t bytes = 0;
  for (const PackEntry& entry : toc.entries) bytes += entry.id.length;
  return bytes;
}

// What a pack turns out not to have whole makes others grow.
Status Restoring::copy_packs(const StoreRestore& store) {
  std::uint64_t bytes = 0;
  std::set<PackId> grown = found_.blobs().take_grown();
  for (const PackId pack : grown) bytes += bytes_of(found_.blobs().packs().at(pack));
  WEFT_CHECK(store.keep_packs(grown));
  progress_.phase("copying packs");
  progress_.total(bytes);
  for (; !grown.empty(); grown = found_.blobs().take_grown()) {
    for (const PackId pack : grown) WEFT_CHECK(copy_pack_to(store, found_.blobs().packs().at(pack)));
    WEFT_CHECK(found_.blobs().look(progress_));
  }
  count_packs();
  return found_.lose_incomplete();
}

void Restoring::count_packs() {
  for (const auto& [pack, toc] : found_.blobs().packs()) {
    if (!toc.entries.empty()) ++found_.report().packs;
    found_.report().bytes += bytes_of(toc);
  }
}

Status Restoring::copy_pack_to(const StoreRestore& store, PackToc toc) {
  WEFT_TRY(const bool there, store.has_pack(toc));
  if (there) {
    progress_.advance(bytes_of(toc));
    return {};
  }
  std::vector<ContentId> damaged;
  const auto fd = found_.origin().open_pack(toc.pack);
  if (!fd.ok()) {
    for (const PackEntry& entry : toc.entries) damaged.push_back(entry.id);
    found_.blobs().not_whole(toc.pack, fd.error().message, damaged);
    return {};
  }
  const std::string file = store.pack_file();
  WEFT_CHECK(copy_pack(toc, fd->get(), file, progress_, &damaged));
  if (!damaged.empty()) {
    found_.blobs().not_whole(
        toc.pack,
        fmt::format("{}: of {} blobs that versions need {} are damaged", pack_path(found_.origin().path(), toc.pack),
                    toc.entries.size(), damaged.size()),
        damaged);
    toc.entries = found_.blobs().packs().at(toc.pack).entries;
  }
  return toc.entries.empty() ? remove_file(file) : store.add_pack(file, toc);
}

Status Restoring::copy_manifests(const StoreRestore& store) {
  progress_.phase("copying manifests");
  std::set<Digest> copied;
  for (const auto& [name, row] : found_.versions()) {
    if (row.removed || !copied.insert(row.manifest).second) continue;
    WEFT_CHECK(found_.check_cancelled());
    WEFT_TRY(const auto bytes, found_.origin().manifest(row.manifest));
    WEFT_CHECK(store.add_manifest(row.manifest, bytes));
  }
  return {};
}

}  // namespace

Result<RestoreReport> restore_store(const std::string& origin, const std::string& store, const RestoreOptions& options,
                                    Progress& progress) {
  WEFT_TRY(OriginDir dir, OriginDir::open_existing(origin));
  return Restoring(std::move(dir), options, progress).run(store);
}

}  // namespace weft
