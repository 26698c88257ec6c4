// The input of a rebuild of the index.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/journal.h"
#include "catalog/manifests.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "packs/packs.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store/fsck.h"
#include "weft/store_rows.h"

namespace weft {

// The sources and options of a rebuild.
struct RebuildInput {
  const SafePath& store_path;
  const Journal& journal;
  const Manifests& manifests;
  PackDir& packs;
  const ContentDecoder& decode;
  bool accept_loss = false;  // losses are accepted and reported as lost, not as problems
  bool mend = false;         // repair: search for the content of damaged packs and tables of contents
  bool data = false;         // with mend: read all blobs that live versions need, to find damaged ones
  // For fsck: the counters of the index under test. They bound the journal, to which writers keep appending.
  std::optional<Counters> index = {};
  // True for a removed version that is not reaped: a reader has it open, or for fsck, the index under test has it. The
  // answer for a version never changes.
  std::function<bool(VersionId)> unreaped = {};
  // For fsck: returns the blob's row in the index under test, so that the rebuild chooses the same place.
  std::function<std::optional<FoundBlob>(const ContentId&)> known = {};
  // Returns the places that an older index has in packs whose table of contents is damaged or gone.
  std::function<Result<std::map<PackId, std::vector<PlacedBlob>>>(const std::set<PackId>&)> placed = {};
  std::string node = {};  // uuid of this node, if the store is in a cluster
  // For fsck: returns the number of finished steps that release the content of an unreaped version
  // (catalog/release.h). Empty: all steps are finished.
  std::function<std::uint64_t(VersionId)> released = {};
};

// True if this node published the version through a registry.
bool is_own(const RebuildInput& input, const VersionRow& version);
// True for a version of another node: it may lack local extents, which are fetched when they are read.
bool may_lack(const RebuildInput& input, const VersionRow& version);
Result<VersionContent> read_content(const RebuildInput& input, const VersionRow& version);

// True if the error means that stored bytes are damaged or gone. Any other error may be temporary.
bool is_damage(const Error& error);

// Adds "WHAT: message" to the problems of the report if `status` is damage. Returns any other error.
Status tell(FsckReport& report, Status status, const std::string& what);

}  // namespace weft
