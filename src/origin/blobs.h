// From which pack of an origin each blob is taken: where it is said to lie, and where that turns out not to have it
// whole, from any other pack that lists it. For one thread.
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
    PackId pack = 0;    // that it is taken from
    bool lost = false;  // no pack has it whole
  };
  using Blob = std::pair<const ContentId, Found>;

  explicit OriginBlobs(const OriginDir& origin) : origin_(origin) {}

  // It lives as long as this does. No place: nobody says where it lies.
  const Blob* want(const ContentId& id, const std::optional<BlobPlace>& said);
  // Something is wrong, and these blobs are therefore looked for elsewhere; one line.
  void fault(std::string what, std::vector<ContentId> blobs);
  // Looks for what nothing is known of yet: where it is said to lie, then in all packs. A table of contents that cannot
  // be read is made again of the bytes. Errc::cancelled.
  Status look(Progress& progress);

  // Their tables of contents with the blobs that are taken from them, by offset, and sizes up to the last one.
  const std::map<PackId, PackToc>& packs() const { return packs_; }
  // Packs that more blobs are taken from since this was asked last.
  std::set<PackId> take_grown() { return std::exchange(grown_, {}); }
  // These turned out not to be whole in that pack: the next look() is for others.
  void not_whole(PackId pack, std::string what, const std::vector<ContentId>& blobs);

  // Faults with which a blob was lost, each told once; and those, so far, with which none was.
  std::vector<std::string> take_losses();
  std::vector<std::string> mended() const;

 private:
  struct Fault {
    std::string what;
    std::vector<ContentId> blobs;
  };
  using Said = std::pair<ContentId, std::uint64_t>;  // and its offset
  bool is_lost(const ContentId& id) const { return wanted_.at(id).lost; }
  Status look_where_said(PackId pack, const std::vector<Said>& blobs, Progress& progress);
  Result<PackToc> read_again(PackId pack, const std::vector<Said>& blobs, Progress& progress) const;
  Status look_everywhere(Progress& progress);
  void take(PackId pack, PackEntry entry);
  void settle();

  const OriginDir& origin_;
  std::map<ContentId, Found> wanted_;
  std::map<PackId, std::vector<Said>> said_;        // not looked at yet
  std::set<ContentId> astray_;                      // not where they are said to be
  std::set<std::pair<PackId, ContentId>> refuted_;  // what is not whole there, whatever the pack lists
  std::map<PackId, PackToc> packs_;
  std::set<PackId> grown_;
  std::vector<Fault> faults_;
};

}  // namespace weft
