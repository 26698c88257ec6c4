// The interface through which packs, imports and gc read and change the index. They do not know the folder `index`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "diskformat/pack_notes.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// A new blob of an import, and its place once the import's packs are placed.
struct NewBlob {
  ContentId id;
  BlobPlace place;
  std::uint64_t hint = 0;
  bool replaces = false;  // the indexed copy is damaged
};

// One state of the index, for reading. One thread.
class BlobIndex {
 public:
  virtual ~BlobIndex() = default;
  // The place of a local blob.
  virtual Result<std::optional<BlobPlace>> find(const ContentId& id) = 0;
  // Known content of this length whose first MiB probably has this hash (index/blobs.h).
  virtual Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint) = 0;
  virtual Result<bool> is_held(const ContentId& id) = 0;    // a version holds it
  virtual Result<bool> is_absent(const ContentId& id) = 0;  // needed by a version, but not local
  virtual Result<std::optional<BlobPlace>> find_manifest(const Digest& digest) = 0;  // in a pack
  virtual Result<std::uint64_t> in_pack(PackId pack) = 0;                            // count of blobs or manifests
  virtual Result<std::vector<VersionId>> unreaped() = 0;  // removed versions that a reader may have open
  // The packs that gc has to judge, and the packs with dead bytes that gc left in place. Both return the first
  // `count_max` packs with ids of at least `from`.
  virtual Result<std::vector<NotedPack>> queued(PackId from, std::size_t count_max) = 0;
  virtual Result<std::vector<NotedPack>> left_dead(PackId from, std::size_t count_max) = 0;
};

// A write transaction. Without commit() the destructor discards the changes.
class BlobWriter : public BlobIndex {
 public:
  virtual Status put(const ContentId& id, const BlobPlace& place) = 0;  // adds a blob, or moves it
  virtual Status erase(const ContentId& id, std::uint64_t hint) = 0;    // Errc::internal if a version holds it
  virtual Status put_manifest(const Digest& digest, const BlobPlace& place,
                              std::uint64_t length) = 0;  // no effect if no version needs the manifest
  virtual Status note(const PackVerdict& verdict) = 0;
  virtual Status note_cached(PackId pack, bool cached) = 0;  // whether eviction may delete the pack
  virtual Status commit() = 0;
};

// Opens transactions for packs, imports and gc.
class IndexAccess {
 public:
  virtual ~IndexAccess() = default;
  virtual Result<std::unique_ptr<BlobIndex>> read() = 0;    // keep it short: see Snapshot
  virtual Result<std::unique_ptr<BlobWriter>> write() = 0;  // waits for the writer lock
};

}  // namespace weft
