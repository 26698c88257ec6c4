// Hostile answers of a model hub: pages of a listing with NUL between them, a revision, a field Link, and names that
// users type.
#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "fuzzing.h"
#include "hub/hub_link.h"
#include "hub/hub_listing.h"
#include "hub/hub_name.h"
#include "weft/model/manifest.h"

namespace {

using namespace weft;

constexpr std::string_view kWhere = "hf:org/bert";

void fuzz_pages(std::string_view text) {
  HubListing listing{std::string(kWhere)};
  for (std::string_view page : split(text, '\0'))
    if (const Status added = listing.add_page(page); !added.ok())
      return fuzzing::require_clear(added.error(), "hf:org/bert: ");
  const auto files = listing.finish();
  if (!files.ok()) return fuzzing::require_clear(files.error(), "hf:org/bert: ");
  std::uint64_t bytes = 0;
  std::string_view last;
  for (const HubFile& file : *files) {
    fuzzing::require(check_file_path(file.path).ok(), "paths can be published");
    fuzzing::require(last < file.path, "paths are sorted and unique");
    fuzzing::require(!file.path.starts_with(std::string(last) + '/') || last.empty(), "no file is a directory");
    fuzzing::require(is_commit_hash(file.git_sha1), "digests are whole");
    fuzzing::require(file.size <= limits::kVersionBytesMax - bytes, "sizes are bounded together");
    bytes += file.size;
    last = file.path;
  }
}

void fuzz_revision(std::string_view text) {
  const auto revision = parse_hub_revision(text, kWhere);
  if (!revision.ok()) return fuzzing::require_clear(revision.error(), "hf:org/bert: ");
  fuzzing::require(is_commit_hash(revision->commit), "a revision has a commit");
}

void fuzz_name(std::string_view text) {
  const auto source = parse_hub_source(text);
  if (!source.ok()) return fuzzing::require_clear(source.error(), "hub ");
  const std::string again = text_of(source->repository) + '@' + source->revision;
  const auto same = parse_hub_source(again);
  fuzzing::require(same.ok() && *same == *source, "a name reads as it is written");
  const std::string url = HubUrls("http://h", source->repository).revision(source->revision);
  fuzzing::require(url.find_first_of(" ?#\r\n") == std::string::npos, "a revision is one component");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fuzz_pages(text);
  fuzz_revision(text);
  fuzz_name(text);
  if (const auto link = link_of(text, "next"))
    fuzzing::require(text.find(*link) != std::string_view::npos, "a link is part of its field");
  return 0;
}
