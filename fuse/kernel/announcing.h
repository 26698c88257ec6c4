// What the announcer (fuse/announce) and the servers of a mount tell each other. Remote changes raise no inotify event,
// so a process of ours performs each change that has happened through the mount, as if it made it. The server knows it
// by its pid, and answers with what is there. Lies in shared memory; zero bytes are a mount without an announcer.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace weft {

// What the announcer is about to do with a name. Its LOOKUP of the name is then answered as that operation needs.
enum class Announcing : std::uint32_t {
  nothing,          // it walks
  creation,         // mkdir of a directory that is there: the name is not
  removal_of_dir,   // rmdir of a directory that is gone: the name is there
  removal_of_link,  // unlink of a link that is gone: the name is there
  replacement,      // rename of kFlip to a link that is there
};

struct AnnounceWords {
  std::atomic<std::int32_t> pid;  // of the announcer, which has one thread; 0: there is none
  std::atomic<Announcing> intent;
  std::atomic<std::uint32_t> begun;     // 1: position counts
  std::atomic<std::uint64_t> position;  // of the journal: all before is announced
};
static_assert(std::atomic<Announcing>::is_always_lock_free);

// Names that are there for the announcer alone. A rename needs a source: a link. And a name behind kExpire is no longer
// known to the kernel soon after somebody looked this one up.
inline constexpr std::string_view kFlip = ".flip";
inline constexpr std::string_view kExpire = ".expire-";

}  // namespace weft
