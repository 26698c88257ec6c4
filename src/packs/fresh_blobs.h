// The new blobs of one import: what they are, and the packs that they are written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/blob_index.h"
#include "packs/pack_writer.h"
#include "weft/result.h"

namespace weft {

// One thread.
class FreshBlobs {
 public:
  // `in_memory`: PackWriter::keep_in_memory().
  FreshBlobs(SafePath store_path, SafePath temp_path, bool in_memory)
      : store_path_(std::move(store_path)), temp_path_(std::move(temp_path)), in_memory_(in_memory) {}

  // Numbers of blobs: of this content, and of the last one with this hint (tables.h).
  std::optional<std::size_t> find(const ContentId& id) const;
  std::optional<std::size_t> find_hinted(std::uint64_t length, std::uint64_t hint) const;
  // Says that there will be a blob, then where. Returns its number. `replaces`: the stored copy is damaged.
  std::size_t claim(const ContentId& id, std::uint64_t hint, bool replaces);
  void place(std::size_t number, PackWriter& pack, std::uint64_t offset, std::vector<Digest> chunks);

  // The blobs of a pack, and another place for one of them.
  std::vector<std::size_t> numbers_in(const PackWriter& pack) const;
  void move(std::size_t number, PackWriter& pack, std::uint64_t offset);

  const ContentId& id(std::size_t number) const { return blobs_[number].id; }
  const BlobPlace& place_of(std::size_t number) const { return blobs_[number].place; }
  PackWriter* pack_of(std::size_t number) const { return packs_of_[number]; }  // null until it is placed
  std::span<const NewBlob> all() const { return blobs_; }

  // Each keeps descriptors. With too many packs, files go to the mixed one.
  bool may_have_more() const { return packs_.empty() || !are_many_open(packs_.back()->fd()); }
  Result<PackWriter*> new_pack();  // for one file
  // That is this file itself (PackWriter::take); null where it cannot be.
  Result<PackWriter*> taken(int fd, Take take);
  Result<PackWriter*> mixed();    // for everything else
  Status drop(PackWriter* pack);  // one that nothing was placed in
  Status drop_empty();            // all such
  std::span<const std::unique_ptr<PackWriter>> packs() const { return packs_; }

 private:
  PackWriter* own(std::unique_ptr<PackWriter> pack);
  // A table of their numbers by the hash of their ids, open addressing: an import of a million small blobs has room for
  // little more.
  std::size_t slot_of(const ContentId& id) const;  // its own, or the free one where it belongs
  void index(std::size_t number);

  SafePath store_path_;
  SafePath temp_path_;
  const bool in_memory_;
  std::vector<NewBlob> blobs_;
  std::vector<PackWriter*> packs_of_;
  std::vector<std::uint32_t> slots_;  // numbers + 1; 0: free. A power of two, at most half full
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> hints_;  // by length and hint
  std::vector<std::unique_ptr<PackWriter>> packs_;
  PackWriter* mixed_ = nullptr;
};

}  // namespace weft
