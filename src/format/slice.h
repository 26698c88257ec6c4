// A run of a file as a file of its own, such as a member of an archive (header only).
#pragma once

#include <fmt/core.h>

#include "weft/content.h"
#include "weft/model/format.h"

namespace weft {

class SliceSource final : public ByteSource {
 public:
  // `run` lies in `whole`, which outlives the slice.
  SliceSource(ByteSource& whole, Range run) : whole_(whole), run_(run) {}

  std::uint64_t size() const override { return run_.length; }
  Status read(std::uint64_t offset, std::span<std::byte> out) override {
    if (offset > run_.length || out.size() > run_.length - offset)
      return Error{Errc::internal, fmt::format("expected a read within {} bytes of a slice, got {} bytes at {}",
                                               run_.length, out.size(), offset)};
    return whole_.read(run_.offset + offset, out);
  }

 private:
  ByteSource& whole_;
  const Range run_;
};

}  // namespace weft
