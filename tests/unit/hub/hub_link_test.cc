#include "hub/hub_link.h"

#include <doctest/doctest.h>

#include <string>

using namespace weft;

namespace {

std::string next_of(std::string_view field) {
  return std::string(link_of(field, "next").value_or("none"));
}

}  // namespace

TEST_CASE("link: the next page is found among others") {
  CHECK(next_of("<https://h/t?cursor=a,b;c>; rel=\"next\"") == "https://h/t?cursor=a,b;c");
  CHECK(next_of("</p1>; rel=\"prev\", </p2>; rel=\"next\"") == "/p2");
  CHECK(next_of("</x>; rel=\"xet-auth\",</p>;rel=next") == "/p");
  CHECK(next_of("</p>; title=\"a, b; rel=next\"; REL=\"last NEXT\"") == "/p");
  CHECK(next_of("  </p> ; flag ; rel = \"next\" ") == "/p");
}

TEST_CASE("link: a field without the next page, or a broken one") {
  for (const char* field : {"", "<", "<>", "</p>", "/p; rel=next", "</p; rel=next", "</p>; rel=\"prev\"",
                            "</p>; rel=\"nextpage\"", "</p>; rel", "</p>; rel=", "</p> rel=next",
                            "</p>; title=\"rel=next", "</p>;;;", "junk, </p>; rel=next", ",", "</p>; rel=\"prev\","}) {
    CAPTURE(field);
    CHECK(next_of(field) == "none");
  }
}
