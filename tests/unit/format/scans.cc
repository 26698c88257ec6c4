#include "unit/format/scans.h"

#include <algorithm>

#include "testing.h"

namespace weft::testing {

Status scan(const ContainerFormat& format, std::string_view file, std::size_t part, RecordSink& sink) {
  const auto scanner = format.scan(file.size(), sink);
  for (std::size_t at = 0; at < file.size(); at += part) WEFT_CHECK(scanner->feed(as_bytes(file.substr(at, part))));
  MemorySource source(file);
  return scanner->finish(source);
}

}  // namespace weft::testing
