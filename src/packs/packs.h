// Packs: files that hold blobs, each with a table of contents beside it. This comment describes the packs of
// STORE/packs; assembled.h describes those of STORE/cache.
//   packs/<id>.pack   bytes only: a published file as it is, or blobs one after the other
//   packs/<id>.toc    one record: the pack's size, its blobs (id, offset) and their chunk digests
//   packs/<id>.copy   for a pack of manifests: the same bytes again
// Ids are random, 16 hex digits, and never reused. Files appear by rename, complete and durable. A range that the .toc
// lists is written once and never changes. So readers need no lock: an open pack stays readable after gc or eviction
// has unlinked it. gc changes the index before it removes a file, so a reader that does not find the file looks at the
// index again. A cached pack is filled step by step: it has its full size from the start, and its .toc is replaced when
// more blobs are complete. Meanwhile the writer holds an exclusive lock on the .pack, and gc and eviction skip the
// pack.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "packs/blob_index.h"
#include "weft/bytes/pack.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct CachedPack;
class PackListing;
class TocCache;

// An open pack. Any thread.
class OpenPack : public PackReader {
 public:
  // Checks that the pack lists this blob at this offset and is long enough. Errc::corrupt if not; the message names the
  // repair. Errc::not_found: the pack was removed before its .toc was read.
  virtual Status check_place(const ContentId& id, std::uint64_t offset) const = 0;
  virtual void prepare() const = 0;  // reads the .toc now, so that check_place() does not wait for the disk
};

// A directory of packs. Any thread.
class PackDir {
 public:
  explicit PackDir(const SafePath& path);
  ~PackDir();

  const SafePath& path() const { return path_; }
  SafePath pack_file(PackId pack) const;
  SafePath toc_file(PackId pack) const;
  SafePath copy_file(PackId pack) const;  // the second copy of a pack of manifests

  // Errc::not_found if the pack is gone. Concurrent holders of a pack share one reader.
  Result<std::shared_ptr<const OpenPack>> open(PackId pack);
  Result<std::shared_ptr<const OpenPack>> open_alone(PackId pack) const;  // a reader that is not shared
  Result<std::vector<PackId>> list() const;
  Result<std::vector<PackId>> list_with_copies() const;  // also the packs whose .copy alone is left
  Result<PackToc> toc(PackId pack) const;
  // Returns the blobs in the current .toc. Recently read listings are cached.
  Result<std::shared_ptr<const PackListing>> listing(PackId pack) const;
  // The SHA-256 of each chunk of a blob. Errc::not_found: the pack does not list this blob at this place.
  Result<std::vector<Digest>> chunks(const ContentId& id, const BlobPlace& place) const;

 private:
  const SafePath path_;
  std::mutex mutex_;
  std::unordered_map<PackId, std::weak_ptr<const OpenPack>> open_;  // guarded by mutex_
  const std::shared_ptr<TocCache> tocs_;
};

// Returns the blobs that the .toc files of these packs list. Skips packs that are gone.
Result<std::vector<NewBlob>> blobs_of(const PackDir& packs, std::span<const PackId> ids);

// Returns those packs of `ids` that exist in the directory, least recently used first: the order of eviction.
Result<std::vector<CachedPack>> packs_by_use(const SafePath& directory, std::span<const PackId> ids,
                                             const std::set<PackId>& pinned);

// The packs directory of one store. Any thread.
class Packs : public PackDir {
 public:
  Packs(SafePath store_path, IndexAccess& index);

  const SafePath& store_path() const { return store_path_; }

  Result<OpenPlace> open_blob(const ContentId& id);                           // looks the blob up and opens its pack
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place);  // as Store::open_place()
  using PackDir::chunks;
  Result<std::vector<Digest>> chunks(const ContentId& id);  // as FetchedCache::chunks()

 private:
  Result<std::optional<BlobPlace>> find(const ContentId& id);
  const SafePath store_path_;
  IndexAccess& index_;
};

}  // namespace weft
