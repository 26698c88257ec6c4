// Whether somebody used a page of the page cache: read(2), sendfile or a mapping of it, by any process. The kernel
// notes that for reclaim, and shows it to who may see page frames (Documentation/admin-guide/mm/pagemap.rst). Any
// thread.
#pragma once

#include <cstdint>
#include <optional>

namespace weft {

// Can it be seen here? Not without CAP_SYS_ADMIN in the first user namespace, and not where the kernel counts uses by
// generations (MGLRU): those counts are not shown.
bool page_use_seen();

// A cached page, as it was when it was first looked at. The kernel may give its frame to another file later: then
// what is told is of that, so it is a hint and nothing more.
struct PageUse {
  std::uint64_t frame = 0;
  std::uint64_t flags = 0;
};

// Nothing when the page at `offset` is not in the page cache or is still being read. Does not count as a use.
std::optional<PageUse> page_use(int fd, std::uint64_t offset);

// It was used before it was looked at first, or has been since.
bool used(const PageUse& page);

}  // namespace weft
