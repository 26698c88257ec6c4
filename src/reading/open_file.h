// Open files of the mounted tree: bytes in memory, followed by blobs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blobs/open_blobs.h"
#include "reading/prefetch.h"
#include "weft/bytes/pack.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"

namespace weft {

// The read-ahead of a file: a prefetcher, and the offsets of the tensors, ascending. Without a prefetcher or without
// borders nothing is read ahead. But a file of one tensor needs no borders: its sequential readers are read ahead of.
struct ReadAhead {
  Prefetcher* prefetcher = nullptr;  // outlives the file
  std::vector<std::uint64_t> borders;
  bool one_tensor = false;  // then without borders
};

// Returns the error with the name of a file before its message.
inline Error error_at(std::string_view where, Error error) {
  error.message = std::string(where) + ": " + error.message;
  return error;
}

// Opens the file `head` ‖ blob 0 ‖ blob 1 ‖ …; none of the blobs is empty. `where` starts error messages. The file
// needs neither the store's index nor the version after the open.
Result<std::shared_ptr<OpenFile>> open_blobs(Store& store, std::string where, std::string head,
                                             std::span<const ContentId> blobs, const ReadAhead& ahead = {},
                                             Remembered known = {});

// Opens a whole pack as a file.
std::shared_ptr<OpenFile> open_pack(std::string where, std::shared_ptr<const PackReader> pack, const ReadAhead& ahead);

std::shared_ptr<OpenFile> open_text(std::string text, ReadMode mode = ReadMode::cached);

}  // namespace weft
