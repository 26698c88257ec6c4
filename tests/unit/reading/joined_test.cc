#include "reading/joined_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reading/open_file.h"
#include "testing.h"

namespace weft::testing {
namespace {

std::string read_at(OpenFile& file, std::uint64_t offset, std::size_t count) {
  std::string out(count, '?');
  out.resize(must(file.read(offset, std::as_writable_bytes(std::span(out)))));
  return out;
}

TEST_CASE("files in a row read as one file, from any offset and in any length") {
  const std::vector<std::string> texts = {"head", "", "a", "long part", "tail"};
  std::string whole;
  std::vector<std::shared_ptr<OpenFile>> parts;
  for (const std::string& text : texts) {
    whole += text;
    parts.push_back(open_text(text));
  }
  const auto file = open_joined(std::move(parts));
  CHECK(file->size() == whole.size());
  CHECK(file->backing_fd() == -1);
  for (std::size_t offset = 0; offset <= whole.size() + 1; ++offset)
    for (std::size_t count = 0; count <= whole.size() + 2; ++count)
      CHECK(read_at(*file, offset, count) == (offset < whole.size() ? whole.substr(offset, count) : ""));
}

}  // namespace
}  // namespace weft::testing
