// The cluster of a store, and what belonging to it means for writers.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include "os/safe_path.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread. set() is called once, under the writer lock.
class ClusterFacts {
 public:
  ClusterFacts(SafePath store_path, std::optional<ClusterIdentity> cluster)
      : path_(std::move(store_path)), cluster_(std::move(cluster)), joined_(cluster_.has_value()) {}

  const SafePath& store_path() const { return path_; }
  bool joined() const { return joined_; }
  const std::optional<ClusterIdentity>& identity() const { return joined_ ? cluster_ : alone_; }
  void set(const ClusterIdentity& identity);
  bool is_own(const VersionRow& version) const { return joined_ && version.publisher == cluster_->node; }
  Status check_alone() const;      // Errc::read_only: the store belongs to a cluster
  Status check_clustered() const;  // Errc::invalid: it does not

 private:
  const SafePath path_;
  const std::optional<ClusterIdentity> alone_;
  std::optional<ClusterIdentity> cluster_;  // set once, before joined_
  std::atomic<bool> joined_;                // atomic: other threads read it during set()
};

}  // namespace weft
