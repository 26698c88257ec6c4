// Open files some of whose bytes are not on this node: read as they come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/cold.h"
#include "weft/store.h"
#include "weft/vfs.h"

namespace weft {

// Who brings what is not here, and how.
struct Cold {
  ColdReads* reads = nullptr;        // outlives what is opened; none: what is not here cannot be read
  std::optional<ColdPolicy> policy;  // without: as `reads` advises
};

// Bytes that cannot be brought are Errc::io to their reader, but for a full disk and a reader that was killed. The
// message stays.
Status as_io(Status status);

// Where a blob is in a published file, so that it can be asked for.
struct BlobHome {
  VersionId version = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;  // bytes
};

// Of a file of tensors that lacks so much, what comes is given to its readers straight (ReadMode::streamed): what
// fits into a few requests is better kept by the kernel.
inline constexpr std::uint64_t kStreamedMin = 8U << 20U;

// Part of a file: a blob, and where it can be had if it is not here.
struct ColdBlob {
  ContentId id;
  BlobHome home;
};

// Who reads a file: tensors are read in large parts, or mapped; of others nothing is known.
enum class ReadFor : bool { anything, tensors };

// The file `head` ‖ blob 0 ‖ blob 1 ‖ …; what is here is locked. By the policy it may be brought here first, so that
// backing_fd() is all of it where it became one file.
Result<std::shared_ptr<OpenFile>> open_cold(Store& store, const Cold& cold, std::string where, std::string head,
                                            std::span<const ColdBlob> blobs, ReadFor read_for = ReadFor::anything);
// The same of one blob that was not here a moment ago.
Result<std::shared_ptr<OpenFile>> open_absent_blob(const Cold& cold, std::string where, std::string head,
                                                   const ColdBlob& blob);

}  // namespace weft
