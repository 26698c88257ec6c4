#include "dataset/file_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "dataset/file_layout.h"
#include "made_dataset.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Bytes = std::vector<std::byte>;
using Files = std::map<std::string, std::uint64_t>;  // path to bytes

std::string keys_of(const FileTable& table, std::size_t step) {
  std::string text(table.keys_bytes(), '\0');
  const auto out = std::as_writable_bytes(std::span(text));
  for (std::size_t at = 0; at < out.size(); at += step)
    table.read_keys(at, out.subspan(at, std::min(step, out.size() - at)));
  return text;
}

Files random_files(std::mt19937_64& random) {
  Files files;
  for (std::size_t i = 0, count = random() % 60; i < count; ++i) {
    std::string path;
    for (std::size_t depth = random() % 4; depth > 0; --depth) path += "d" + std::to_string(random() % 4) + "/";
    files["" + path + "f" + std::to_string(random() % 30)] = random() % 3 == 0 ? 0 : random() % (3U << 20U);
  }
  return files;
}

}  // namespace

TEST_CASE("a file table finds each file by its path, and has its bytes in order") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    const Files files = random_files(random);
    const Bytes bytes = file_table_of(files);
    const FileTable table = must(FileTable::check(bytes));
    REQUIRE(table.files() == files.size());
    std::uint64_t end = 0;
    std::string keys;
    for (std::uint64_t i = 0; i < table.files(); ++i) {
      const std::string path = table.file_path(i);
      const auto given = files.find(path);
      REQUIRE(given != files.end());
      CHECK(table.range(i) == Range{end, given->second});
      end += given->second;
      keys += path + "\n";
      const std::size_t slash = path.rfind('/');
      const auto directory = table.directory_at(slash == path.npos ? "" : path.substr(0, slash));
      REQUIRE(directory);
      CHECK(table.directory_of(i) == *directory);
      CHECK(table.find_file(*directory, path.substr(slash + 1)) == i);
    }
    CHECK(table.bytes() == end);
    CHECK(keys_of(table, 1U << 20U) == keys);
    CHECK(keys_of(table, 7) == keys);
  }
}

TEST_CASE("a file table finds nothing that is not there") {
  const Bytes bytes = file_table_of({{"a/b/c", 1}, {"a/d", 2}, {"e", 3}});
  const FileTable table = must(FileTable::check(bytes));
  CHECK_FALSE(table.directory_at("a/c"));
  CHECK_FALSE(table.directory_at("e"));
  CHECK_FALSE(table.find_file(0, "a"));
  CHECK_FALSE(table.find_directory(0, "e"));
  const auto a = table.directory(*table.directory_at("a"));
  CHECK(a.directories == 1);
  CHECK(table.directory_name(a.first_directory) == "b");
  CHECK(a.files == 1);
  CHECK(table.name(a.first_file) == "d");
}

TEST_CASE("a small file costs 12 bytes and its base name") {
  Files files;
  for (int i = 0; i < 10'000; ++i) files["train/n01440764/n01440764_" + std::to_string(10'000 + i)] = 1;
  CHECK(file_table_of(files).size() <= 10'000 * (12 + 15) + 1024);
}

TEST_CASE("a file table has only directories with files below them") {
  FileTableMaker maker;
  for (const auto& [parent, name] : std::vector<std::pair<std::uint32_t, std::string>>{
           {0, ""}, {0, "a"}, {0, "b"}, {0, "c"}, {1, "none"}, {2, "d"}, {2, "e"}, {6, "f"}})
    must(maker.directory(parent, name));
  CHECK(maker.path_of(7) == "b/e/f");
  must(maker.file(5, "x", 1));
  must(maker.file(7, "y", 2));
  const Bytes bytes = maker.make();
  const FileTable table = must(FileTable::check(bytes));
  CHECK(keys_of(table, 5) == "b/d/x\nb/e/f/y\n");
  CHECK(table.directories() == 5);
  for (const char* gone : {"a", "c", "a/none"}) CHECK_FALSE(table.directory_at(gone));
}

TEST_CASE("a file table has the x bits of its files") {
  FileTableMaker maker;
  must(maker.directory(0, ""));
  const std::uint8_t bits[] = {0, 0111, 0, 0100, 0001, 0};
  for (std::size_t i = 0; i < std::size(bits); ++i) must(maker.file(0, "f" + std::to_string(i), i, bits[i]));
  const Bytes bytes = maker.make();
  const FileTable table = must(FileTable::check(bytes));
  for (std::size_t i = 0; i < std::size(bits); ++i) {
    CHECK(table.execute(i) == bits[i]);
    CHECK(table.name(i) == "f" + std::to_string(i));
  }
  const auto with = [&](std::size_t row, std::uint32_t file, std::uint32_t mode) {
    Bytes changed = bytes;
    const FileTableSections at = file_table_sections({6, 1, 0, 12, 3});
    const ExecutableRow one{file, mode};
    std::memcpy(changed.data() + at.executables + sizeof one * row, &one, sizeof one);
    return FileTable::check(changed);
  };
  CHECK(with(1, 2, 0100).ok());
  CHECK_FALSE(with(1, 1, 0100).ok());  // a file twice
  CHECK_FALSE(with(2, 6, 0100).ok());  // no such file
  CHECK_FALSE(with(0, 5, 0100).ok());  // not in order
  for (const std::uint32_t mode : {0U, 0200U, 0644U, 1U << 31U}) CHECK_FALSE(with(1, 3, mode).ok());
}

TEST_CASE("a file table has paths of 64 components, and no large files") {
  const auto deep = [](int directories, bool with_file) {
    FileTableMaker maker;
    must(maker.directory(0, ""));
    for (int i = 0; i < directories; ++i) must(maker.directory(static_cast<std::uint32_t>(i), "d"));
    if (with_file) must(maker.file(static_cast<std::uint32_t>(directories), "f", 1));
    return maker.make();
  };
  CHECK(FileTable::check(deep(63, true)).ok());
  CHECK(must(FileTable::check(deep(64, false))).directories() == 1);  // no file is below them
  CHECK_FALSE(FileTable::check(deep(64, true)).ok());
  FileTableMaker maker;
  must(maker.directory(0, ""));
  must(maker.file(0, "f", kSmallFileMax + 1));
  CHECK_FALSE(FileTable::check(maker.make()).ok());
}

TEST_CASE("a damaged file table is refused, or says nothing that leaves it") {
  const Bytes good = file_table_of({{"a/b/c", 1}, {"a/d", 2}, {"a/e", 2}, {"f", 3}, {"g/h", 70}});
  std::mt19937_64 random(2);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = good;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = std::byte(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto table = FileTable::check(bytes);
    if (!table.ok()) {
      CHECK(table.error().code == Errc::corrupt);
      ++refused;
      continue;
    }
    CHECK(keys_of(*table, 5).size() == table->keys_bytes());
    for (std::uint64_t i = 0; i < table->files(); ++i) CHECK(table->directory_of(i) < table->directories());
  }
  CHECK(refused > 10'000);
  CHECK_FALSE(FileTable::check(Bytes()).ok());
}

}  // namespace weft::testing
