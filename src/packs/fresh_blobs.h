// The new blobs of one import and the packs that they are written to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "os/safe_path.h"
#include "os/sys.h"
#include "packs/blob_index.h"
#include "packs/pack_writer.h"
#include "packs/source.h"
#include "weft/result.h"

namespace weft {

// One thread.
class FreshBlobs {
 public:
  // `in_memory`: PackWriter::keep_in_memory() for each pack.
  FreshBlobs(SafePath store_path, SafePath temp_path, bool in_memory)
      : store_path_(std::move(store_path)), temp_path_(std::move(temp_path)), in_memory_(in_memory) {}

  // Return the number of the blob with this content, and of the newest blob with this hint (index/blobs.h).
  std::optional<std::size_t> find(const ContentId& id) const;
  std::optional<std::size_t> find_hinted(std::uint64_t length, std::uint64_t hint) const;
  // claim() reserves a number for a new blob and returns it; place() sets the blob's place. `replaces`: the stored copy
  // is damaged.
  std::size_t claim(const ContentId& id, std::uint64_t hint, bool replaces);
  void place(std::size_t number, PackWriter& pack, std::uint64_t offset, std::vector<Digest> chunks);

  // numbers_in() returns the numbers of a pack's blobs; move() changes the place of one.
  std::vector<std::size_t> numbers_in(const PackWriter& pack) const;
  void move(std::size_t number, PackWriter& pack, std::uint64_t offset);

  const ContentId& id(std::size_t number) const { return blobs_[number].id; }
  const BlobPlace& place_of(std::size_t number) const { return blobs_[number].place; }
  PackWriter* pack_of(std::size_t number) const { return packs_of_[number]; }  // null before place()
  std::span<const NewBlob> all() const { return blobs_; }

  // False if many descriptors are open: each pack keeps some. More files then go to the mixed pack.
  bool may_have_more() const { return packs_.empty() || !are_many_open(packs_.back()->fd()); }
  Result<PackWriter*> new_pack();  // for one file
  // The file itself as a pack (PackWriter::take, take_arriving). Null if that is impossible.
  Result<PackWriter*> taken(const Source& source, Take take);
  Result<PackWriter*> mixed();    // for all other blobs
  Status drop(PackWriter* pack);  // a pack without blobs
  Status drop_empty();            // drops all packs without blobs
  std::span<const std::unique_ptr<PackWriter>> packs() const { return packs_; }

 private:
  PackWriter* own(std::unique_ptr<PackWriter> pack);
  // A hash table from id to number with open addressing. It is this compact because an import may have a million small
  // blobs.
  std::size_t slot_of(const ContentId& id) const;  // the slot of this id, or the free one where it belongs
  void index(std::size_t number);

  SafePath store_path_;
  SafePath temp_path_;
  const bool in_memory_;
  std::vector<NewBlob> blobs_;
  std::vector<PackWriter*> packs_of_;
  std::vector<std::uint32_t> slots_;  // number + 1; 0: free. The size is a power of two; at most half are used
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> hints_;  // by length and hint
  std::vector<std::unique_ptr<PackWriter>> packs_;
  PackWriter* mixed_ = nullptr;
};

}  // namespace weft
