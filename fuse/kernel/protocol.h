// Parts of the kernel's FUSE protocol (7.41) that libfuse 3.14 and older kernel headers lack. Layouts and numbers are
// those of Linux's include/uapi/linux/fuse.h.
#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace weft {

inline constexpr std::size_t kReadBytesMax = 1U << 20U;  // per request: the kernel's limit without fs.fuse settings

}  // namespace weft

namespace weft::kernel {

inline constexpr std::uint32_t kOpLookup = 1;
inline constexpr std::uint32_t kOpForget = 2;
inline constexpr std::uint32_t kOpGetattr = 3;
inline constexpr std::uint32_t kOpOpen = 14;
inline constexpr std::uint32_t kOpRead = 15;
inline constexpr std::uint32_t kOpWrite = 16;
inline constexpr std::uint32_t kOpInit = 26;
inline constexpr std::uint32_t kOpOpendir = 27;
inline constexpr std::uint32_t kOpReaddir = 28;
inline constexpr std::uint32_t kOpCreate = 35;
inline constexpr std::uint32_t kOpInterrupt = 36;
inline constexpr std::uint32_t kOpPoll = 40;
inline constexpr std::uint32_t kOpBatchForget = 42;
inline constexpr std::uint32_t kOpReaddirPlus = 44;
inline constexpr std::uint32_t kOpStatx = 52;
inline constexpr std::int32_t kNotifyPoll = 1;               // in OutHeader::error, with unique 0
inline constexpr std::int32_t kNotifyResend = 7;             // in OutHeader::error, with unique 0
inline constexpr std::uint64_t kUniqueResend = 1ULL << 63U;  // in InHeader::unique: the kernel sends this request again

struct InHeader {
  std::uint32_t length;
  std::uint32_t opcode;
  std::uint64_t unique;
  std::uint64_t nodeid;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint32_t pid;
  std::uint16_t extension_length;
  std::uint16_t padding;
};
static_assert(sizeof(InHeader) == 40);

struct OutHeader {
  std::uint32_t length;
  std::int32_t error;
  std::uint64_t unique;
};
static_assert(sizeof(OutHeader) == 16);

struct PollIn {
  std::uint64_t handle;
  std::uint64_t poll_handle;
  std::uint32_t flags;
  std::uint32_t events;
};
static_assert(sizeof(PollIn) == 24);

inline constexpr std::uint32_t kPollSchedulesNotify = 1U << 0U;

struct NotifyPollOut {
  OutHeader header;
  std::uint64_t poll_handle;
};
static_assert(sizeof(NotifyPollOut) == 24);

// Kernels before 7.36 send only the first 16 bytes.
struct InitIn {
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t readahead_bytes_max;
  std::uint32_t flags;
  std::uint32_t flags2;
  std::uint32_t unused[11];
};
static_assert(sizeof(InitIn) == 64);

struct InitOut {
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t readahead_bytes_max;
  std::uint32_t flags;
  std::uint16_t background_max;
  std::uint16_t congestion_threshold;
  std::uint32_t write_bytes_max;
  std::uint32_t time_gran_ns;
  std::uint16_t pages_max;
  std::uint16_t map_alignment;
  std::uint32_t flags2;
  std::uint32_t stack_depth_max;
  std::uint32_t unused[6];
};
static_assert(sizeof(InitOut) == 64);

inline constexpr std::uint32_t kNoOpendirFlag = 1U << 29U;  // FUSE_NO_OPENDIR_SUPPORT
inline constexpr std::uint32_t kInitExt = 1U << 30U;        // in flags: flags2 is valid
// Bit 36, FUSE_DIRECT_IO_ALLOW_MMAP: a file open with direct I/O (.weft/status, versions.tsv, hub/…/refs) can be mapped
// with MAP_SHARED. Each new mapping drops the pages of earlier ones, so it shows the current text. Before Linux 6.6
// such an mmap(2) fails with ENODEV; read(2) and MAP_PRIVATE work on every kernel.
inline constexpr std::uint32_t kDirectMapsFlag2 = 1U << 4U;
inline constexpr std::uint32_t kPassthroughFlag2 = 1U << 5U;  // bit 37 of the 64-bit flags
inline constexpr std::uint32_t kHasResendFlag2 = 1U << 7U;    // bit 39: the kernel supports kNotifyResend
// Bit 40, FUSE_ALLOW_IDMAP (Linux 6.12): mount_setattr(2) may give a bind mount of this one an id mapping. The kernel
// then maps owners and checks modes itself: without default_permissions it breaks the connection at this flag. From
// then on only requests that create an entry name a user; the ids of all others are ~0.
inline constexpr std::uint32_t kIdMapsFlag2 = 1U << 8U;

// A notification is a reply with unique 0. Its code takes the place of the error.

struct Attr {
  std::uint64_t ino, size, blocks, atime, mtime, ctime;
  std::uint32_t atime_ns, mtime_ns, ctime_ns, mode, nlink, uid, gid, rdev, blksize, flags;
};
static_assert(sizeof(Attr) == 88);

struct EntryOut {
  std::uint64_t nodeid, generation, entry_valid, attr_valid;
  std::uint32_t entry_valid_ns, attr_valid_ns;
  Attr attr;
};
static_assert(sizeof(EntryOut) == 128);

struct OpenOut {
  std::uint64_t handle;
  std::uint32_t open_flags;
  std::int32_t backing_id;
};
static_assert(sizeof(OpenOut) == 16);

inline constexpr std::uint32_t kOpenNoFlush = 1U << 5U;
inline constexpr std::uint32_t kOpenPassthrough = 1U << 7U;

struct BackingMap {
  std::int32_t fd;
  std::uint32_t flags;
  std::uint64_t padding;
};
static_assert(sizeof(BackingMap) == 16);

inline constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
inline constexpr unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);

}  // namespace weft::kernel
