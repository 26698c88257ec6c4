#include "node/direct_read.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/core.h>

#include "base/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kBlock = 4096;  // of any disk that is made

}  // namespace

Result<SourceBytes> read_direct(int fd, std::uint64_t offset, std::size_t length, std::string_view where) {
  const std::uint64_t begin = offset / kBlock * kBlock;
  const std::size_t before = static_cast<std::size_t>(offset - begin);
  const std::size_t size = (before + length + kBlock - 1) / kBlock * kBlock;
  const std::shared_ptr<std::byte[]> memory(static_cast<std::byte*>(std::aligned_alloc(kBlock, size)), std::free);
  if (!memory) return Error{Errc::io, fmt::format("{}: no memory for {} bytes", where, size)};
  WEFT_TRY(const std::size_t got, read_some(fd, begin, {memory.get(), size}, where));
  const std::size_t useful = got > before ? std::min(got - before, length) : 0;
  SourceBytes bytes;
  bytes.memory = {memory, memory.get() + before};
  bytes.size = useful;
  return bytes;
}

}  // namespace weft
