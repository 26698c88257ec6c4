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

TEST_CASE("a wide cell makes no other cell wider than the column may be") {
  TextTable table({{"A"}, {"B"}});
  const std::string wide(1000, 'x');
  table.row({wide, "1"});
  table.row({"y", "2"});
  CHECK(table.text() == "A" + std::string(weft::kColumnWidthMax + 1, ' ') + "B\n" + wide + "  1\ny" +
                            std::string(weft::kColumnWidthMax + 1, ' ') + "2\n");
}

TEST_CASE("a table that is printed page by page has titles once, and the widths of each page") {
  TextTable table({{"A"}, {"B"}});
  CHECK(table.take_page().empty());
  table.row({"long", "1"});
  CHECK(table.take_page() == "A     B\nlong  1\n");
  CHECK(table.take_page().empty());
  table.row({"x", "2"});
  CHECK(table.take_page() == "x  2\n");
}

TEST_CASE("a cell shows the first words that fit, and how many more there are") {
  CHECK(weft::first_of({}, 0).empty());
  CHECK(weft::first_of({"a", "b"}, 2) == "a b");
  CHECK(weft::first_of({"a", "b"}, 40'000) == "a b +39998 more");
  const std::vector<std::string> words(5, std::string(30, 'w'));
  CHECK(weft::first_of(words, 5) == words[0] + " " + words[0] + " +3 more");
  CHECK(weft::first_of({std::string(200, 'w')}, 1) == std::string(200, 'w'));
  CHECK(weft::first_of({std::string(200, 'w'), "b"}, 2) == std::string(200, 'w') + " +1 more");
}

TEST_CASE("words of listings") {
  CHECK(weft::joined({"a", "b"}, ", ") == "a, b");
  CHECK(weft::joined({}, ", ").empty());
  CHECK(weft::short_time(1'714'564'800'000'000'000U) == "2024-05-01 12:00Z");
  CHECK(weft::local_time(1'714'564'800'000'000'000U).starts_with("2024-05-0"));
  CHECK(weft::short_number("0.123456789") == "0.1235");
  CHECK(weft::short_number("1e-9") == "1e-09");
  CHECK(weft::short_number("123456") == "123456");
  CHECK(weft::short_number("none.at.all") == "none.at.all");
  CHECK(weft::first_line("one\x1b\ntwo") == "one\\x1b");
  CHECK(weft::joined_lines("\none\x1b\n\ntwo\n") == "one\\x1b; two");
  CHECK(weft::count_of(1, "file") == "1 file");
  CHECK(weft::count_of(0, "file") == "0 files");
}
