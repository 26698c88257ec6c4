// Chooses the pack of an origin from which each blob is read: the recorded one, or any other pack that lists the blob
// if the recorded one does not have it intact. For one thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diskformat/toc.h"
#include "origin/dir.h"
#include "weft/content.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

class OriginBlobs {
 public:
  struct Found {
    PackId pack = 0;    // the pack to read it from
    bool lost = false;  // no pack has it intact
  };
  using Blob = std::pair<const ContentId, Found>;

  explicit OriginBlobs(const OriginDir& origin) : origin_(origin) {}

  // Adds a blob to locate. `recorded`: its recorded place, empty if unknown. The result lives as long as this object.
  const Blob* want(const ContentId& id, const std::optional<BlobPlace>& recorded);
  // Records a fault, one line of text, that affects these blobs. The next search() searches those without a pack
  // everywhere.
  void fault(std::string what, std::vector<ContentId> blobs);
  // Locates all blobs without a pack: first at the recorded places, then in all packs. If a table of contents cannot be
  // read, it is computed again from the pack's bytes. Errc::cancelled.
  Status search(Progress& progress);

  // Returns the packs to read, each with a table of contents of only the blobs to read from it, sorted by offset; its
  // size ends at the last of these blobs.
  const std::map<PackId, PackToc>& packs() const { return packs_; }
  // Returns the packs that have got more blobs since the last call.
  std::set<PackId> take_grown() { return std::exchange(grown_, {}); }
  // Records that these blobs are damaged in that pack: the next search() locates them in other packs.
  void not_whole(PackId pack, std::string what, const std::vector<ContentId>& blobs);

  // take_losses() returns the faults that lost a blob, each once; mended() returns all faults so far that lost none.
  std::vector<std::string> take_losses();
  std::vector<std::string> mended() const;

 private:
  struct Fault {
    std::string what;
    std::vector<ContentId> blobs;
  };
  using Recorded = std::pair<ContentId, std::uint64_t>;  // a blob and its recorded offset
  bool is_lost(const ContentId& id) const { return wanted_.at(id).lost; }
  Status search_recorded(PackId pack, const std::vector<Recorded>& blobs, Progress& progress);
  Result<PackToc> read_again(PackId pack, const std::vector<Recorded>& blobs, Progress& progress) const;
  Status search_all(Progress& progress);
  void take(PackId pack, PackEntry entry);
  void count_unfound();

  const OriginDir& origin_;
  std::map<ContentId, Found> wanted_;
  std::map<PackId, std::vector<Recorded>> recorded_;  // recorded places not checked yet
  std::set<ContentId> astray_;                        // blobs missing at their recorded place
  std::set<std::pair<PackId, ContentId>> refuted_;    // blobs damaged in a pack that may list them
  std::map<PackId, PackToc> packs_;
  std::set<PackId> grown_;
  std::vector<Fault> faults_;
};

}  // namespace weft
