// Tells whether a page of the page cache was used: by read(2), by sendfile or through a mapping, by any process. The
// kernel records uses for reclaim, and shows the records to a process that may see page frames
// (Documentation/admin-guide/mm/pagemap.rst). Any thread.
//
// A page that the kernel read ahead, or that bring_in() brought in, is unused until a reader reaches it. The first use
// marks the page as referenced or as mapped, also with multi-generation LRU. The further counters of that LRU are
// neither visible nor needed.
#pragma once

#include <cstdint>

namespace weft {

// False without CAP_SYS_ADMIN in the first user namespace, or without /proc/kpageflags.
bool page_use_seen();

// False also if the page at `offset` is not cached, or if its use cannot be seen. The call itself is not a use.
bool page_used(int fd, std::uint64_t offset);

}  // namespace weft
