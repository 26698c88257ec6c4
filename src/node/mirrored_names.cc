#include "node/mirrored_names.h"

namespace weft {
namespace {

// A tombstone has no tree: nobody numbers its nodes, and a registry has no version without.
Result<MirroredVersion> as_told(Snapshot& snapshot, const VersionRow& row) {
  MirroredVersion version{row, 1, 0, {}, {}};
  if (row.removed) return version;
  WEFT_TRY(const LocalRow local, snapshot.local(row.id));
  version.tree_nodes = local.ino_count;
  version.tree_layout = local.tree_layout;
  return version;
}

}  // namespace

const MirroredVersion* MirroredNames::live(const Name& name, const Digest& manifest) const {
  const auto at = versions.find(name);
  if (at == versions.end() || at->second.version.removed) return nullptr;
  return at->second.version.manifest == manifest ? &at->second : nullptr;
}

Result<MirroredNames> mirrored_names(Snapshot& snapshot) {
  MirroredNames names;
  WEFT_TRY(const std::vector<ModelRow> models, snapshot.models());
  for (const ModelRow& model : models) {
    WEFT_TRY(const std::vector<VersionRow> versions, snapshot.versions(model.id));
    for (const VersionRow& row : versions) {
      WEFT_TRY(MirroredVersion version, as_told(snapshot, row));
      names.versions.emplace(MirroredNames::Name(model.name, row.number), std::move(version));
    }
    WEFT_TRY(const std::vector<TagRow> tags, snapshot.tags(model.id));
    for (const TagRow& tag : tags) names.tags.push_back({model.name, tag.name, tag.number, tag.time_ns, 0});
  }
  return names;
}

}  // namespace weft
