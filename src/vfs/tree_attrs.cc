#include "vfs/tree_attrs.h"

#include <algorithm>

#include "base/text.h"
#include "vfs/lineage.h"
#include "weft/model/dataset.h"
#include "weft/model/tree.h"

namespace weft {

std::optional<VersionKind> kind_in(InoKind tree) {
  if (tree == InoKind::lineage) return std::nullopt;
  const bool dataset = tree == InoKind::datasets || tree == InoKind::records;
  return dataset ? VersionKind::dataset : VersionKind::model;
}

Ino version_dir_ino(InoKind tree, VersionId version, const LocalRow& local) {
  if (tree == InoKind::lineage) return lineage_dir_ino(version);
  if (tree == InoKind::layers) return local.ino_base + kLayersRoot;
  if (tree == InoKind::records) return local.ino_base + kRecordsRoot;
  if (tree == InoKind::safetensors) return local.ino_base + kSafetensorsRoot;
  return local.ino_base + (tree == InoKind::tensors ? kTensorsRoot : kPublishedRoot);
}

Result<TagRow> tag_of(Snapshot& snapshot, const InodeRow& link) {
  WEFT_TRY(TagRow tag, snapshot.tag(link.model, link.name));
  if (tag.ino != link.base) return no_inode(link.base);
  return tag;
}

Result<Attr> TreeAttrs::latest_attr(ModelId id) {
  WEFT_TRY(const ModelRow model, snapshot_.model(id));
  if (model.latest == 0) return no_entry(kLatest);
  WEFT_TRY(const VersionRow latest, snapshot_.version(model.id, model.latest));
  return link_attr(ino_of(tree_, model.latest_ino), latest.time_ns, std::to_string(model.latest).size());
}

Result<Attr> TreeAttrs::version_attr(const VersionRow& version) {
  WEFT_TRY(const LocalRow local, snapshot_.local(version.id));
  return version_dir_attr(version, version_dir_ino(tree_, version.id, local));
}

Result<Attr> TreeAttrs::attr_of(const InodeRow& row) {
  if (row.kind == InodeKind::namespace_dir) {
    Attr attr = directory_attr(ino_of(tree_, row.base), std::max(row.changed_ns, store_.created_ns));
    attr.is_namespace = true;
    return attr;
  }
  if (row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, tag_of(snapshot_, row));
    return tag_attr(tag);
  }
  if (row.kind == InodeKind::latest_link) return latest_attr(row.model);
  WEFT_TRY(const ModelRow model, snapshot_.model(row.model));
  WEFT_CHECK(check_shown(model));
  return model_attr(model);
}

Status TreeAttrs::check_shown(const ModelRow& model) const {
  const auto shown = kind_in(tree_);
  return shown && *shown != model.kind ? Status(no_entry(model.name)) : Status{};
}

Result<Attr> TreeAttrs::entry_attr(const NamespaceEntry& entry) {
  const auto shown = kind_in(tree_);
  if (shown && (*shown == VersionKind::dataset ? entry.datasets : entry.models) == 0) return no_entry(entry.component);
  WEFT_TRY(const InodeRow row, snapshot_.inode(entry.ino));
  return attr_of(row);
}

Result<Attr> TreeAttrs::lookup_in_namespace(std::string_view prefix, std::string_view name) {
  WEFT_TRY(const NamespaceEntry entry, snapshot_.namespace_entry(prefix, name));
  return entry_attr(entry);
}

Result<Attr> TreeAttrs::lookup_in_model(ModelId model, std::string_view name) {
  if (all_digits(name)) {
    WEFT_TRY(const VersionRow version, numbered_version(snapshot_, model, name));
    return version_attr(version);
  }
  if (name == kLatest) return latest_attr(model);
  WEFT_TRY(const TagRow tag, snapshot_.tag(model, name));
  return tag_attr(tag);
}

}  // namespace weft
