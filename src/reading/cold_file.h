// Open files with bytes that are not on this node: they are fetched while the file is read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "weft/bytes/cold.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"

namespace weft {

// How the absent bytes of a file are fetched.
struct Cold {
  ColdReads* reads = nullptr;        // outlives the open files; null: absent bytes cannot be read
  std::optional<ColdPolicy> policy;  // empty: `reads` advises
};

// Converts the error of a fetch to Errc::io for the reader, with the same message. A full disk and a killed reader keep
// their codes.
Status as_io(Status status);

// The place of a blob in a published file, by which it can be fetched.
struct BlobHome {
  VersionId version = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;  // bytes
};

// A file of tensors that lacks at least so many bytes passes them straight to its readers (ReadMode::streamed). Fewer
// absent bytes fit into a few requests, and are better kept in the page cache.
inline constexpr std::uint64_t kStreamedMin = 8U << 20U;

// Part of a file: a blob, and where it can be fetched if it is absent.
struct ColdBlob {
  ContentId id;
  BlobHome home;
};

// The readers of a file: tensors are read in large parts, or mapped; nothing is known about readers of other files.
enum class ReadFor : bool { anything, tensors };

// Opens the file `head` ‖ blob 0 ‖ blob 1 ‖ …, and locks its local blobs. If the policy says so, fetches the absent
// blobs first. If they all become one file, backing_fd() returns it.
Result<std::shared_ptr<OpenFile>> open_cold(Store& store, const Cold& cold, std::string where, std::string head,
                                            std::span<const ColdBlob> blobs, ReadFor read_for = ReadFor::anything);
// As open_cold(), for one blob that was absent a moment ago.
Result<std::shared_ptr<OpenFile>> open_absent_blob(const Cold& cold, std::string where, std::string head,
                                                   const ColdBlob& blob);

}  // namespace weft
