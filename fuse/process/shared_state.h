// The state that the servers of a mount pass on: memory mapped by all of them and by their supervisor. It holds no
// pointers, and its layout has a version: a server refuses a layout that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuse/kernel/announcing.h"
#include "fuse/kernel/init_exchange.h"
#include "fuse/kernel/request_log.h"
#include "fuse/process/known_rights.h"
#include "fuse/process/open_table.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft {

inline constexpr std::size_t kSharedTextMax = 192;

enum class MountedBy : std::uint32_t {
  this_program,   // by mount(2)
  fusermount,     // fusermount3, which also unmounts
  other_process,  // which passed its descriptor, and unmounts
};

struct SharedHead {
  std::uint64_t layout;  // kSharedLayout
  // Written by the supervisor before a server starts. Texts are zero-terminated.
  std::int32_t supervisor_pid;
  std::uint32_t generation;  // servers started before this one
  std::uint32_t restarts;    // servers that were lost before this one
  MountedBy mounted_by;
  char mount_id[24];                         // unique among mounts
  char mount_device[32];                     // "major:minor" of the mount; empty: unknown
  char last_loss[kSharedTextMax];            // reason of the last restart
  char passthrough_refused[kSharedTextMax];  // why passthrough is not tried; empty: it is tried
  char control[kSharedTextMax];              // the supervisor's socket for `weft mount --upgrade`
  InitWords init;
  // Written by servers.
  OpenTableHead opens;
  AnnounceWords announce;  // also by the supervisor and the announcer
  RequestWords requests;
  RightsWords rights;
};

// Truncates `text` to fit.
void set_shared_text(std::span<char> to, std::string_view text);
std::string shared_text(std::span<const char> from);

class SharedState {
 public:
  static Result<SharedState> make();
  // Errc::unsupported if the memory has another layout.
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
