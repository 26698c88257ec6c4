#include <fmt/core.h>

#include "weft/node.h"

namespace weft {

Result<LoadedVersion> load_version(Store& store, const VersionRow& row) {
  auto in_version = [&](const Error& error) {
    return Error{error.code, fmt::format("{}@{}: {}", row.model_name, row.number, error.message)};
  };
  auto reader = store.open_manifest(row.manifest);
  if (!reader.ok()) return in_version(reader.error());
  auto manifest = decode_manifest((*reader)->bytes());
  if (!manifest.ok()) return in_version(manifest.error());
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(manifest).value()));
  if (!tree.ok()) return in_version(tree.error());
  return LoadedVersion{row, std::move(tree).value(), std::move(reader).value()};
}

VersionFacts facts_of(const VersionRow& row) {
  VersionFacts facts{.model = row.model_name,
                     .number = row.number,
                     .manifest = row.manifest,
                     .time_ns = row.time_ns,
                     .message = row.message,
                     .metrics = row.metrics,
                     .parents = row.parents,
                     .elsewhere = row.elsewhere};
  return facts;
}

}  // namespace weft
