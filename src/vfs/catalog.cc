#include "vfs/catalog.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

constexpr std::string_view kLatest = "latest";

bool is_link(const InodeRow& row) {
  return row.kind == InodeKind::latest_link || row.kind == InodeKind::tag_link;
}

// When the model last got a version or a tag.
Result<std::uint64_t> model_time_ns(Snapshot& snapshot, const ModelRow& model) {
  std::uint64_t time_ns = model.created_ns;
  if (model.latest != 0) {
    WEFT_TRY(const VersionRow latest, snapshot.version(model.id, model.latest));
    time_ns = std::max(time_ns, latest.time_ns);
  }
  WEFT_TRY(const auto tags, snapshot.tags(model.id));
  for (const TagRow& tag : tags) time_ns = std::max(time_ns, tag.time_ns);
  return time_ns;
}

Result<Attr> model_dir_attr(Snapshot& snapshot, const ModelRow& model) {
  WEFT_TRY(const std::uint64_t time_ns, model_time_ns(snapshot, model));
  return directory_attr(model.ino, time_ns);
}

Result<Attr> latest_attr(Snapshot& snapshot, const ModelRow& model) {
  if (model.latest == 0) return no_entry(kLatest);
  WEFT_TRY(const VersionRow latest, snapshot.version(model.id, model.latest));
  return link_attr(model.latest_ino, latest.time_ns, std::to_string(model.latest).size());
}

Attr tag_attr(const TagRow& tag) {
  return link_attr(tag.ino, tag.time_ns, std::to_string(tag.number).size());
}

Result<Attr> numbered_attr(Snapshot& snapshot, ModelId model, std::string_view name) {
  const auto number = parse_u64(name);
  if (!number || name.front() == '0') return no_entry(name);
  WEFT_TRY(const VersionRow version, snapshot.version(model, *number));
  if (version.removed) return no_entry(name);
  WEFT_TRY(const LocalRow local, snapshot.local(version.id));
  return version_dir_attr(version, local.ino_base);
}

// "a/b" and "c" for "a/b/c".
std::pair<std::string_view, std::string_view> split_last(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Result<Ino> namespace_ino(Snapshot& snapshot, std::string_view path) {
  if (path.empty()) return kModelsIno;
  const auto [prefix, last] = split_last(path);
  WEFT_TRY(const NamespaceEntry entry, snapshot.namespace_entry(prefix, last));
  return entry.ino;
}

Result<Attr> attr_of(Snapshot& snapshot, const StoreInfo& store, const InodeRow& row) {
  if (row.kind == InodeKind::namespace_dir) return directory_attr(row.base, store.created_ns);
  if (row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, snapshot.tag(row.model, row.name));
    return tag_attr(tag);
  }
  WEFT_TRY(const ModelRow model, snapshot.model(row.model));
  return row.kind == InodeKind::latest_link ? latest_attr(snapshot, model) : model_dir_attr(snapshot, model);
}

Result<Attr> lookup_in_namespace(Snapshot& snapshot, const StoreInfo& store, std::string_view prefix,
                                 std::string_view name) {
  WEFT_TRY(const NamespaceEntry entry, snapshot.namespace_entry(prefix, name));
  WEFT_TRY(const InodeRow row, snapshot.inode(entry.ino));
  return attr_of(snapshot, store, row);
}

Result<std::vector<DirEntry>> list_namespace(Snapshot& snapshot, std::string_view prefix) {
  WEFT_TRY(const auto entries, snapshot.namespace_entries(prefix));
  std::vector<DirEntry> out;
  out.reserve(entries.size());
  for (const NamespaceEntry& entry : entries)
    out.push_back(bare_entry(entry.component, entry.ino, FileType::directory));
  return out;
}

Result<Attr> lookup_in_model(Snapshot& snapshot, ModelId model, std::string_view name) {
  if (all_digits(name)) return numbered_attr(snapshot, model, name);
  if (name == kLatest) {
    WEFT_TRY(const ModelRow row, snapshot.model(model));
    return latest_attr(snapshot, row);
  }
  WEFT_TRY(const TagRow tag, snapshot.tag(model, name));
  return tag_attr(tag);
}

Result<std::vector<DirEntry>> list_model(Snapshot& snapshot, ModelId model) {
  WEFT_TRY(const ModelRow row, snapshot.model(model));
  WEFT_TRY(const auto versions, snapshot.versions(model));
  WEFT_TRY(const auto tags, snapshot.tags(model));
  std::vector<DirEntry> out;
  for (const VersionRow& version : versions) {
    if (version.removed) continue;
    WEFT_TRY(const LocalRow local, snapshot.local(version.id));
    out.push_back(bare_entry(std::to_string(version.number), local.ino_base, FileType::directory));
  }
  if (row.latest != 0) out.push_back(bare_entry(std::string(kLatest), row.latest_ino, FileType::link));
  for (const TagRow& tag : tags) out.push_back(bare_entry(tag.name, tag.ino, FileType::link));
  std::ranges::sort(out, {}, &DirEntry::name);
  return out;
}

}  // namespace

InodeRow Catalog::top() {
  InodeRow row;
  row.kind = InodeKind::namespace_dir;
  row.base = kModelsIno;
  return row;
}

Result<Attr> Catalog::attr(const MountInode& inode) {
  if (inode.ino == kModelsIno) return top_attr(kModelsIno, store_.info());
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return attr_of(*snapshot, store_.info(), inode.row);
}

Result<Attr> Catalog::lookup(const MountInode& dir, std::string_view name) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (dir.row.kind == InodeKind::model_dir) return lookup_in_model(*snapshot, dir.row.model, name);
  return lookup_in_namespace(*snapshot, store_.info(), dir.row.name, name);
}

Result<std::vector<DirEntry>> Catalog::list(const MountInode& dir) {
  if (is_link(dir.row)) return not_a_directory(dir.ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (dir.row.kind == InodeKind::model_dir) return list_model(*snapshot, dir.row.model);
  return list_namespace(*snapshot, dir.row.name);
}

Result<Ino> Catalog::parent(const MountInode& inode) {
  if (inode.ino == kModelsIno) return kRootIno;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (!is_link(inode.row)) return namespace_ino(*snapshot, split_last(inode.row.name).first);
  WEFT_TRY(const ModelRow model, snapshot->model(inode.row.model));
  return model.ino;
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
