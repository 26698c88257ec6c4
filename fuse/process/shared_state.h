// What the servers of one mount hand on to each other: memory that all of them and their supervisor map. It holds no
// pointers, and its layout has a version: a server refuses one that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuse/kernel/announcing.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/request_log.h"
#include "fuse/process/open_table.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kSharedTextMax = 192;

struct SharedHead {
  std::uint64_t layout;  // kSharedLayout
  // Written by the supervisor before a server starts. Texts end with a zero byte.
  std::int32_t supervisor_pid;
  std::uint32_t generation;                  // servers started before this one
  std::uint32_t restarts;                    // of them, those that were lost
  std::uint32_t by_fusermount;               // 1: an ordinary user's mount
  char mount_id[24];                         // no other mount has it
  char mount_device[32];                     // "major:minor" of the mount; empty: not known
  char last_loss[kSharedTextMax];            // why the last restart
  char passthrough_refused[kSharedTextMax];  // why passthrough is not even tried; empty: it is
  char control[kSharedTextMax];              // the supervisor's socket for `weft mount --upgrade`
  InitWords init;
  // Written by servers.
  OpenTableHead opens;
  AnnounceWords announce;  // by the supervisor and the announcer too
  RequestWords requests;
};

// Cuts what is too long.
void set_shared_text(std::span<char> to, std::string_view text);
std::string shared_text(std::span<const char> from);

class SharedState {
 public:
  static Result<SharedState> make();
  // Errc::unsupported when another layout lies there.
  static Result<SharedState> attach(Fd memory);

  SharedState(SharedState&& other) noexcept;
  SharedState& operator=(SharedState&& other) = delete;
  ~SharedState();

  int fd() const { return memory_.get(); }  // close-on-exec
  SharedHead& head() const { return *static_cast<SharedHead*>(map_); }
  std::span<OpenSlot> slots() const;

 private:
  SharedState(Fd memory, void* map) : memory_(std::move(memory)), map_(map) {}

  Fd memory_;
  void* map_;
};

}  // namespace weft
