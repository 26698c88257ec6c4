// Publishes, tags, pins and removes versions of a store without a cluster. Begins imports of every store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "packs/import.h"
#include "store/parts/parts.h"
#include "store/publishing/large_publish.h"
#include "store/publishing/prepared_publishes.h"
#include "store/publishing/publish_steps.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread. The functions without a comment are those of Store.
class Publisher {
 public:
  Publisher(StoreParts& parts, PreparedPublishes& prepared) : parts_(parts), prepared_(prepared) {}
  Result<std::unique_ptr<Import>> begin_import(Durability durability);
  // Commits a sealed import. Removes its packs if it makes no version.
  Result<PublishOutcome> publish(const PublishRequest& request, SealedManifest manifest, Importer& packs);
  // Takes the writer lock and puts packs and manifest in place.
  using PlaceBlobs = std::function<Result<Placed>()>;
  Result<PublishOutcome> publish(const PublishRequest& request, const Digest& manifest, const PlaceBlobs& place);
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number);
  Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged);
  Status pin(std::string_view model, std::uint64_t number, bool pinned);

 private:
  Result<PublishOutcome> commit_publish(const PublishRequest& request, const Digest& manifest, const PlaceBlobs& place);

  StoreParts& parts_;
  PreparedPublishes& prepared_;
};

}  // namespace weft
