#include "store/parts/cluster_facts.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

void ClusterFacts::set(const ClusterIdentity& identity) {
  cluster_ = identity;
  joined_ = true;
}

Status ClusterFacts::check_alone() const {
  if (!joined_) return {};
  return Error{Errc::read_only, fmt::format("{}: names in cluster {} change by its registry alone", path_,
                                            printable(cluster_->cluster))};
}

Status ClusterFacts::check_clustered() const {
  if (joined_) return {};
  return Error{Errc::invalid, fmt::format("{}: it belongs to no cluster", path_)};
}

}  // namespace weft
