#include "fetch/passing_bytes.h"

#include <utility>

#include "os/memory_file.h"

namespace weft {
namespace {

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

}  // namespace

Result<std::shared_ptr<const PackReader>> passing_pack(std::span<const std::byte> bytes) {
  WEFT_TRY(auto memory, LentMemory::make("fetched bytes", bytes));
  return std::shared_ptr<const PackReader>(std::make_shared<PassingPack>(std::move(memory), bytes.size()));
}

void PassingBytes::put(const ChunkRun& run, const OpenPlace& place) {
  chunks_.put({run.id, run.first}, std::make_shared<const OpenPlace>(place), run.length());
}

std::optional<OpenPlace> PassingBytes::find(const ChunkRun& run) {
  const auto found = chunks_.find({run.id, run.first});
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace weft
