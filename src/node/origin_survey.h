// What an origin still has of what it was told: names, and of each live version whether its manifest and its blobs are
// there. For restore_store() and lost_registry(). One thread.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "node/mirrored_names.h"
#include "node/origin_blobs.h"
#include "node/origin_dir.h"
#include "node/origin_names.h"
#include "weft/cluster_store.h"
#include "weft/origin.h"
#include "weft/progress.h"

namespace weft {

class OriginSurvey {
 public:
  // `here`: what a mirror of the registry knows. Its live versions are not looked for at the origin: nodes have them.
  OriginSurvey(OriginDir origin, bool accept_loss, Progress& progress, MirroredNames here = {})
      : origin_(std::move(origin)), accept_loss_(accept_loss), progress_(progress), here_(std::move(here)) {}

  Status look();
  // Live versions that need what no pack has whole become removed ones, and are told of.
  Status lose_incomplete();
  // There are problems that were not accepted.
  bool refuses();
  // In an order in which they may have come; counted in the report.
  std::vector<MirrorChange> changes();
  // The report's last lines, and the report.
  const RestoreReport& finish();

  Status check_cancelled() const;
  const OriginDir& origin() const { return origin_; }
  const std::map<OriginNames::Name, VersionRow>& versions() const { return names_.versions; }
  OriginBlobs& blobs() { return blobs_; }
  RestoreReport& report() { return report_; }

 private:
  // What a live version's manifest asks of a store.
  struct Needs {
    std::vector<const OriginBlobs::Blob*> blobs;  // each once
    std::uint64_t tree_nodes = 0;
    std::uint32_t tree_layout = 0;
  };
  void tell(std::string problem) { report_.problems.push_back(std::move(problem)); }
  void add_what_is_here();
  void leave_others_out();
  Status look_at_versions();
  Status look_at(const VersionRow& row);
  Needs needs_of(const Digest& manifest, const VersionContent& content);
  void lose(VersionRow& row, std::string_view why);

  const OriginDir origin_;
  const bool accept_loss_;
  Progress& progress_;
  const MirroredNames here_;
  RestoreReport report_;
  OriginNames names_;
  std::vector<std::string> others_;  // problems that are no losses
  std::map<Digest, Needs> needs_;
  OriginBlobs blobs_{origin_};
};

}  // namespace weft
