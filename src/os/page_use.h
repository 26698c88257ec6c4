// Whether a page of the page cache was used: by read(2), by sendfile or through a mapping, by any process. The kernel
// notes uses for reclaim, and shows the notes to a process that may see page frames
// (Documentation/admin-guide/mm/pagemap.rst). Any thread.
//
// A page that the kernel read ahead, or that bring_in() brought in, is not used until a reader comes to it. The first
// use marks the page as referenced, or as mapped, with multi-generation LRU too: what that LRU counts beside these
// marks is not shown, and not needed.
#pragma once

#include <cstdint>

namespace weft {

// False without CAP_SYS_ADMIN in the first user namespace, or without /proc/kpageflags.
bool page_use_seen();

// False also if the page at `offset` is not in the page cache, or if its use cannot be seen. Asking is no use.
bool page_used(int fd, std::uint64_t offset);

}  // namespace weft
