// A file on disk for tests of the page cache.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "os/page_cache.h"
#include "os/sys.h"
#include "testing.h"

namespace weft::testing {

// Of `size` bytes, of which nothing is cached; nothing where that cannot be had or seen.
inline Fd cold_file(const TempDir& dir, std::uint64_t size) {
  auto opened = open_file(dir / "file", O_RDWR | O_CREAT);
  REQUIRE(opened.ok());
  Fd fd = std::move(opened).value();
  REQUIRE(append_exact(fd.get(), std::vector<std::byte>(size), "file").ok());
  REQUIRE(sync_file(fd.get(), "file").ok());
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto left = cached_pages(fd.get(), 0, size);
  return left.ok() && *left == 0 ? std::move(fd) : Fd();
}

}  // namespace weft::testing
