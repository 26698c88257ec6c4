// Checks a file table and reads all of an accepted one. Seeds are tables made by FileTableMaker.
#include <string>
#include <vector>

#include "dataset/file_table.h"
#include "fuzzing.h"

namespace weft::fuzzing {
namespace {

void ask_directories(const FileTable& table) {
  for (std::uint64_t i = 0; i < table.directories(); ++i) {
    const FileTable::Directory dir = table.directory(i);
    require(table.directory_at(table.path_of(i)) == i, "a directory is found by its path");
    require(dir.first_directory + dir.directories <= table.directories(), "children are directories");
    require(dir.first_file + dir.files <= table.files(), "files are files");
    for (std::uint64_t file = dir.first_file; file < dir.first_file + dir.files; ++file) {
      require(table.find_file(i, table.name(file)) == file, "a file is found by its name");
      require(table.directory_of(file) == i, "a file lies in its directory");
    }
  }
}

void fuzz_table(std::span<const std::byte> bytes) {
  const auto table = FileTable::check(bytes);
  if (!table.ok()) {
    require(table.error().code == Errc::corrupt, "failures are called what they are");
    return;
  }
  ask_directories(*table);
  std::uint64_t end = 0;
  std::string keys;
  for (std::uint64_t i = 0; i < table->files(); ++i) {
    const Range range = table->range(i);
    require(range.offset == end, "files follow one another");
    end = end_of(range);
    keys += table->file_path(i) + "\n";
  }
  require(table->bytes() == end, "all bytes are of files");
  std::string read(table->keys_bytes(), '\0');
  table->read_keys(0, std::as_writable_bytes(std::span(read)));
  require(read == keys, "keys.txt has the paths");
  const RowShares shares = table->shares();
  std::uint64_t rows = 0;
  for (std::uint64_t r = 0; r < 5; ++r) rows += shares.part(5, r).second - shares.part(5, r).first;
  require(rows == table->files(), "each file is in one part");
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::fuzzing::fuzz_table(std::as_bytes(std::span(data, size)));
  return 0;
}
