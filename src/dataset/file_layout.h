// Layout of a file table: a header, then sections, each at a multiple of 64 bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

inline constexpr std::string_view kFileTableMagic = "WFFTAB02";

// Little-endian numbers of 64 bits, after the magic.
struct FileTableHeader {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;
  std::uint64_t directory_name_bytes = 0;
  std::uint64_t file_name_bytes = 0;
  std::uint64_t executables = 0;
};
inline constexpr std::uint64_t kFileTableHeaderBytes = 64;  // the rest is zeros
static_assert(kFileTableMagic.size() + sizeof(FileTableHeader) <= kFileTableHeaderBytes);

// 32-bit numbers. Rows are sorted by parent, so the children of a directory are consecutive.
struct DirectoryRow {
  std::uint32_t parent = 0;
  std::uint32_t name_end = 0;    // end of its name in directory_names
  std::uint32_t first_file = 0;  // first file of this directory, or of the next one that has files
};

// A file with x bits.
struct ExecutableRow {
  std::uint32_t file = 0;
  std::uint32_t bits = 0;  // kExecuteBits, not 0
};

// Offsets of the sections, bytes. Sizes are below 2^62, so no sum wraps.
struct FileTableSections {
  std::uint64_t directories = 0;      // a DirectoryRow for each directory
  std::uint64_t lines = 0;            // 8 bytes a directory: offset in keys.txt of the line of its first file
  std::uint64_t ends = 0;             // 8 bytes a file: end of its bytes in the bundles
  std::uint64_t name_ends = 0;        // 4 bytes a file: end of its name in file_names
  std::uint64_t executables = 0;      // an ExecutableRow for each file with x bits, by file
  std::uint64_t directory_names = 0;  // names without separators, as in file_names
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
  at.executables = aligned(at.name_ends + 4 * header.files);
  at.directory_names = aligned(at.executables + sizeof(ExecutableRow) * header.executables);
  at.file_names = aligned(at.directory_names + header.directory_name_bytes);
  at.end = at.file_names + header.file_name_bytes;
  return at;
}

}  // namespace weft
