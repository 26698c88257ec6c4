// Formats that parse a group of files.
#include <doctest/doctest.h>

#include "builders.h"
#include "fakes/pieces_format.h"
#include "memory_group.h"

using namespace weft;
using namespace weft::testing;

namespace {

Result<Layout> parse(std::string_view text) {
  MemoryGroup group("m.pieces", text, {{"a.bin", std::string(100, 'a')}, {"sub/b.bin", std::string(100, 'b')}});
  return parse_file("dir/m.pieces", group, pieces_formats());
}

Error broken(std::string_view text) {
  auto layout = parse(text);
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.error().code == Errc::internal);
  CHECK(layout.error().message.starts_with("dir/m.pieces: tensor \"t\": "));
  return layout.error();
}

}  // namespace

TEST_CASE("a format finds tensors in files beside the main one") {
  auto layout = parse("own U8 4 - .:0:4\nchunked F32 4 - a.bin:8:8 sub/b.bin:0:8\ntied U8 2,2 1,2 a.bin:10:4\n");
  REQUIRE(layout.ok());
  CHECK(layout->others == std::vector<std::string>{"a.bin", "sub/b.bin"});
  CHECK(layout->tensors[0].parts.front().file == 0);
  CHECK(layout->tensors[1].parts.size() == 2);
  CHECK(layout->tensors[1].parts[1].file == 2);
  CHECK(layout->tensors[2].strides == Strides{1, 2});
  layout = parse("boxed U8 2,3 grid:0,2,0,1,3 .:0:2 a.bin:8:4\n");
  REQUIRE(layout.ok());
  CHECK(layout->tensors[0].grid == Borders{0, 2, 0, 1, 3});
  CHECK(parse("boxed U8 2,3 grid:0,2,0,1,3 .:0:6\n").ok());
}

TEST_CASE("a file that is not published with the main one is not found") {
  CHECK(parse("t U8 4 - ../a.bin:0:4\n").error().code == Errc::not_found);
}

TEST_CASE("a layout that breaks its promises is refused, whatever the format says") {
  CHECK(says(broken("t U8 4 - .:0:3\n"), "expected parts of 4 bytes together, got 3"));
  CHECK(says(broken("t F32 2,2 1,2 .:0:12\n"), "expected parts of 16 bytes together, got 12"));
  CHECK(says(broken("t F32 2,2 1 .:0:16\n"), "expected 2 strides, got 1"));
  CHECK(says(broken("t F32 2 2 .:0:6 .:6:6\n"), "a part cuts an element"));
  CHECK(says(broken("t U8 0 - .:0:0\n"), "a part is empty"));
  CHECK(says(broken("t Q4_0 32 1 .:0:18\n"), "no strides"));
  CHECK(says(broken("s U8 2 - .:4:2\nt U8 2 - .:2:2\n"), "expected it before tensor \"s\""));
  CHECK(says(broken("t U8 2 - .:4:2\nt U8 2 - .:6:2\n"), "the layout has it twice"));
  CHECK(says(broken("t U8 9223372036854775809,2 9223372036854775808,1 .:0:2\n"), "its shape"));
  CHECK(says(broken("t U8 3,2 9223372036854775808,1 .:0:2\n"), "more than 2^63 bytes"));
  CHECK(says(broken("t U8 2,2 grid:0,2,0,1,2 .:0:2 .:2:1\n"), "expected parts of 4 bytes together, got 3"));
  CHECK(says(broken("t U8 2,2 grid:0,2,0,1,3 .:0:4\n"), "expected parts of 6 bytes together, got 4"));
  CHECK(says(broken("t U8 2,2 grid:0,1,2,0,2 .:0:2 .:2:2\n"), "it needs no grid"));
  CHECK(says(broken("t U8 2,2 grid:0,2,0,1 .:0:2\n"), "expected borders that end at 2, got 1"));
  CHECK(says(broken("t Q4_0 32 grid:0,32 .:0:18\n"), "cannot lie in boxes"));
  CHECK(says(parse("cut .:3:0\n").error(), "a cut is empty"));
  CHECK(says(parse("hidden w 3\n").error(), "its name or its reason"));
  CHECK(says(parse("hidden \xff 3 why\n").error(), "its name or its reason"));
}
