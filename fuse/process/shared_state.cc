#include "fuse/process/shared_state.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/limits.h"

namespace weft {
namespace {

constexpr std::uint64_t kSharedLayout = 0x7765'6674'0000'000A;  // "weft", 10
constexpr std::size_t kHeadBytes = 8192;
constexpr std::size_t kBytes = kHeadBytes + limits::kOpenHandlesMax * sizeof(OpenSlot);  // only used pages take memory
static_assert(sizeof(SharedHead) <= kHeadBytes);

Result<void*> map_shared(int fd) {
  void* map = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (map == MAP_FAILED) return sys_error(errno, "mapping the state of a mount");
  return map;
}

}  // namespace

void set_shared_text(std::span<char> to, std::string_view text) {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::fill(std::copy_n(text.begin(), length, to.begin()), to.end(), '\0');
}

std::string shared_text(std::span<const char> from) {
  return {from.begin(), std::find(from.begin(), from.end(), '\0')};
}

Result<SharedState> SharedState::make() {
  Fd memory(::memfd_create("weft-mount", MFD_CLOEXEC));
  if (!memory.valid() || ::ftruncate(memory.get(), kBytes) != 0)
    return sys_error(errno, "memory for the state of a mount");
  WEFT_TRY(void* map, map_shared(memory.get()));
  SharedState state(std::move(memory), map);
  state.head().layout = kSharedLayout;
  set_shared_text(state.head().mount_id, random_hex(8));
  return state;
}

Result<SharedState> SharedState::attach(Fd memory) {
  WEFT_TRY(const auto facts, stat_fd(memory.get(), "the state of a mount"));
  if (static_cast<std::size_t>(facts.st_size) < kHeadBytes)
    return Error{Errc::unsupported,
                 fmt::format("the state of a mount: expected {} bytes, got {}", kBytes, facts.st_size)};
  WEFT_TRY(void* map, map_shared(memory.get()));
  SharedState state(std::move(memory), map);
  if (state.head().layout != kSharedLayout || static_cast<std::size_t>(facts.st_size) != kBytes)
    return Error{Errc::unsupported, fmt::format("the state of a mount: expected layout {:#x}, got {:#x}", kSharedLayout,
                                                state.head().layout)};
  return state;
}

SharedState::SharedState(SharedState&& other) noexcept
    : memory_(std::move(other.memory_)), map_(std::exchange(other.map_, nullptr)) {}

SharedState::~SharedState() {
  if (map_ != nullptr) ::munmap(map_, kBytes);
}

std::span<OpenSlot> SharedState::slots() const {
  auto* first = reinterpret_cast<OpenSlot*>(static_cast<std::byte*>(map_) + kHeadBytes);
  return {first, limits::kOpenHandlesMax};
}

}  // namespace weft
