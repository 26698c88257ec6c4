// The kernel's page cache: which pages of a file it holds, and how to bring in more. Any thread.
#pragma once

#include <cstdint>

#include "weft/result.h"

namespace weft {

std::uint64_t page_bytes();

// Returns the number of pages of [offset, offset + length) in the page cache, including pages that are being read.
// Errc::unsupported before Linux 6.5.
Result<std::uint64_t> cached_pages(int fd, std::uint64_t offset, std::uint64_t length);

// True if all of [offset, offset + length) is in the page cache; false if that is unknown.
bool all_cached(int fd, std::uint64_t offset, std::uint64_t length);

// Starts reading [offset, offset + length) into the page cache and does not wait for it. Best effort.
void start_reading(int fd, std::uint64_t offset, std::uint64_t length);

// The page size that bring_in() asks for; readers copy and map pages of this size fastest.
inline constexpr std::uint64_t kLargePage = 2U << 20U;

// Brings [offset, offset + length), within one aligned stretch of kLargePage, into the page cache. If the range is the
// whole stretch, and the file system and the processor support it, waits for one large page; else works as
// start_reading(). Does nothing if the first page is cached but later pages are missing: a reader is active there. Best
// effort.
void bring_in(int fd, std::uint64_t offset, std::uint64_t length);

// Drops the clean pages of [offset, offset + length) from the page cache, so that the kernel can reuse them first. Best
// effort.
void forget_pages(int fd, std::uint64_t offset, std::uint64_t length);

// Removes the resident pages of a read-only mapping from this process's memory. They stay in the page cache, and the
// next access maps them again. Best effort.
void unload_mapped(const void* begin, std::uint64_t length);

// Turns off readahead for `fd`: a read reads only the requested bytes. Separately opened descriptors keep it.
void read_exactly_from_now_on(int fd);

}  // namespace weft
