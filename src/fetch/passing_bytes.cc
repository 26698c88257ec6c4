#include "fetch/passing_bytes.h"

#include <algorithm>
#include <utility>

#include "os/memory_file.h"

namespace weft {
namespace {

constexpr std::uint64_t kPackBytesMin = 256U << 10U;

class PassingPack final : public PackReader {
 public:
  PassingPack(std::unique_ptr<const LentMemory> memory, std::uint64_t size) : memory_(std::move(memory)), size_(size) {}
  int fd() const override { return memory_->fd(); }
  std::uint64_t size() const override { return size_; }
  PackId id() const override { return kPassingPack; }
  const std::byte* map() const override { return nullptr; }

 private:
  const std::unique_ptr<const LentMemory> memory_;
  const std::uint64_t size_;
};

class PassOnlyPack final : public FetchPack {
 public:
  PassOnlyPack(std::unique_ptr<const LentMemory> empty, std::uint64_t size) : empty_(std::move(empty)), size_(size) {}
  PackId id() const override { return kPassingPack; }
  int fd() const override { return empty_->fd(); }
  std::uint64_t size() const override { return size_; }
  Result<std::size_t> add(std::span<const FetchedBlob> /*blobs*/) override {
    return Error{Errc::no_space, "the disk has no space for a pack of fetched bytes"};
  }

 private:
  const std::unique_ptr<const LentMemory> empty_;
  const std::uint64_t size_;
};

}  // namespace

Result<std::shared_ptr<const PackReader>> passing_pack(std::span<const std::byte> bytes) {
  WEFT_TRY(auto memory, LentMemory::make("fetched bytes", bytes));
  return std::shared_ptr<const PackReader>(std::make_shared<PassingPack>(std::move(memory), bytes.size()));
}

Result<std::unique_ptr<FetchPack>> pass_only_pack(std::uint64_t size) {
  WEFT_TRY(auto empty, LentMemory::make("no pack", {}));
  return std::unique_ptr<FetchPack>(std::make_unique<PassOnlyPack>(std::move(empty), size));
}

// Counts the descriptors of small packs too.
std::uint64_t PassingBytes::Pack::memory_bytes() const {
  return std::max(reader->size(), kPackBytesMin);
}

void PassingBytes::put(std::span<const ChunkRun> runs, const std::shared_ptr<const PackReader>& pack) {
  Pack& added = packs_.emplace_back(Pack{pack, {}, Clock::now()});
  bytes_ += added.memory_bytes();
  std::uint64_t offset = 0;
  for (const ChunkRun& run : runs) {
    added.chunks.push_back({run.id, run.first});
    places_[added.chunks.back()] = {pack, offset};
    offset += run.length();
  }
  while (bytes_ > bytes_max_ && packs_.size() > 1) drop_oldest();
}

std::optional<OpenPlace> PassingBytes::find(const ChunkRun& run) const {
  const auto found = places_.find({run.id, run.first});
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

void PassingBytes::drop_older(Clock::duration age) {
  const auto end = Clock::now() - age;
  while (!packs_.empty() && packs_.front().came <= end) drop_oldest();
}

void PassingBytes::drop_oldest() {
  const Pack& oldest = packs_.front();
  for (const PassingChunk& chunk : oldest.chunks)
    if (const auto place = places_.find(chunk); place != places_.end() && place->second.pack == oldest.reader)
      places_.erase(place);
  bytes_ -= oldest.memory_bytes();
  packs_.pop_front();
}

}  // namespace weft
