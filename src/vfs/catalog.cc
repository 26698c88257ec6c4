#include "vfs/catalog.h"

#include "vfs/page_maker.h"
#include "vfs/tree_attrs.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

bool is_link(const InodeRow& row) {
  return row.kind == InodeKind::latest_link || row.kind == InodeKind::tag_link;
}

Result<Ino> namespace_ino(Snapshot& snapshot, std::string_view path) {
  if (path.empty()) return kModelsIno;
  const auto [prefix, last] = split_name(path);
  WEFT_TRY(const NamespaceEntry entry, snapshot.namespace_entry(prefix, last));
  return entry.ino;
}

}  // namespace

InodeRow Catalog::top(Ino stored) {
  InodeRow row;
  row.kind = InodeKind::namespace_dir;
  row.base = stored;
  return row;
}

Result<Attr> Catalog::attr(const MountInode& inode) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(Attr attr, TreeAttrs(*snapshot, store_.info(), kind_of(inode.ino)).attr_of(inode.row));
  if (inode.row.base == kModelsIno) attr.lasting_name = true;
  return attr;
}

Result<Attr> Catalog::lookup(const MountInode& dir, std::string_view name) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  const InoKind tree = kind_of(dir.ino);
  const bool is_model = dir.row.kind == InodeKind::model_dir;
  if (is_model && tree == InoKind::lineage && name == kVersionsTable) return table_.attr_of(dir.row.model);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  TreeAttrs attrs(*snapshot, store_.info(), tree);
  return is_model ? attrs.lookup_in_model(dir.row.model, name) : attrs.lookup_in_namespace(dir.row.name, name);
}

Result<DirPage> Catalog::list(const MountInode& dir, ListPlace from) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  return dir.row.kind == InodeKind::model_dir ? list_model(dir, from) : list_namespace(dir, from);
}

// Lists by name.
Result<DirPage> Catalog::list_namespace(const MountInode& dir, ListPlace from) {
  const std::string& prefix = dir.row.name;
  const InoKind tree = kind_of(dir.ino);
  PageMaker page(store_, from);
  const auto behind = [](Snapshot& now, std::uint64_t number) -> Result<std::string> {
    WEFT_TRY(const std::string path, name_behind(now, number));
    return std::string(split_name(path).second);
  };
  const auto read = [&](Snapshot& now, std::string_view next, std::size_t rows_max) {
    return now.namespace_entries(prefix, next, rows_max);
  };
  WEFT_CHECK(page.add(1, behind, read, [&](Snapshot& now, const NamespaceEntry& entry) -> Result<DirEntry> {
    WEFT_TRY(const Attr attr, TreeAttrs(now, store_.info(), tree).entry_attr(entry));
    return DirEntry{entry.component, attr, true, place_of(1, entry.ino)};
  }));
  return page.take();
}

// Lists versions by number, `latest`, and tags by name.
Result<DirPage> Catalog::list_model(const MountInode& dir, ListPlace from) {
  enum Part : unsigned { kVersions = 1, kLink, kTags, kTable };
  const ModelId model = dir.row.model;
  const InoKind tree = kind_of(dir.ino);
  PageMaker page(store_, from);
  WEFT_CHECK(page.add(kVersions, number_behind, list_versions(model),
                      [&](Snapshot& now, const VersionRow& row) -> Result<DirEntry> {
                        const std::string name = std::to_string(row.number);
                        if (row.removed) return no_entry(name);
                        WEFT_TRY(const Attr attr, TreeAttrs(now, store_.info(), tree).version_attr(row));
                        return DirEntry{name, attr, true, place_of(kVersions, row.number)};
                      }));
  WEFT_CHECK(page.add_one(kLink, [&](Snapshot& now) -> Result<DirEntry> {
    WEFT_TRY(const Attr attr, TreeAttrs(now, store_.info(), tree).latest_attr(model));
    return DirEntry{std::string(kLatest), attr, true, place_of(kLink, 0)};
  }));
  WEFT_CHECK(page.add(kTags, name_behind, list_tags(model), [&](Snapshot& now, const TagRow& tag) -> Result<DirEntry> {
    return DirEntry{tag.name, TreeAttrs(now, store_.info(), tree).tag_attr(tag), true, place_of(kTags, tag.ino)};
  }));
  if (tree != InoKind::lineage) return page.take();
  WEFT_CHECK(page.add_one(kTable, [&](Snapshot&) -> Result<DirEntry> {
    DirEntry table = VersionsTable::bare(model);
    table.place = place_of(kTable, 0);
    return table;
  }));
  return page.take();
}

Result<Ino> Catalog::parent(const MountInode& inode) {
  if (inode.row.base == kModelsIno) return kRootIno;
  const InoKind tree = kind_of(inode.ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (is_link(inode.row)) {
    WEFT_TRY(const ModelRow model, snapshot->model(inode.row.model));
    return ino_of(tree, model.ino);
  }
  WEFT_TRY(const Ino parent, namespace_ino(*snapshot, split_name(inode.row.name).first));
  return ino_of(tree, parent);
}

Result<std::string> Catalog::readlink(const MountInode& inode) {
  if (!is_link(inode.row)) return Subtree::readlink(inode);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (inode.row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, tag_of(*snapshot, inode.row));
    return std::to_string(tag.number);
  }
  WEFT_TRY(const ModelRow model, snapshot->model(inode.row.model));
  if (model.latest == 0) return no_entry(kLatest);
  return std::to_string(model.latest);
}

Result<std::shared_ptr<OpenFile>> Catalog::open(const MountInode& inode) {
  return is_link(inode.row) ? is_a_link(inode.ino) : is_a_directory(inode.ino);
}

}  // namespace weft
