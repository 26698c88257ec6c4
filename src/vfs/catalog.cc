#include "vfs/catalog.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "vfs/lineage.h"
#include "weft/listing.h"
#include "weft/names.h"
#include "weft/snapshot.h"
#include "weft/tree.h"

namespace weft {
namespace {

constexpr std::string_view kLatest = "latest";

bool is_link(const InodeRow& row) {
  return row.kind == InodeKind::latest_link || row.kind == InodeKind::tag_link;
}

Result<Ino> namespace_ino(Snapshot& snapshot, std::string_view path) {
  if (path.empty()) return kModelsIno;
  const auto [prefix, last] = split_name(path);
  WEFT_TRY(const NamespaceEntry entry, snapshot.namespace_entry(prefix, last));
  return entry.ino;
}

// Answers for one of the four trees, from one snapshot.
class TreeLook {
 public:
  static constexpr std::size_t kRows = 4;  // that an answer reads at most

  TreeLook(Snapshot& snapshot, const StoreInfo& store, InoKind tree)
      : snapshot_(snapshot), store_(store), tree_(tree) {}

  Result<Attr> attr_of(const InodeRow& row);
  Result<Attr> lookup_in_namespace(std::string_view prefix, std::string_view name);
  Result<Attr> lookup_in_model(ModelId model, std::string_view name);
  Result<Attr> version_attr(const VersionRow& version);
  Result<Attr> latest_attr(ModelId model);
  Attr tag_attr(const TagRow& tag) {
    return link_attr(ino_of(tree_, tag.ino), tag.time_ns, std::to_string(tag.number).size());
  }

 private:
  Attr model_attr(const ModelRow& model) { return directory_attr(ino_of(tree_, model.ino), model.changed_ns); }
  Result<Attr> numbered_attr(ModelId model, std::string_view name);

  Snapshot& snapshot_;
  const StoreInfo& store_;
  const InoKind tree_;
};

Result<Attr> TreeLook::latest_attr(ModelId id) {
  WEFT_TRY(const ModelRow model, snapshot_.model(id));
  if (model.latest == 0) return no_entry(kLatest);
  WEFT_TRY(const VersionRow latest, snapshot_.version(model.id, model.latest));
  return link_attr(ino_of(tree_, model.latest_ino), latest.time_ns, std::to_string(model.latest).size());
}

Result<Attr> TreeLook::version_attr(const VersionRow& version) {
  WEFT_TRY(const LocalRow local, snapshot_.local(version.id));
  return version_dir_attr(version, version_dir_ino(tree_, version.id, local));
}

Result<Attr> TreeLook::numbered_attr(ModelId model, std::string_view name) {
  const auto number = parse_u64(name);
  if (!number || name.front() == '0') return no_entry(name);
  WEFT_TRY(const VersionRow version, snapshot_.version(model, *number));
  if (version.removed) return no_entry(name);
  return version_attr(version);
}

Result<Attr> TreeLook::attr_of(const InodeRow& row) {
  if (row.kind == InodeKind::namespace_dir)
    return directory_attr(ino_of(tree_, row.base), std::max(row.changed_ns, store_.created_ns));
  if (row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, snapshot_.tag(row.model, row.name));
    return tag_attr(tag);
  }
  if (row.kind == InodeKind::latest_link) return latest_attr(row.model);
  WEFT_TRY(const ModelRow model, snapshot_.model(row.model));
  return model_attr(model);
}

Result<Attr> TreeLook::lookup_in_namespace(std::string_view prefix, std::string_view name) {
  WEFT_TRY(const NamespaceEntry entry, snapshot_.namespace_entry(prefix, name));
  WEFT_TRY(const InodeRow row, snapshot_.inode(entry.ino));
  return attr_of(row);
}

Result<Attr> TreeLook::lookup_in_model(ModelId model, std::string_view name) {
  if (all_digits(name)) return numbered_attr(model, name);
  if (name == kLatest) return latest_attr(model);
  WEFT_TRY(const TagRow tag, snapshot_.tag(model, name));
  return tag_attr(tag);
}

// One directory, in as many snapshots as it takes.
class TreeListing {
 public:
  TreeListing(Store& store, InoKind tree) : store_(store), renewed_(store), tree_(tree) {}

