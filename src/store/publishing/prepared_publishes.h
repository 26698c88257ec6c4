// Prepares publishes of a cluster, up to the decision of the registry.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "packs/import.h"
#include "store/parts/parts.h"
#include "store/publishing/promotions.h"
#include "store/publishing/publish_steps.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/publish.h"

namespace weft {

// The parts of a prepared publish, without its packs.
struct PreparedParts {
  MirroredVersion record;
  std::vector<std::pair<std::string, std::uint64_t>> relies_on;
  Promotion promotion;  // the packs and the manifest that it relies on
};

// Any thread.
class PreparedPublishes {
 public:
  PreparedPublishes(StoreParts& parts, Promotions& promotions) : parts_(parts), promotions_(promotions) {}
  // As Import::prepare(), for a sealed import. The result must not outlive this object.
  Result<std::unique_ptr<PreparedPublish>> prepare(const PublishRequest& request, SealedManifest manifest,
                                                   std::unique_ptr<Importer> packs);

 private:
  Status prepare_in_place(const PublishRequest& request, SealedManifest sealed, Importer& packs, PreparedParts& parts);

  StoreParts& parts_;
  Promotions& promotions_;
};

}  // namespace weft
