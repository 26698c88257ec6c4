#include "packs/fresh_blobs.h"

#include <algorithm>

namespace weft {

std::size_t FreshBlobs::slot_of(const ContentId& id) const {
  std::size_t slot = std::hash<ContentId>{}(id) & (slots_.size() - 1);
  while (slots_[slot] != 0 && blobs_[slots_[slot] - 1].id != id) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void FreshBlobs::index(std::size_t number) {
  const bool full = 2 * (number + 1) > slots_.size();
  if (full) slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
  for (std::size_t i = full ? 0 : number; i <= number; ++i)
    if (std::uint32_t& slot = slots_[slot_of(blobs_[i].id)]; slot == 0) slot = static_cast<std::uint32_t>(i + 1);
}

std::optional<std::size_t> FreshBlobs::find(const ContentId& id) const {
  const std::uint32_t found = slots_.empty() ? 0 : slots_[slot_of(id)];
  return found == 0 ? std::nullopt : std::optional<std::size_t>(found - 1);
}

std::optional<std::size_t> FreshBlobs::find_hinted(std::uint64_t length, std::uint64_t hint) const {
  const auto at = hints_.find({length, hint});
  return at == hints_.end() ? std::nullopt : std::optional(at->second);
}

std::size_t FreshBlobs::claim(const ContentId& id, std::uint64_t hint, bool replaces) {
  std::size_t number = blobs_.size();
  blobs_.push_back({id, {}, hint, replaces});
  packs_of_.push_back(nullptr);
  index(number);
  if (hint != 0) hints_[{id.length, hint}] = number;
  return number;
}

void FreshBlobs::place(std::size_t number, PackWriter& pack, std::uint64_t offset, std::vector<Digest> chunks) {
  NewBlob& blob = blobs_[number];
  blob.place = {pack.id(), offset};
  packs_of_[number] = &pack;
  pack.list({blob.id, offset, std::move(chunks), blob.hint});
}

PackWriter* FreshBlobs::own(std::unique_ptr<PackWriter> pack) {
  if (in_memory_) pack->keep_in_memory();
  packs_.push_back(std::move(pack));
  return packs_.back().get();
}

Result<PackWriter*> FreshBlobs::new_pack() {
  WEFT_TRY(std::unique_ptr<PackWriter> pack, PackWriter::create(store_path_, temp_path_));
  return own(std::move(pack));
}

Result<PackWriter*> FreshBlobs::taken(const Source& source, Take take) {
  const auto make = source.arrives() ? PackWriter::take_arriving : PackWriter::take;
  WEFT_TRY(std::unique_ptr<PackWriter> pack, make(store_path_, temp_path_, source.fd(), take));
  if (!pack) return nullptr;
  return own(std::move(pack));
}

std::vector<std::size_t> FreshBlobs::numbers_in(const PackWriter& pack) const {
  std::vector<std::size_t> numbers;
  for (std::size_t number = 0; number < packs_of_.size(); ++number)
    if (packs_of_[number] == &pack) numbers.push_back(number);
  return numbers;
}

void FreshBlobs::move(std::size_t number, PackWriter& pack, std::uint64_t offset) {
  PackEntry entry = packs_of_[number]->take_entry(blobs_[number].id);
  entry.offset = offset;
  blobs_[number].place = {pack.id(), offset};
  packs_of_[number] = &pack;
  pack.list(std::move(entry));
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
  if (pack == mixed_) mixed_ = nullptr;
  return {};
}

Status FreshBlobs::drop_empty() {
  std::vector<PackWriter*> empty;
  for (const auto& pack : packs_)
    if (pack->empty()) empty.push_back(pack.get());
  for (PackWriter* pack : empty) WEFT_CHECK(drop(pack));
  return {};
}

}  // namespace weft
