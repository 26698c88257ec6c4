// The kernel's page cache: what of a file is in it, and bringing more in. Any thread.
#pragma once

#include <cstdint>

#include "weft/result.h"

namespace weft {

std::uint64_t page_bytes();

// How many pages of [offset, offset + length) are in the page cache, also those that are just being read.
// Errc::unsupported before Linux 6.5.
Result<std::uint64_t> cached_pages(int fd, std::uint64_t offset, std::uint64_t length);

// All of [offset, offset + length) is; not known is no.
bool all_cached(int fd, std::uint64_t offset, std::uint64_t length);

// Starts reading [offset, offset + length) into the page cache and does not wait for it. Best effort.
void start_reading(int fd, std::uint64_t offset, std::uint64_t length);

// The largest page of the page cache that is asked for here; a reader copies and maps it fastest.
inline constexpr std::uint64_t kLargePage = 2U << 20U;

// Brings [offset, offset + length), within one stretch of kLargePage, into the page cache: as one large page, waited
// for, where that is all of it and file system and processor have such; else as start_reading(). Nothing where its
// first page is there and others are not: somebody reads there. Best effort.
void bring_in(int fd, std::uint64_t offset, std::uint64_t length);

// What of [offset, offset + length) is in the page cache and not to be written any more leaves it: its pages are the
// next that somebody gets. Best effort.
void forget_pages(int fd, std::uint64_t offset, std::uint64_t length);

// Takes the pages of a mapping that is only read out of this process's memory, as far as they are in it. They stay in
// the page cache, and come back when somebody looks at them. Best effort.
void unload_mapped(const void* begin, std::uint64_t length);

// From now on a read of `fd` reads what was asked for and nothing ahead of it. Other descriptors are not concerned.
void read_exactly_from_now_on(int fd);

}  // namespace weft
