// What the servers of one mount hand on to each other: memory that all of them and their supervisor map. It holds no
// pointers, and its layout has a version: a server refuses one that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sys.h"
#include "open_table.h"
#include "weft/result.h"

namespace weft {

struct SharedHead {
  std::uint64_t layout;      // kSharedLayout
  std::uint32_t generation;  // servers started before this one
  OpenTableHead opens;
};

class SharedState {
 public:
  static Result<SharedState> make();
  // Errc::unsupported when another layout lies there.
  static Result<SharedState> attach(Fd memory);

  SharedState(SharedState&& other) noexcept;
  SharedState& operator=(SharedState&& other) = delete;
  ~SharedState();

  int fd() const { return memory_.get(); }
  SharedHead& head() const { return *static_cast<SharedHead*>(map_); }
  std::span<OpenSlot> slots() const;

 private:
  SharedState(Fd memory, void* map) : memory_(std::move(memory)), map_(map) {}

  Fd memory_;
  void* map_;
};

}  // namespace weft