  Result<std::vector<DirEntry>> list_namespace(const std::string& prefix) {
    WEFT_CHECK(each_row(weft::list_namespace(store_, prefix), [&](const NamespaceEntry& entry) {
      return add(entry.component, [&](TreeLook look) { return look.lookup_in_namespace(prefix, entry.component); });
    }));
    return std::move(out_);
  }

  Result<std::vector<DirEntry>> list_model(ModelId model) {
    WEFT_CHECK(each_version(store_, model, [&](const VersionRow& version) -> Status {
      if (version.removed) return {};
      return add(std::to_string(version.number), [&](TreeLook look) { return look.version_attr(version); });
    }));
    WEFT_CHECK(add(std::string(kLatest), [&](TreeLook look) { return look.latest_attr(model); }));
    WEFT_CHECK(each_tag(store_, model, [&](const TagRow& tag) {
      return add(tag.name, [&](TreeLook look) { return Result<Attr>(look.tag_attr(tag)); });
    }));
    return std::move(out_);
  }

 private:
  // Leaves out what is gone by now.
  template <class Answer>
  Status add(std::string name, const Answer& answer) {
    WEFT_TRY(Snapshot * now, renewed_.get(TreeLook::kRows));
    const Result<Attr> attr = answer(TreeLook(*now, store_.info(), tree_));
    if (attr.ok()) out_.push_back({std::move(name), *attr, true});
    return attr.ok() || attr.error().code == Errc::not_found ? Status{} : Status{attr.error()};
  }

  Store& store_;
  Renewed renewed_;
  const InoKind tree_;
  std::vector<DirEntry> out_;
};

}  // namespace

Ino version_dir_ino(InoKind tree, VersionId version, const LocalRow& local) {
  if (tree == InoKind::lineage) return lineage_dir_ino(version);
  if (tree == InoKind::layers) return local.ino_base + kLayersRoot;
  return local.ino_base + (tree == InoKind::tensors ? kTensorsRoot : kPublishedRoot);
}

InodeRow Catalog::top(Ino stored) {
  InodeRow row;
  row.kind = InodeKind::namespace_dir;
  row.base = stored;
  return row;
}

Result<Attr> Catalog::attr(const MountInode& inode) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(Attr attr, TreeLook(*snapshot, store_.info(), kind_of(inode.ino)).attr_of(inode.row));
  if (inode.row.base == kModelsIno) attr.lasting_name = true;
  return attr;
}

Result<Attr> Catalog::lookup(const MountInode& dir, std::string_view name) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  const InoKind tree = kind_of(dir.ino);
  const bool is_model = dir.row.kind == InodeKind::model_dir;
  if (is_model && tree == InoKind::lineage && name == kVersionsTable) return table_.attr_of(dir.row.model);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  TreeLook look(*snapshot, store_.info(), tree);
  return is_model ? look.lookup_in_model(dir.row.model, name) : look.lookup_in_namespace(dir.row.name, name);
}

Result<std::vector<DirEntry>> Catalog::list(const MountInode& dir) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  const InoKind tree = kind_of(dir.ino);
  TreeListing listing(store_, tree);
  if (dir.row.kind != InodeKind::model_dir) return listing.list_namespace(dir.row.name);
  WEFT_TRY(auto entries, listing.list_model(dir.row.model));
  if (tree == InoKind::lineage) entries.push_back(VersionsTable::bare(dir.row.model));
  std::ranges::sort(entries, {}, &DirEntry::name);
  return entries;
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
    WEFT_TRY(const TagRow tag, snapshot->tag(inode.row.model, inode.row.name));
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
