#include "vfs/lineage.h"

#include <algorithm>
#include <utility>

#include "reading/open_file.h"

namespace weft {
namespace {

// The entries of lineage/<model>/<version>/ whose numbers do not change. The files of kin come beside them.
struct FixedEntry {
  std::string_view name;
  LineageEntry entry;
  bool is_dir;
};
constexpr FixedEntry kEntries[] = {
    {"children", LineageEntry::children, true}, {"diff", LineageEntry::diff, true},
    {"info.json", LineageEntry::info, false},   {"owners.tsv", LineageEntry::owners, false},
    {"parents", LineageEntry::parents, true},
};

LineageEntry entry_of(Ino ino) {
  return static_cast<LineageEntry>(high_of(ino));
}

bool is_dir(Ino ino) {
  if (kind_of(ino) != InoKind::lineage_entry) return false;
  const LineageEntry entry = entry_of(ino);
  return entry == LineageEntry::dir || std::ranges::any_of(kEntries, [entry](const FixedEntry& fixed) {
           return fixed.entry == entry && fixed.is_dir;
         });
}

bool is_link(Ino ino) {
  return kind_of(ino) == InoKind::parent_link || kind_of(ino) == InoKind::child_link;
}

Kin kin_in(LineageEntry dir) {
  return dir == LineageEntry::children ? Kin::child : Kin::parent;
}

}  // namespace

Result<VersionRow> Lineage::version(VersionId id) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->version(id);
}

// The entries of a version's directory keep their names. Those of kin lead to other files after a change.
Result<Attr> Lineage::dir_attr(const VersionRow& version, LineageEntry entry) {
  Attr attr = version_dir_attr(version, lineage_ino(entry, version.id));
  attr.lasting_entries = false;
  if (entry == LineageEntry::dir) return attr;
  attr.lasting_name = true;
  attr.lasting_attr = false;
  WEFT_TRY(attr.mtime_ns, kin_changed_ns(store_, version, kin_in(entry)));
  return attr;
}

Result<Attr> Lineage::file_attr(Ino ino) {
  WEFT_TRY(const auto text, texts_.find(ino));
  Attr attr = text_attr(ino, text->time_ns, text->text.size());
  attr.lasting_attr = true;
  attr.lasting_name = kind_of(ino) == InoKind::lineage_entry;
  return attr;
}

Result<Attr> Lineage::edge_attr(const VersionRow& version, LineageEntry dir, const KinEntry& edge) {
  if (dir != LineageEntry::diff) return kin_link_attr(version, kin_in(dir), edge);
  return file_attr(ino_of(InoKind::diff, edge.position, edge.child));
}

Result<Attr> Lineage::attr(const MountInode& inode) {
  if (is_link(inode.ino)) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const KinLink link, kin_link(*snapshot, inode.ino));
    return link.attr;
  }
  if (!is_dir(inode.ino)) return file_attr(inode.ino);
  WEFT_TRY(const VersionRow row, version(id_of(inode.ino)));
  return dir_attr(row, entry_of(inode.ino));
}

Result<Attr> Lineage::lookup(const MountInode& dir, std::string_view name) {
  if (!is_dir(dir.ino)) return not_a_directory(dir.ino);
  const LineageEntry entry = entry_of(dir.ino);
  WEFT_TRY(const VersionRow row, version(id_of(dir.ino)));
  if (entry != LineageEntry::dir) {
    KinEntry edge;
    {
      WEFT_TRY(const auto snapshot, store_.snapshot());
      WEFT_TRY(edge, find_kin(*snapshot, row, kin_in(entry), name));
    }
    return edge_attr(row, entry, edge);
  }
  for (const FixedEntry& fixed : kEntries)
    if (fixed.name == name)
      return fixed.is_dir ? dir_attr(row, fixed.entry) : file_attr(lineage_ino(fixed.entry, row.id));
  for (unsigned file = 0; file < kKinFileCount; ++file) {
    if (kin_file_name(file) != name) continue;
    WEFT_TRY(const Ino ino, texts_.current(row.id, file));
    return file_attr(ino);
  }
  return no_entry(name);
}

Result<std::vector<DirEntry>> Lineage::list(const MountInode& dir) {
  if (!is_dir(dir.ino)) return not_a_directory(dir.ino);
  WEFT_TRY(const VersionRow row, version(id_of(dir.ino)));
  const LineageEntry entry = entry_of(dir.ino);
  WEFT_TRY(auto out, entry == LineageEntry::dir ? list_version(row) : list_edges(row, entry));
  std::ranges::sort(out, {}, &DirEntry::name);
  return out;
}

Result<std::vector<DirEntry>> Lineage::list_version(const VersionRow& version) {
  std::vector<DirEntry> out;
  const auto add_file = [&](std::string_view name, Ino ino) {
    const auto attr = file_attr(ino);
    out.push_back(attr.ok() ? DirEntry{std::string(name), *attr, true}
                            : bare_entry(std::string(name), ino, FileType::regular));
  };
  for (const FixedEntry& fixed : kEntries) {
    if (!fixed.is_dir) {
      add_file(fixed.name, lineage_ino(fixed.entry, version.id));
      continue;
    }
    WEFT_TRY(const Attr attr, dir_attr(version, fixed.entry));
    out.push_back({std::string(fixed.name), attr, true});
  }
  for (unsigned file = 0; file < kKinFileCount; ++file) {
    WEFT_TRY(const Ino ino, texts_.current(version.id, file));
    add_file(kin_file_name(file), ino);
  }
  return out;
}

// The attributes of a diff take two manifests and are left to a lookup.
Result<std::vector<DirEntry>> Lineage::list_edges(const VersionRow& version, LineageEntry dir) {
  WEFT_TRY(const auto edges, live_kin(store_, version, kin_in(dir)));
  std::vector<DirEntry> out;
  for (const KinEntry& edge : edges) {
    const std::string name = kin_name(edge.other);
    if (dir == LineageEntry::diff)
      out.push_back(bare_entry(name, ino_of(InoKind::diff, edge.position, edge.child), FileType::regular));
    else
      out.push_back({name, kin_link_attr(version, kin_in(dir), edge), true});
  }
  return out;
}

Result<Ino> Lineage::parent(const MountInode& inode) {
  if (!is_dir(inode.ino)) return not_a_directory(inode.ino);
  if (entry_of(inode.ino) != LineageEntry::dir) return lineage_dir_ino(id_of(inode.ino));
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const VersionRow row, snapshot->version(id_of(inode.ino)));
  WEFT_TRY(const ModelRow model, snapshot->model(row.model));
  return ino_of(InoKind::lineage, model.ino);
}

Result<std::string> Lineage::readlink(const MountInode& inode) {
  if (!is_link(inode.ino)) return Subtree::readlink(inode);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(KinLink link, kin_link(*snapshot, inode.ino));
  return std::move(link.target);
}

Result<std::shared_ptr<OpenFile>> Lineage::open(const MountInode& inode) {
  if (is_link(inode.ino)) return is_a_link(inode.ino);
  if (is_dir(inode.ino)) return is_a_directory(inode.ino);
  WEFT_TRY(const auto text, texts_.find(inode.ino));
  return open_text(text->text);
}

Result<FileVersions> Lineage::versions(const MountInode& inode) {
  if (kind_of(inode.ino) == InoKind::lineage_entry && !is_dir(inode.ino)) return FileVersions{id_of(inode.ino), 0};
  if (kind_of(inode.ino) != InoKind::diff) return FileVersions{};
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const KinEnds ends, kin_ends(*snapshot, inode.ino));
  return FileVersions{ends.child.id, ends.parent.id};
}

}  // namespace weft
