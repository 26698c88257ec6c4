// Reads the index for directories and links that name versions: models and data sets, versions, `latest` and tags.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft {

inline constexpr std::string_view kLatest = "latest";

// Returns the kind of versions that a tree shows, or nothing for both kinds. InoKind::stored is the tree models/.
std::optional<VersionKind> kind_in(InoKind tree);

// Returns a version's own directory in `tree`.
Ino version_dir_ino(InoKind tree, VersionId version, const LocalRow& local);

// Returns the tag of a link's row. A row outlives its tag; if the tag is set again, it has another row:
// Errc::not_found.
Result<TagRow> tag_of(Snapshot& snapshot, const InodeRow& link);

// Answers for one of the trees, from one snapshot. An answer about a row that the caller has reads at most
// kRowsPerEntry - 1 other rows.
class TreeAttrs {
 public:
  TreeAttrs(Snapshot& snapshot, const StoreInfo& store, InoKind tree)
      : snapshot_(snapshot), store_(store), tree_(tree) {}

  Result<Attr> attr_of(const InodeRow& row);
  Result<Attr> entry_attr(const NamespaceEntry& entry);
  Result<Attr> lookup_in_namespace(std::string_view prefix, std::string_view name);
  Result<Attr> lookup_in_model(ModelId model, std::string_view name);
  Result<Attr> version_attr(const VersionRow& version);
  Result<Attr> latest_attr(ModelId model);
  // Errc::not_found: the tree does not show models of this kind.
  Status check_shown(const ModelRow& model) const;
  Attr tag_attr(const TagRow& tag) {
    return link_attr(ino_of(tree_, tag.ino), tag.time_ns, std::to_string(tag.number).size());
  }

 private:
  Attr model_attr(const ModelRow& model) { return directory_attr(ino_of(tree_, model.ino), model.changed_ns); }

  Snapshot& snapshot_;
  const StoreInfo& store_;
  const InoKind tree_;
};

}  // namespace weft
