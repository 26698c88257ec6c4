// Reads a bundle member by member, in the order of its list. What it reads is hostile. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/programs/bundle.h"
#include "weft/result.h"

namespace weft {

class BundleSource {
 public:
  virtual ~BundleSource() = default;
  // Begins the next member. Errc::corrupt: the bundle has no regular file of this name and size there.
  virtual Status begin(std::string_view name, std::uint64_t size) = 0;
  // Begins the first member, the list, and returns its size. Errc::corrupt as begin(), or beyond its bound.
  virtual Result<std::uint64_t> begin_list() = 0;
  // Fills `out` with the next bytes of the member. Errc::corrupt: it ends before.
  virtual Status read(std::span<std::byte> out) = 0;
  // Call after the last member. Errc::corrupt: further members follow, or the end of the tar is missing.
  virtual Status end() = 0;
};

Result<std::unique_ptr<BundleSource>> open_bundle(const BundleFiles& files);

// Reads and decodes the list.
Result<BundleList> read_list(BundleSource& source, std::string_view where);

}  // namespace weft
