// The new blobs of one import: what they are, and the packs that they are written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/pack_file.h"
#include "store/packs.h"
#include "weft/result.h"

namespace weft {

// One thread.
class FreshBlobs {
 public:
  FreshBlobs(std::string store_path, std::string temp_path)
      : store_path_(std::move(store_path)), temp_path_(std::move(temp_path)) {}

  // Numbers of the blobs with this length and XXH3-128.
  std::vector<std::size_t> find(std::uint64_t length, const Hash128& xxh) const;
  bool any_of_length(std::uint64_t length) const { return lengths_.contains(length); }
  // Says that there will be a blob, then where. Returns its number.
  std::size_t claim(const ContentId& id);
  void place(std::size_t number, PackWriter& pack, std::uint64_t offset, std::vector<Digest> chunks);

  const ContentId& id(std::size_t number) const { return blobs_[number].id; }
  const BlobPlace& place_of(std::size_t number) const { return blobs_[number].place; }
  PackWriter* pack_of(std::size_t number) const { return packs_of_[number]; }  // null until it is placed
  std::span<const NewBlob> all() const { return blobs_; }

  Result<PackWriter*> new_pack();  // for one file
  Result<PackWriter*> mixed();     // for everything else
  Status drop(PackWriter* pack);   // one that nothing was placed in
  std::span<const std::unique_ptr<PackWriter>> packs() const { return packs_; }

 private:
  struct Key {
    std::uint64_t length;
    Hash128 xxh;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return std::hash<ContentId>{}({key.length, key.xxh, {}}); }
  };
  std::string store_path_;
  std::string temp_path_;
  std::vector<NewBlob> blobs_;
  std::vector<PackWriter*> packs_of_;
  std::unordered_multimap<Key, std::size_t, KeyHash> numbers_;
  std::unordered_set<std::uint64_t> lengths_;
  std::vector<std::unique_ptr<PackWriter>> packs_;
  PackWriter* mixed_ = nullptr;
};

}  // namespace weft
