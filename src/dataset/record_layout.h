// Layout of a record table: a header, then sections, each at a multiple of 64 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weft {

inline constexpr std::string_view kRecordTableMagic = "WFRTAB01";
inline constexpr std::uint64_t kRecordAlign = 64;
inline constexpr std::uint64_t kRecordsSkippedListed = 1000;  // lines of skipped.txt, at most
inline constexpr std::size_t kRecordLinksChained = 8;         // longest chain of links in a tar that is resolved

// Little-endian numbers of 64 bits, after the magic.
struct RecordHeader {
  std::uint64_t container_bytes = 0;
  std::uint64_t rows = 0;
  std::uint64_t keys_bytes = 0;
  std::uint64_t has_files = 0;  // 0 or 1
  std::uint64_t paths = 0;
  std::uint64_t path_bytes = 0;
  std::uint64_t left_out = 0;
  std::uint64_t skipped_bytes = 0;
};
inline constexpr std::uint64_t kRecordHeaderBytes = 128;  // the rest is zeros
static_assert(sizeof(RecordHeader) == 64);

// Offsets of the sections, bytes. Sizes are below 2^62, so no sum wraps.
struct RecordSections {
  std::uint64_t index = 0;      // index.npy: its header, then 16 bytes a row
  std::uint64_t rows = 0;       // the rows of index.npy, after its header
  std::uint64_t keys = 0;       // keys.txt
  std::uint64_t path_ends = 0;  // 4 bytes a path: its end in path_text
  std::uint64_t path_rows = 0;  // 4 bytes a path: its row
  std::uint64_t path_text = 0;  // sorted paths, without separators
  std::uint64_t skipped = 0;    // skipped.txt
  std::uint64_t end = 0;
};
RecordSections record_sections(const RecordHeader& header);
std::string record_npy_header(std::uint64_t rows);

}  // namespace weft
