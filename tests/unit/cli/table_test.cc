#include "cli/shared/table.h"

#include <doctest/doctest.h>

using weft::Align;
using weft::TextTable;

TEST_CASE("columns are aligned by characters, and lines end without blanks") {
  TextTable table({{"NAME"}, {"SIZE", Align::right}, {"TAGS"}});
  table.row({"größe", "1 B", ""});
  table.row({"a", "10.0 KiB", "x y"});
  CHECK(table.text() ==
        "NAME       SIZE  TAGS\n"
        "größe       1 B\n"
        "a      10.0 KiB  x y\n");
}

TEST_CASE("words of listings") {
  CHECK(weft::joined({"a", "b"}, ", ") == "a, b");
  CHECK(weft::joined({}, ", ").empty());
  CHECK(weft::short_time(1'714'564'800'000'000'000U) == "2024-05-01 12:00");
  CHECK(weft::first_line("one\x1b\ntwo") == "one\\x1b");
  CHECK(weft::joined_lines("\none\x1b\n\ntwo\n") == "one\\x1b; two");
  CHECK(weft::count_of(1, "file") == "1 file");
  CHECK(weft::count_of(0, "file") == "0 files");
}
