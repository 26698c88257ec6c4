#include "fetch/passing_bytes.h"

#include <fcntl.h>

#include <utility>

#include <fmt/core.h>

#include "blobs/held_pack.h"
#include "os/memory_file.h"
#include "os/sys.h"

namespace weft {

// Readers get a descriptor of their own that cannot write.
Result<std::shared_ptr<const PackReader>> passing_pack(std::span<const std::byte> bytes) {
  WEFT_TRY(const Fd written, memory_file("fetched bytes", bytes));
  WEFT_TRY(Fd read, open_file(fmt::format("/proc/self/fd/{}", written.get()), O_RDONLY));
  return std::shared_ptr<const PackReader>(std::make_shared<HeldPack>(std::move(read), bytes.size(), kPassingPack));
}

void PassingBytes::put(const ChunkRun& run, const OpenPlace& place) {
  chunks_.put({run.id, run.first}, std::make_shared<const OpenPlace>(place), run.length());
}

std::optional<OpenPlace> PassingBytes::find(const ChunkRun& run) {
  const auto found = chunks_.find({run.id, run.first});
  return found ? std::optional(*found) : std::nullopt;
}

}  // namespace weft
