// Splits a requested range into local extents and extents in transfers, and begins the missing transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fetch/fetch_bases.h"
#include "fetch/fetch_options.h"
#include "fetch/fetch_sources.h"
#include "fetch/fetch_state.h"
#include "fetch/manifest_fetch.h"
#include "fetch/plan.h"
#include "fetch/transfer_table.h"
#include "weft/bytes/pack.h"
#include "weft/model/manifest.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// An extent of a requested range: local, or in a transfer.
struct RangePart {
  Extent extent;
  OpenPlace place = {};                            // without a pack: the extent is in a transfer
  TransferPlace home = {};                         // its place in the transfer
  bool same_file = false;                          // the transfer's pack has the layout of the requested file
  std::pair<std::size_t, std::size_t> units = {};  // of the transfer, that the range needs; set by the reader
  std::map<std::size_t, OpenPlace> passed = {};    // units that came and were not kept
};

// Any thread. Transfers begin one at a time.
class FetchPlanner {
 public:
  // All arguments outlive this.
  FetchPlanner(Store& store, FetchedCache& cache, const FetchSources& sources, FetchBases& bases, FetchState& state,
               const FetchOptions& options)
      : store_(store), cache_(cache), sources_(sources), bases_(bases), state_(state), options_(options) {}

  // Returns the extents of a range. Local ones are locked; each missing one has a transfer. Reads the store, and may
  // wait up to two seconds for other transfers to close.
  Result<std::vector<RangePart>> parts_of(const DecodedVersion& content, std::uint32_t file, Range range)
      WEFT_EXCLUDES(planning_);
  // Begins a transfer of the file's blobs that are neither local nor in a transfer. A small file shares the transfer,
  // and the pack, with the files of its group. Waits as parts_of().
  Status begin(const DecodedVersion& content, std::uint32_t file) WEFT_EXCLUDES(planning_);

 private:
  using Clock = Transfer::Clock;
  bool set_home(RangePart& part, VersionId version, std::uint32_t file) const WEFT_REQUIRES(state_.mutex);
  Status find_homes(const DecodedVersion& content, std::uint32_t file, std::vector<RangePart>& parts)
      WEFT_EXCLUDES(planning_);
  void expect(const DecodedVersion& content, const std::vector<Extent>& absent) const;
  Status begin_transfer(const DecodedVersion& content, std::uint32_t file) WEFT_REQUIRES(planning_);
  Status begin_file(const DecodedVersion& content, std::uint32_t file) WEFT_REQUIRES(planning_);
  Result<bool> begin_group(const DecodedVersion& content, FileGroup group) WEFT_REQUIRES(planning_);
  Status add_transfer(const DecodedVersion& content, std::optional<std::uint32_t> file, FetchPlan plan,
                      std::unique_ptr<FetchPack> pack) WEFT_REQUIRES(planning_);
  Result<std::unique_ptr<FetchPack>> pack_for(const File& file, std::span<const OpenPlace> places,
                                              std::span<const Extent> absent) WEFT_EXCLUDES(state_.mutex);
  void limit_open() WEFT_EXCLUDES(state_.mutex);

  Store& store_;
  FetchedCache& cache_;
  const FetchSources& sources_;
  FetchBases& bases_;
  FetchState& state_;
  const FetchOptions& options_;
  Mutex planning_ WEFT_ACQUIRED_BEFORE(state_.mutex);  // held to begin a transfer
};

}  // namespace weft
