// Publishes, tags, describes, pins and removes versions of a store without a cluster, and renames its models. Begins
// imports of every store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "store/parts/parts.h"
#include "store/publishing/large_publish.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store_rows.h"

namespace weft {

// Any thread. The functions without a comment are those of Store.
Result<std::unique_ptr<Import>> begin_import(StoreParts& parts, Durability durability);
// Takes the writer lock and puts packs and manifest in place.
using PlaceBlobs = std::function<Result<Placed>()>;
Result<PublishOutcome> publish(StoreParts& parts, const PublishRequest& request, const Digest& manifest,
                               const PlaceBlobs& place);
Status set_tag(StoreParts& parts, std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
               const Author& by = {});
Status describe(StoreParts& parts, std::string_view model, std::uint64_t number, const DescriptionChange& change);
Status protect_tag(StoreParts& parts, std::string_view model, std::string_view tag, bool on, const Author& by);
Status rename_model(StoreParts& parts, std::string_view model, std::string_view to, const Author& by = {});
Result<std::size_t> remove_versions(StoreParts& parts, std::span<const VersionName> versions, Tagged tagged,
                                    const Author& by = {});
Status pin(StoreParts& parts, std::string_view model, std::uint64_t number, bool pinned);

}  // namespace weft
