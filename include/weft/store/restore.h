// Makes a store from the contents of an origin (store/cluster/restore.cc). There is no store until finish(). A mark in
// tmp/ identifies the copied data, so that the next restore from the same origin into the same directory continues with
// it.
// For one thread, which holds the directory's lock; one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

class Progress;
class SafePath;  // os/safe_path.h
struct Maker;    // catalog/layout.h
struct PackToc;  // diskformat/toc.h

class StoreRestore {
 public:
  // Starts in a directory that is empty, does not exist, or has the remains of an earlier restore from the origin with
  // this id. Errors as Store::create.
  static Result<StoreRestore> begin(const std::string& store_path, std::string_view origin, const Patience& patience);
  StoreRestore(StoreRestore&& other) noexcept;
  ~StoreRestore();

  // True if this pack is there and lists these blobs at least. Deletes a pack that lacks some of them.
  Result<bool> has_pack(const PackToc& toc) const;
  // Returns the path of a new pack file below tmp/. add_pack() moves the file to the packs, with the blobs that `toc`
  // lists.
  SafePath pack_file() const;
  Status add_pack(const SafePath& file, const PackToc& toc) const;
  Status keep_packs(const std::set<PackId>& packs) const;  // deletes the others, which an earlier attempt needed
  Status add_manifest(const Digest& digest, std::span<const std::byte> bytes) const;

  // Fills the index with these changes alone: versions of one model by number, none twice. Their packs and manifests
  // are in place. `packs` of a version lists only packs with blobs that earlier versions lack. Returns impossible
  // changes, one line each.
  Result<std::vector<std::string>> take(std::span<const MirrorChange> changes, const ContentDecoder& decode,
                                        Progress& progress) const;
  Status finish() const;  // turns the directory into a store

 private:
  explicit StoreRestore(Maker maker);
  const SafePath& path() const;
  std::unique_ptr<const Maker> maker_;
};

}  // namespace weft
