// What packs, imports and gc ask of the index, and what they give it. The room `index` is not among what they know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/pack_look.h"
#include "weft/content.h"
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

// What packs and gc ask of one state of the index. One thread.
class BlobIndex {
 public:
  virtual ~BlobIndex() = default;
  // Of a blob whose bytes are here.
  virtual Result<std::optional<BlobPlace>> find(const ContentId& id) = 0;
  // Content of this length that may begin with the bytes that the hint is of (tables.h).
  virtual Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint) = 0;
  virtual Result<bool> is_held(const ContentId& id) = 0;                             // does a live version need it?
  virtual Result<bool> is_absent(const ContentId& id) = 0;                           // does one, and it is not here?
  virtual Result<std::optional<BlobPlace>> find_manifest(const Digest& digest) = 0;  // in a pack, that a version needs
  virtual Result<std::uint64_t> in_pack(PackId pack) = 0;  // blobs or manifests that it has in this pack
  virtual Result<std::vector<VersionId>> unreaped() = 0;   // removed versions that a reader may have open
  // Packs that gc has to look at, and those in which it has left dead bytes: the first that are not below `from`.
  virtual Result<std::vector<NotedPack>> queued(PackId from, std::size_t count_max) = 0;
  virtual Result<std::vector<NotedPack>> left_dead(PackId from, std::size_t count_max) = 0;
};

// A write transaction: lost unless commit() is called.
class BlobWriter : public BlobIndex {
 public:
  virtual Status put(const ContentId& id, const BlobPlace& place) = 0;  // new or moved
  virtual Status erase(const ContentId& id, std::uint64_t hint) = 0;    // must not be held
  virtual Status put_manifest(const Digest& digest, const BlobPlace& place,
                              std::uint64_t length) = 0;  // of one that is needed
  virtual Status looked(const PackLook& look) = 0;
  virtual Status commit() = 0;
};

// How the pack side opens transactions.
class IndexAccess {
 public:
  virtual ~IndexAccess() = default;
  virtual Result<std::unique_ptr<BlobIndex>> read() = 0;    // short: see Snapshot
  virtual Result<std::unique_ptr<BlobWriter>> write() = 0;  // waits for the writer lock
};

}  // namespace weft
