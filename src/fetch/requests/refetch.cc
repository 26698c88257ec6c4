#include "fetch/requests/refetch.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "diskformat/pack_names.h"
#include "weft/model/manifest.h"
#include "weft/store/fsck.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::uint64_t kRefetchStep = 32U << 20U;
constexpr std::size_t kHoldersAtEachEnd = 4;

// A place of the blob in a published file.
struct Holder {
  VersionId version = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
};

std::optional<Holder> holder_in(Store& store, const VersionRow& row, std::uint32_t file, const ContentId& id) {
  const auto bytes = store.open_manifest(row.manifest);
  if (!bytes.ok()) return {};
  const auto manifest = decode_manifest((*bytes)->bytes());
  if (!manifest.ok() || file >= manifest->files.size()) return {};
  for (const Extent& extent : manifest->files[file].extents)
    if (extent.id == id) return Holder{row.id, file, extent.offset};
  return {};
}

Result<Holder> holder_of(Store& store, const ContentId& id) {
  WEFT_TRY(const auto rows, some_holding_files(store, id, kHoldersAtEachEnd));
  for (const auto& [row, file] : rows)
    if (const auto holder = holder_in(store, row, file, id)) return *holder;
  return Error{Errc::not_found, fmt::format("{}: no version whose manifest is here has the {} bytes with digest {}",
                                            store.path(), id.length, to_hex(id.root))};
}

Status fetch(Store& store, Fetcher& fetcher, const ContentId& id, const Holder& holder, Progress& progress) {
  const ColdWait wait([&progress] { return !progress.cancelled(); });
  for (std::uint64_t at = 0; at < id.length; at += kRefetchStep) {
    WEFT_CHECK(check_cancelled(progress));
    const std::uint64_t part = std::min(kRefetchStep, id.length - at);
    WEFT_CHECK(fetcher.bring({.version = holder.version,
                              .file = holder.file,
                              .range = {holder.offset + at, part},
                              .ahead = id.length - at - part,
                              .all = true,
                              .background = Traffic::staging}));
    progress.advance(part);
  }
  WEFT_CHECK(fetcher.wait_indexed(holder.version, std::span(&id, 1)));
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_CHECK(snapshot->find_blob(id));
  return {};
}

// Copies a fetched blob, which is cache, to a pack that this node keeps.
Status keep(Store& store, const ContentId& id, Progress& progress) {
  WEFT_TRY(const OpenPlace fetched, store.open_blob(id));
  WEFT_TRY(const auto repair, store.begin_repair());
  WEFT_CHECK(
      repair->add(id, fetched.pack->fd(), fetched.offset, pack_path(store.directory(), fetched.pack->id()), progress));
  return repair->commit();
}

}  // namespace

Result<OpenPlace> bring_blob(Store& store, Fetcher& fetcher, const ContentId& id, Progress& progress) {
  auto here = store.open_blob(id);
  if (here.ok() || here.error().code != Errc::absent) return here;
  WEFT_TRY(const Holder holder, holder_of(store, id));
  WEFT_CHECK(fetch(store, fetcher, id, holder, progress));
  return store.open_blob(id);
}

Status refetch_blob(Store& store, FetchedCache& cache, Fetcher& fetcher, const ContentId& id, Progress& progress) {
  WEFT_TRY(const Holder holder, holder_of(store, id));
  fetcher.let_go();
  WEFT_TRY(const auto forgotten, cache.forget_damaged(id));
  if (!forgotten) return {};
  Status fetched = fetch(store, fetcher, id, holder, progress);
  if (!fetched.ok()) {
    WEFT_CHECK(cache.put_back(id, forgotten->place));
    return fetched;
  }
  return forgotten->cached ? Status{} : keep(store, id, progress);
}

}  // namespace weft
