// How a file table is laid out: a header, then sections, each from a multiple of 64 bytes on.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

inline constexpr std::string_view kFileTableMagic = "WFFTAB01";

// Little-endian numbers of 64 bits, after the magic.
struct FileTableHeader {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;
  std::uint64_t directory_name_bytes = 0;
  std::uint64_t file_name_bytes = 0;
};
inline constexpr std::uint64_t kFileTableHeaderBytes = 64;  // the rest is zeros
static_assert(kFileTableMagic.size() + sizeof(FileTableHeader) <= kFileTableHeaderBytes);

// Numbers of 32 bits. Of a directory's children none comes before those of an earlier directory.
struct DirectoryRow {
  std::uint32_t parent = 0;
  std::uint32_t name_end = 0;    // in the directories' names
  std::uint32_t first_file = 0;  // of its own, or the next directory's
};

// Where the sections begin. Sizes are below 2^62, so nothing here wraps.
struct FileTableSections {
  std::uint64_t directories = 0;      // a DirectoryRow each
  std::uint64_t lines = 0;            // 8 bytes a directory: where the line of its first file begins in keys.txt
  std::uint64_t ends = 0;             // 8 bytes a file: where its bytes end in the bundles
  std::uint64_t name_ends = 0;        // 4 bytes a file: where its name ends in the files' names
  std::uint64_t directory_names = 0;  // one after the other
  std::uint64_t file_names = 0;
  std::uint64_t end = 0;
};

constexpr FileTableSections file_table_sections(const FileTableHeader& header) {
  constexpr std::uint64_t kAlign = 64;
  const auto aligned = [](std::uint64_t at) { return (at + kAlign - 1) / kAlign * kAlign; };
  FileTableSections at;
  at.directories = kFileTableHeaderBytes;
  at.lines = aligned(at.directories + sizeof(DirectoryRow) * header.directories);
  at.ends = aligned(at.lines + 8 * header.directories);
  at.name_ends = aligned(at.ends + 8 * header.files);
  at.directory_names = aligned(at.name_ends + 4 * header.files);
  at.file_names = aligned(at.directory_names + header.directory_name_bytes);
  at.end = at.file_names + header.file_name_bytes;
  return at;
}

}  // namespace weft
