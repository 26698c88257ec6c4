#include <fmt/core.h>

#include "weft/programs/operations.h"

namespace weft {
namespace {

class NoResolver final : public ManifestResolver {
 public:
  Status resolve(VersionId /*version*/) override { return Error{Errc::absent, "its manifest is not on this node"}; }
};

Error in_version(const VersionRow& row, const Error& error) {
  return Error{error.code, fmt::format("{}@{}: {}", row.model_name, row.number, error.message)};
}

// Fetches the manifest of a bare version.
Status resolve_bare(Store& store, ManifestResolver& resolver, VersionId version) {
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_TRY(const bool bare, snapshot->is_bare(version));
    if (!bare) return {};
  }
  return resolver.resolve(version);
}

}  // namespace

ManifestResolver& no_resolver() {
  static NoResolver instance;
  return instance;
}

Result<std::shared_ptr<const ManifestReader>> manifest_of(Store& store, ManifestResolver& resolver,
                                                          const VersionRow& row) {
  if (const Status got = resolve_bare(store, resolver, row.id); !got.ok()) return in_version(row, got.error());
  auto reader = store.open_manifest(row.manifest);
  if (!reader.ok()) return in_version(row, reader.error());
  return reader;
}

namespace {

// The caller has a hold of the version.
Result<Manifest> decoded_manifest_of(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  WEFT_TRY(const auto reader, manifest_of(store, resolver, row));
  auto manifest = decode_manifest(reader->bytes());
  if (!manifest.ok()) return in_version(row, manifest.error());
  return manifest;
}

}  // namespace

Result<Manifest> load_manifest(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  const auto hold = store.hold_version(row.id);
  if (!hold.ok()) return in_version(row, hold.error());
  return decoded_manifest_of(store, resolver, row);
}

Result<LoadedVersion> load_version(Store& store, ManifestResolver& resolver, const VersionRow& row) {
  auto hold = store.hold_version(row.id);
  if (!hold.ok()) return in_version(row, hold.error());
  WEFT_TRY(Manifest manifest, decoded_manifest_of(store, resolver, row));
  auto tree = VersionTree::build(std::make_shared<const Manifest>(std::move(manifest)));
  if (!tree.ok()) return in_version(row, tree.error());
  return LoadedVersion{row, std::move(tree).value(), std::move(hold).value()};
}

}  // namespace weft
