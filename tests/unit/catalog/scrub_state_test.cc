#include "catalog/scrub_state.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "store_paths.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("the state of a scrub survives writing, with a bounded number of lines") {
  const TempDir dir;
  const SafePath store = safe(dir.path());
  CHECK(read_scrub_state(store).error().code == Errc::not_found);
  ScrubState state;
  state.now = ScrubPass{1, 2, 3, 4, 5, 150, std::vector<std::string>(150, "a line")};
  state.next = {0xab, 7};
  state.assembled = true;
  must(write_scrub_state(store, state));
  const ScrubState back = must(read_scrub_state(store));
  CHECK_FALSE(back.last);
  REQUIRE(back.now);
  CHECK(back.now->begun_ns == 1);
  CHECK(back.now->ended_ns == 2);
  CHECK(back.now->packs == 3);
  CHECK(back.now->blobs == 4);
  CHECK(back.now->bytes == 5);
  CHECK(back.now->problems == 150);
  CHECK(back.now->lines == std::vector<std::string>(kScrubLinesMax, "a line"));
  CHECK(back.next == state.next);
  CHECK(back.assembled);
  must(remove_scrub_state(store));
  must(remove_scrub_state(store));
  CHECK(read_scrub_state(store).error().code == Errc::not_found);
}

TEST_CASE("a damaged state of a scrub is an error") {
  const TempDir dir;
  const SafePath store = safe(dir.path());
  must(write_scrub_state(store, {}));
  const std::string whole = read_text(dir / "scrub");
  const auto refused = [&](const std::string& text) {
    write_file(dir / "scrub", text);
    const auto read = read_scrub_state(store);
    return !read.ok() && read.error().code == Errc::corrupt;
  };
  CHECK_FALSE(refused(whole));
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) CHECK(refused(whole.substr(0, size)));
  std::string other = whole;
  REQUIRE(other.find("0000000000000000") != std::string::npos);
  CHECK(refused(other.replace(other.find("0000000000000000"), 16, "000000000000000g")));
  CHECK(refused(std::string((1U << 20U) + 1, ' ')));
}
