// Shared words between the announcer (fuse/announce) and the servers of a mount. Changes made outside of a mount raise
// no inotify event, so a process of ours repeats each of them through the mount as a system call. The server recognizes
// the process by its pid and answers with what is already there. In shared memory; zero bytes mean a mount without an
// announcer.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace weft {

// The system call that the announcer is about to make on a name. The server answers the LOOKUP before it accordingly.
enum class Announcing : std::uint32_t {
  nothing,          // no call: lookups are answered as for any process
  creation,         // mkdir of an existing directory: LOOKUP says that the name is absent
  removal_of_dir,   // rmdir of a removed directory: LOOKUP says that the name exists
  removal_of_link,  // unlink of a removed link: LOOKUP says that the name exists
  replacement,      // rename of kFlip to an existing link
};

struct AnnounceWords {
  std::atomic<std::int32_t> pid;  // of the announcer, which has one thread; 0: no announcer
  std::atomic<Announcing> intent;
  std::atomic<std::uint32_t> begun;     // 1: position is valid
  std::atomic<std::uint64_t> position;  // of the journal; everything before it is announced
};
static_assert(std::atomic<Announcing>::is_always_lock_free);

// Names that exist for the announcer only. kFlip is a link: the source that a rename needs. A lookup of kExpire + NAME
// makes the kernel forget NAME soon after.
inline constexpr std::string_view kFlip = ".flip";
inline constexpr std::string_view kExpire = ".expire-";

}  // namespace weft
