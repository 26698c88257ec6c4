// Prepares publishes of a cluster, up to the decision of the registry.
#pragma once

#include <memory>

#include "packs/import.h"
#include "store/parts/parts.h"
#include "store/publishing/publish_steps.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store/publish.h"

namespace weft {

// As Import::prepare(), for a sealed import. The result must not outlive `parts`. Any thread.
Result<std::unique_ptr<PreparedPublish>> prepare_publish(StoreParts& parts, const PublishRequest& request,
                                                         SealedManifest manifest, std::unique_ptr<Importer> packs);

}  // namespace weft
