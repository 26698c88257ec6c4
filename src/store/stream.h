// An extent that is larger than a window, passed through the windows slice by slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/pack_file.h"
#include "store/source.h"
#include "store/window.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

// One thread.
class WindowRing {
 public:
  WindowRing(ThreadPool& hashers, ThreadPool& writer, std::size_t count, std::size_t capacity);
  ImportWindow& next() { return *windows_[next_]; }  // what take() will give
  Result<ImportWindow*> take();                      // when the jobs on its former content are done
  Status wait_hashing();                             // of all windows
  Status wait_writing();
  bool writing_idle();  // what was to be written is

 private:
  std::vector<std::unique_ptr<ImportWindow>> windows_;
  std::size_t next_ = 0;
};

// Bytes in some pack that may be equal to those of a source.
struct Twin {
  int fd = -1;
  std::uint64_t offset = 0;
};
// Errc::io when they cannot be read.
Result<bool> equals_twin(std::span<const std::byte> bytes, const Twin& twin);
Result<bool> equal_twins(const Twin& a, const Twin& b, std::uint64_t length);

struct StreamPlan {
  Range range;
  bool prove = false;          // compute the SHA-256 tree
  PackWriter* into = nullptr;  // write it there, at `at`; the writes may go on after stream() returned
  std::uint64_t at = 0;
  std::optional<Twin> twin;  // compare with it
};
struct Streamed {
  ContentId id;  // root: with `prove`
  std::vector<Digest> chunks;
  bool equal = false;  // with `twin`
};
Result<Streamed> stream(WindowRing& ring, Source& source, const StreamPlan& plan);

}  // namespace weft
