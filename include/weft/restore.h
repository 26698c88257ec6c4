// A store that is made from what an origin keeps (store/restore.cc). Until finish() there is no store: what was laid
// down is known by a mark in tmp/ and found again by the next who restores from the same origin into the same
// directory. For one thread, which holds the directory's lock; one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/cluster_store.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

class Progress;
class SafePath;  // os/safe_path.h
struct Maker;    // catalog/layout.h
struct PackToc;  // diskformat/toc.h

class StoreRestore {
 public:
  // In a directory that is empty, not there, or holds what an earlier one left, of the origin of this id. Errors as
  // Store::create.
  static Result<StoreRestore> begin(const std::string& store_path, std::string_view origin, const Patience& patience);
  StoreRestore(StoreRestore&& other) noexcept;
  ~StoreRestore();

  // Whether this pack is there, with these blobs at least; one that has not all of them is taken away.
  Result<bool> has_pack(const PackToc& toc) const;
  // A new file below tmp/ for a pack; add_pack() puts it where packs are, with the blobs that `toc` lists.
  SafePath pack_file() const;
  Status add_pack(const SafePath& file, const PackToc& toc) const;
  Status keep_packs(const std::set<PackId>& packs) const;  // takes others away, which an earlier one had needed
  Status add_manifest(const Digest& digest, std::span<const std::byte> bytes) const;

  // The index, of nothing but these changes: versions of one model by number, none twice. What they need is there.
  // `packs` of a version are those whose blobs nobody before it brought. Problems: what cannot be, one line each.
  Result<std::vector<std::string>> take(std::span<const MirrorChange> changes, const ContentDecoder& decode,
                                        Progress& progress) const;
  Status finish() const;  // now it is a store

 private:
  explicit StoreRestore(Maker maker);
  const SafePath& path() const;
  std::unique_ptr<const Maker> maker_;
};

}  // namespace weft
