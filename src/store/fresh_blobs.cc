#include "store/fresh_blobs.h"

#include <algorithm>

namespace weft {

std::vector<std::size_t> FreshBlobs::find(std::uint64_t length, const Hash128& xxh) const {
  std::vector<std::size_t> numbers;
  auto [begin, end] = numbers_.equal_range(Key{length, xxh});
  for (auto it = begin; it != end; ++it) numbers.push_back(it->second);
  return numbers;
}

std::size_t FreshBlobs::claim(const ContentId& id) {
  std::size_t number = blobs_.size();
  blobs_.push_back({id, {}});
  packs_of_.push_back(nullptr);
  numbers_.emplace(Key{id.length, id.xxh}, number);
  lengths_.insert(id.length);
  return number;
}

void FreshBlobs::place(std::size_t number, PackWriter& pack, std::uint64_t offset, std::vector<Digest> chunks) {
  blobs_[number].place = {pack.id(), offset};
  packs_of_[number] = &pack;
  pack.list({blobs_[number].id, offset, std::move(chunks)});
}

Result<PackWriter*> FreshBlobs::new_pack() {
  WEFT_TRY(std::unique_ptr<PackWriter> pack, PackWriter::create(store_path_, temp_path_));
  packs_.push_back(std::move(pack));
  return packs_.back().get();
}

Result<PackWriter*> FreshBlobs::mixed() {
  if (mixed_ == nullptr) {
    WEFT_TRY(mixed_, new_pack());
  }
  return mixed_;
}

Status FreshBlobs::drop(PackWriter* pack) {
  auto at = std::find_if(packs_.begin(), packs_.end(), [&](const auto& owned) { return owned.get() == pack; });
  WEFT_CHECK(pack->unlink());
  packs_.erase(at);
  return {};
}

}  // namespace weft
