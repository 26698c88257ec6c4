#include "dataset/small_sums.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/sha256.h"
#include "dataset/sums_text.h"
#include "made_dataset.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Files = std::map<std::string, std::uint64_t>;  // path to bytes

// Returns a digest for each file, of its number.
Digest digest_of(std::uint64_t file) {
  return sha256(std::as_bytes(std::span(&file, 1)));
}

// Returns the lines, read in steps of this size, and checks their size.
std::string read(const FileTable& table, std::size_t step) {
  const SmallSums sums(table);
  std::string text(sums.bytes(), '\0');
  const auto out = std::as_writable_bytes(std::span(text));
  for (std::size_t at = 0; at < out.size(); at += step)
    must(sums.read(at, out.subspan(at, std::min(step, out.size() - at)), [&](std::uint64_t first, auto some) -> Status {
      REQUIRE(first + some.size() <= table.files());
      for (Digest& one : some) one = digest_of(first++);
      return {};
    }));
  return text;
}

std::string expected(const FileTable& table) {
  std::string text;
  for (std::uint64_t file = 0; file < table.files(); ++file)
    append_sums_line(text, digest_of(file), table.file_path(file));
  return text;
}

}  // namespace

TEST_CASE("a line of sums is as sha256sum writes it") {
  const std::string digits = to_hex(Digest{});
  for (const auto& [path, line] : std::map<std::string, std::string>{{"a b/c", digits + "  a b/c\n"},
                                                                     {"é", digits + "  é\n"},
                                                                     {"a\\b\\", "\\" + digits + "  a\\\\b\\\\\n"},
                                                                     {"a\nb\r", "\\" + digits + "  a\\nb\\r\n"}}) {
    std::string text;
    append_sums_line(text, Digest{}, path);
    CHECK(text == line);
    CHECK(sums_line_bytes(path) == line.size());
  }
}

TEST_CASE("the sums of small files can be read from any place, whatever their names are") {
  Files files{{"a", 1}, {"d/e/f", 0}, {"d/g", 3}, {"é", 4}};
  for (int i = 0; i < 2000; ++i) files["d" + std::to_string(i % 3) + "/" + std::to_string(i)] = 1;
  for (const bool escapes : {false, true}) {
    if (escapes) files.insert({{"\\", 1}, {"d/e\\/x", 2}, {"d1/5\\5", 2}});
    const auto bytes = file_table_of(files);
    const FileTable table = must(FileTable::check(bytes));
    const std::string text = expected(table);
    for (const std::size_t step : {std::size_t{1}, std::size_t{67}, std::size_t{1000}, text.size()})
      CHECK(read(table, step) == text);
  }
}

TEST_CASE("a data set without small files has no lines of them") {
  const auto bytes = file_table_of({});
  const auto table = FileTable::check(bytes);
  if (table.ok()) CHECK(SmallSums(*table).bytes() == 0);
}

}  // namespace weft::testing
