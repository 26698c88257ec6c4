// Where a bundle is written. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/result.h"

namespace weft {

class BundleSink {
 public:
  virtual ~BundleSink() = default;  // without finish(), removes what was written
  // Begins the next member; exactly `size` bytes follow.
  virtual Status begin(std::string_view name, std::uint64_t size) = 0;
  virtual Status write(std::span<const std::byte> bytes) = 0;
  // Makes the bundle durable and gives it its name. Errc::exists.
  virtual Status finish() = 0;
};

// `path`: the name of the bundle. It is written beside it under a name that begins with a dot, which the next attempt
// takes over if this process is killed. Errc::exists: the path exists. Errc::busy: another process writes the bundle.
Result<std::unique_ptr<BundleSink>> bundle_file(const std::string& path, std::uint64_t created_ns);
Result<std::unique_ptr<BundleSink>> bundle_directory(const std::string& path);
// Writes a tar to this descriptor, which may be a pipe and stays open.
std::unique_ptr<BundleSink> bundle_stream(int fd, std::string where, std::uint64_t created_ns);

}  // namespace weft
