// Packs: files that hold blobs, each with a table of contents beside it. Packs of STORE/packs are described here, those
// of STORE/cache in assembled.h.
//   packs/<id>.pack   bytes only: a published file as it is, or blobs one after the other
//   packs/<id>.toc    one record: the pack's size, its blobs (id, offset) and their chunk digests
// Ids are random, 16 hex digits, and never used again; files appear by rename, whole and durable. A range that the .toc
// lists is written once and never changes, so readers need no lock: a pack that is open stays readable, also after gc
// or an eviction has unlinked it. A reader that does not find the file looks at the index again, which gc changes
// first. A cached pack grows: it has its size from the start, and its .toc is replaced when more of it has come. Its
// writer holds an exclusive lock on the .pack meanwhile, and gc and eviction leave it alone.
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
#include "weft/content.h"
#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct CachedPack;
class PackListing;
class TocCache;

// A pack that is open. Any thread.
class OpenPack : public PackReader {
 public:
  // Errc::corrupt, with what to do about it: the pack does not list this blob there, or ends before. Errc::not_found:
  // the pack was removed before its table of contents was read.
  virtual Status check_place(const ContentId& id, std::uint64_t offset) const = 0;
  virtual void prepare() const = 0;  // reads the .toc now, so that check_place() waits for no disk
};

// A directory of packs. Any thread.
class PackDir {
 public:
  explicit PackDir(const SafePath& path);
  ~PackDir();

  const SafePath& path() const { return path_; }
  SafePath pack_file(PackId pack) const;
  SafePath toc_file(PackId pack) const;

  // not_found when it is gone. Those who hold one pack at a time share one reader.
  Result<std::shared_ptr<const OpenPack>> open(PackId pack);
  Result<std::shared_ptr<const OpenPack>> open_alone(PackId pack) const;  // a reader that nobody shares
  Result<std::vector<PackId>> list() const;
  Result<PackToc> toc(PackId pack) const;
  // What the .toc that is there now lists. Those read lately are kept.
  Result<std::shared_ptr<const PackListing>> listing(PackId pack) const;
  // The SHA-256 of each chunk of a blob. Errc::not_found when the pack lists another, or none, at this place.
  Result<std::vector<Digest>> chunks(const ContentId& id, const BlobPlace& place) const;

 private:
  const SafePath path_;
  std::mutex mutex_;
  std::unordered_map<PackId, std::weak_ptr<const OpenPack>> open_;  // guarded by mutex_
  const std::shared_ptr<TocCache> tocs_;
};

// Blobs of these packs as their tables of contents say; packs that are gone give none.
Result<std::vector<NewBlob>> blobs_of(const PackDir& packs, std::span<const PackId> ids);

// Which packs of a directory may be evicted, and in which order: those of `ids` that are there, least recently used
// first.
Result<std::vector<CachedPack>> packs_by_use(const SafePath& directory, std::span<const PackId> ids,
                                             const std::set<PackId>& pinned);

// The packs directory of one store. Any thread.
class Packs : public PackDir {
 public:
  Packs(SafePath store_path, IndexAccess& index);

  const SafePath& store_path() const { return store_path_; }

  Result<OpenPlace> open_blob(const ContentId& id);                           // find, open
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place);  // as Store::open_place()
  using PackDir::chunks;
  Result<std::vector<Digest>> chunks(const ContentId& id);  // as ClusterStore::chunks()

 private:
  Result<std::optional<BlobPlace>> find(const ContentId& id);
  const SafePath store_path_;
  IndexAccess& index_;
};

}  // namespace weft
