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
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diskformat/toc.h"
#include "os/safe_path.h"
#include "packs/blob_index.h"
#include "weft/content.h"
#include "weft/fsck.h"
#include "weft/gc.h"
#include "weft/pack.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A new blob of an import and where it will be once the import's packs are in place.
struct NewBlob {
  ContentId id;
  BlobPlace place;
  std::uint64_t hint = 0;
  bool replaces = false;  // the copy that the index names is damaged
};

class AssembledPacks;
class PackListing;
class PackListings;

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
  // What the .toc that is there now lists, of those read lately.
  Result<std::shared_ptr<const PackListing>> listing(PackId pack) const;

 private:
  const SafePath path_;
  std::mutex mutex_;
  std::unordered_map<PackId, std::weak_ptr<const OpenPack>> open_;  // guarded by mutex_
  const std::shared_ptr<PackListings> listings_;
};

// The packs directory of one store. Any thread.
class Packs : public PackDir {
 public:
  Packs(SafePath store_path, IndexAccess& index);

  const SafePath& store_path() const { return store_path_; }

  Result<OpenPlace> open_blob(const ContentId& id);                           // find, open
  Result<OpenPlace> open_place(const ContentId& id, const BlobPlace& place);  // as Store::open_place()

 private:
  Result<std::optional<BlobPlace>> find(const ContentId& id);
  const SafePath store_path_;
  IndexAccess& index_;
};

// The pack side of one import: reads sources, finds what is known, writes what is new below tmp/. One thread calls it;
// it uses others. What was not placed when it is destroyed is removed.
class PackImport {
 public:
  virtual ~PackImport() = default;
  static Result<std::unique_ptr<PackImport>> begin(const SafePath& store_path, IndexAccess& index, Patience patience);
  virtual Result<std::vector<Extent>> add(int fd, std::string_view where, std::span<const Range> ranges,
                                          Progress& progress) = 0;
  // Makes the packs durable, still below tmp/. After a failure of this or the next only destruction is left.
  virtual Status seal() = 0;
  // Moves them to packs/. The caller holds the writer lock from here until the index has new_blobs(), or has what else
  // keeps gc from them.
  virtual Status place() = 0;
  Status finish() {
    WEFT_CHECK(seal());
    return place();
  }
  virtual std::span<const NewBlob> new_blobs() const = 0;
  virtual std::uint64_t shared_bytes() const = 0;  // logical bytes given to add() that were known
  // Opens the packs that this content is in, for as long as this lives.
  virtual Status hold(std::span<const ContentId> ids) = 0;
  // After seal(), under the writer lock: content that this import shares and that gc has freed since it was looked up.
  virtual Result<std::vector<ContentId>> lost() = 0;
  // Without the lock: stores it anew, from packs that this import has open, and durably. It is among new_blobs() then.
  virtual Status store_again(std::span<const ContentId> ids) = 0;
  virtual bool holds(PackId pack) const = 0;
};

struct CollectInput {
  GcOptions options;
  // Might a publish that a registry decides on need this pack, though the index does not say so? Under the writer lock.
  std::function<bool(const PackToc&)> is_relied_on = {};
  // What a removed version needs that is not reaped. Errc::not_found, Errc::corrupt: its manifest is lost.
  std::function<Result<std::vector<ContentId>>(VersionId)> content_of = {};
};
// Frees what no version needs. Packs in which nothing is live are deleted first; then packs with dead blobs are
// rewritten. Temporaries of processes that died go too.
Status collect_packs(Packs& packs, IndexAccess& index, const CollectInput& input, Progress& progress, GcReport& report);

// How verify_packs() reads, and where it begins and ends.
struct VerifyPace {
  BlobPlace from;  // blobs before it are left out
  // Called after each piece that was read. It may sleep.
  std::function<void(std::uint64_t bytes)> have_read;
  // Asked before each blob. True: it ends there, and `from` is that blob's place.
  std::function<bool()> is_over;
  bool over = false;
};

// Reads each pack's .toc (and, with `data`, its blobs) and compares them with their ids and the index.
// With a pace, one thread reads all blobs, in the order of their packs and places, and leaves the page cache as it was.
Status verify_packs(Packs& packs, IndexAccess& index, bool data, Progress& progress, FsckReport& report,
                    VerifyPace* pace = nullptr);
// A damaged assembled file may have the only whole copy of what is damaged in a pack. It is deleted only if no pack is
// damaged, or after a rebuild has taken what it needs.
enum class DamagedFiles : std::uint8_t { keep, remove };
inline DamagedFiles damaged_files_after(bool clean) {
  return clean ? DamagedFiles::remove : DamagedFiles::keep;
}
// The same of assembled files.
Status verify_assembled(AssembledPacks& assembled, bool data, DamagedFiles damaged, Progress& progress,
                        FsckReport& report, VerifyPace* pace = nullptr);

}  // namespace weft
