// What an index is made from again.
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
#include "weft/fsck.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// What a new index is made from, and how much of it.
struct RebuildInput {
  const Journal& journal;
  const Manifests& manifests;
  Packs& packs;
  const ContentDecoder& decode;
  bool accept_loss = false;  // losses are accepted and reported as lost, not as problems
  bool mend = false;         // looks for what damaged packs and tables of contents should have
  bool data = false;         // with mend: reads all blobs that live versions need, to find what is damaged
  // fsck: the counters of the index that it looks at, which say how far the journal goes. Writers go on meanwhile.
  std::optional<Counters> index = {};
  // Removed versions that are not reaped: those that somebody has open, or for fsck those of the index. Says of one
  // version always the same.
  std::function<bool(VersionId)> unreaped = {};
  // fsck, to get what is there: the places that blobs have.
  std::function<std::optional<FoundBlob>(const ContentId&)> known = {};
  // For packs whose table of contents is damaged or gone: the places in them that an older index names.
  std::function<Result<std::map<PackId, std::vector<PlacedBlob>>>(const std::set<PackId>&)> placed = {};
  std::string node = {};  // uuid of this one, of a store in a cluster
  // For fsck: how many steps of what an unreaped version held are given back (catalog/giving_back.h). Empty: all.
  std::function<std::uint64_t(VersionId)> given_back = {};
};

// Whether this node published the version, by a registry.
bool is_own(const RebuildInput& input, const VersionRow& version);
// A version of another node may lack extents here: they are fetched when they are read.
bool may_lack(const RebuildInput& input, const VersionRow& version);
Result<VersionContent> read_content(const RebuildInput& input, const VersionRow& version);

// Whether stored bytes are damaged or gone. Any other error says only that they could not be read just now.
bool is_damage(const Error& error);

// A record that cannot be applied is a problem of the store and gets a line. An error of the system is returned.
Status tell(FsckReport& report, Status status, const std::string& what);

}  // namespace weft
