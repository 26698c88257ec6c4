// Packs: files that hold blobs, each with a table of contents beside it.
//   packs/<id>.pack   bytes only: a published file as it is, or blobs one after the other
//   packs/<id>.toc    one record: the pack's size, its blobs (id, offset) and their chunk digests
// Ids are random, 16 hex digits; files appear by rename, whole and durable. A pack never grows; gc punches holes into
// it (after its .toc has forgotten those blobs), or removes it. Locks: who reads or relies on a pack holds a shared
// flock on its .pack; gc changes it only under an exclusive one. A cached pack does grow: it has its size from the
// start, and its .toc is replaced when more of it has come, also while others read what was listed before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/index.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

struct PackEntry {
  ContentId id;
  std::uint64_t offset = 0;
  std::vector<Digest> chunks;
  std::uint64_t hint = 0;  // tables.h; 0: unknown
};

// Where a blob is said to lie in a pack that lost its table of contents; not verified.
struct PlacedBlob {
  ContentId id;
  std::uint64_t offset = 0;
  std::uint64_t hint = 0;  // as PackEntry::hint
};

struct PackToc {
  PackId pack = 0;
  std::uint64_t size = 0;
  std::vector<PackEntry> entries;  // by offset
  bool cached = false;             // fetched: it may be evicted, and more blobs may come into it
  bool promoted = false;           // not cached any more, since a publish needed it; others have its bytes too
};

// Whether it has this blob there.
bool lists_blob(const PackToc& toc, const ContentId& id, std::uint64_t offset);

// A new blob of an import and where it will be once the import's packs are in place.
struct NewBlob {
  ContentId id;
  BlobPlace place;
  std::uint64_t hint = 0;
  bool replaces = false;  // the copy that the index names is damaged
};

class PackListing;
class PackListings;

// A pack that is open and locked. Any thread.
class OpenPack : public PackReader {
 public:
  // Errc::corrupt, with what to do about it: the pack does not list this blob there, or ends before.
  virtual Status check_place(const ContentId& id, std::uint64_t offset) const = 0;
  virtual void prepare() const = 0;  // reads the .toc now, so that check_place() waits for no disk
};

// The packs directory of one store. Any thread.
class Packs {
 public:
  Packs(std::string store_path, IndexAccess& index, Patience patience = {});
  ~Packs();

  const std::string& store_path() const { return path_; }

  // Waits for a gc that is at this pack: hold no transaction meanwhile. not_found when it is gone. Those who hold one
  // pack at a time share one reader.
  Result<std::shared_ptr<const OpenPack>> open(PackId pack);
  Result<LockedPlace> lock_blob(const ContentId& id);                           // find, open, lock, find again
  Result<LockedPlace> lock_place(const ContentId& id, const BlobPlace& place);  // as Store::lock_place()
  Result<std::vector<PackId>> list();
  Result<PackToc> toc(PackId pack);

 private:
  Result<std::optional<BlobPlace>> find(const ContentId& id);
  Result<std::shared_ptr<const OpenPack>> open_and_lock(PackId pack);
  const std::string path_;
  IndexAccess& index_;
  const Patience patience_;
  std::mutex mutex_;
  std::unordered_map<PackId, std::weak_ptr<const OpenPack>> open_;  // guarded by mutex_
  const std::shared_ptr<PackListings> listings_;
};

// The pack side of one import: reads sources, finds what is known, writes what is new below tmp/. One thread calls it;
// it uses others. Locks what it relies on until it is destroyed; what was not finished then is removed.
class PackImport {
 public:
  virtual ~PackImport() = default;
  static Result<std::unique_ptr<PackImport>> begin(const std::string& store_path, IndexAccess& index,
                                                   Patience patience);
  virtual Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges,
                                          Progress& progress) = 0;
  // Makes the packs durable, still below tmp/. After a failure of this or the next only destruction is left.
  virtual Status seal() = 0;
  // Moves them to packs/. Afterwards new_blobs() may be put into the index; until this object goes, gc cannot touch
  // them.
  virtual Status place() = 0;
  Status finish() {
    WEFT_CHECK(seal());
    return place();
  }
  virtual std::span<const NewBlob> new_blobs() const = 0;
  virtual std::uint64_t shared_bytes() const = 0;  // logical bytes given to add() that were known
  // Keeps all of this content that is here where it is, for as long as this lives.
  virtual Status hold(std::span<const ContentId> ids) = 0;
  virtual bool holds(PackId pack) const = 0;
};

// Frees what no version needs: erases dead rows, rewrites .toc, punches, compacts, removes; and temporaries of imports
// that died. Skips packs that are in use.
Status collect_packs(Packs& packs, const std::string& store_path, IndexAccess& index, const GcOptions& options,
                     Progress& progress, GcReport& report);

// Reads each pack's .toc (and, with `data`, its blobs) and compares them with their ids and the index.
Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report);

}  // namespace weft
