#include "vfs/lineage.h"

#include <algorithm>
#include <utility>

#include "reading/open_file.h"
#include "vfs/page_maker.h"
#include "vfs/sums_file.h"

namespace weft {
namespace {

// The entries of lineage/<model>/<version>/ with constant numbers. Kin files are listed beside them.
struct LineagePlace {
  std::string_view name;
  LineageEntry entry;
  bool is_dir;
};
constexpr LineagePlace kLineagePlaces[] = {
    {"SHA256SUMS", LineageEntry::sums, false}, {"children", LineageEntry::children, true},
    {"diff", LineageEntry::diff, true},        {"graph.svg", LineageEntry::graph, false},
    {"info.json", LineageEntry::info, false},  {"owners.tsv", LineageEntry::owners, false},
    {"parents", LineageEntry::parents, true},
};

LineageEntry entry_of(Ino ino) {
  return static_cast<LineageEntry>(high_of(ino));
}

bool is_dir(Ino ino) {
  if (kind_of(ino) != InoKind::lineage_entry) return false;
  const LineageEntry entry = entry_of(ino);
  return entry == LineageEntry::dir || std::ranges::any_of(kLineagePlaces, [entry](const LineagePlace& fixed) {
           return fixed.entry == entry && fixed.is_dir;
         });
}

bool is_graph(Ino ino) {
  return kind_of(ino) == InoKind::lineage_entry && entry_of(ino) == LineageEntry::graph;
}

bool is_sums(Ino ino) {
  return kind_of(ino) == InoKind::lineage_entry && entry_of(ino) == LineageEntry::sums;
}

// True for the text of a kin file. The other texts change with the names of models, and info.json also with the
// version's message and metrics.
bool never_changes(Ino ino) {
  return kind_of(ino) == InoKind::kin_file;
}

bool is_kin_link(Ino ino) {
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

// The names in a version's directory are constant. But those of kin files lead to other files after a change, so the
// entries are not lasting.
Result<Attr> Lineage::dir_attr(const VersionRow& version, LineageEntry entry) {
  Attr attr = version_dir_attr(version, lineage_ino(entry, version.id));
  attr.lasting_entries = false;
  if (entry == LineageEntry::dir) return attr;
  attr.lasting_name = true;
  attr.lasting_attr = false;
  WEFT_TRY(attr.mtime_ns, kin_changed_ns(store_, version, kin_in(entry)));
  return attr;
}

Result<Attr> Lineage::sums_attr(Ino ino) {
  WEFT_TRY(const VersionRow row, version(id_of(ino)));
  WEFT_TRY(const auto file, open_sums(versions_, row.id));
  Attr attr = text_attr(ino, row.time_ns, file->size());
  attr.lasting_attr = true;
  attr.lasting_name = true;
  return attr;
}

Result<Attr> Lineage::file_attr(Ino ino) {
  if (is_sums(ino)) return sums_attr(ino);
  WEFT_TRY(const auto text, texts_.find(ino));
  Attr attr = text_attr(ino, text->time_ns, text->text.size());
  attr.lasting_attr = never_changes(ino);
  attr.lasting_name = kind_of(ino) == InoKind::lineage_entry && !is_graph(ino);
  return attr;
}

Result<Attr> Lineage::edge_attr(const VersionRow& version, LineageEntry dir, const KinEntry& edge) {
  if (dir != LineageEntry::diff) return kin_link_attr(version, kin_in(dir), edge);
  return file_attr(ino_of(InoKind::diff, edge.position, edge.child));
}

Result<Attr> Lineage::attr(const MountInode& inode) {
  if (is_kin_link(inode.ino)) {
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
  for (const LineagePlace& fixed : kLineagePlaces)
    if (fixed.name == name)
      return fixed.is_dir ? dir_attr(row, fixed.entry) : file_attr(lineage_ino(fixed.entry, row.id));
  for (unsigned file = 0; file < kKinFileCount; ++file) {
    if (kin_file_name(file) != name) continue;
    WEFT_TRY(const Ino ino, texts_.current(row.id, file));
    return file_attr(ino);
  }
  return no_entry(name);
}

Result<DirPage> Lineage::list(const MountInode& dir, ListPlace from) {
  if (!is_dir(dir.ino)) return not_a_directory(dir.ino);
  WEFT_TRY(const VersionRow row, version(id_of(dir.ino)));
  const LineageEntry entry = entry_of(dir.ino);
  if (entry != LineageEntry::dir) return list_edges(row, entry, from);
  WEFT_TRY(auto entries, list_version(row));
  return page_of(std::move(entries), from);
}

// Returns names and numbers only: the size of a text requires its rendering, and the time of children/ requires all
// children. A kin file gets the number that it has if the latest change of the store concerned its kin.
Result<std::vector<DirEntry>> Lineage::list_version(const VersionRow& version) {
  std::vector<DirEntry> out;
  for (const LineagePlace& fixed : kLineagePlaces)
    out.push_back(bare_entry(std::string(fixed.name), lineage_ino(fixed.entry, version.id),
                             fixed.is_dir ? FileType::directory : FileType::regular));
  WEFT_TRY(const auto snapshot, store_.snapshot());
  for (unsigned file = 0; file < kKinFileCount; ++file)
    out.push_back(bare_entry(std::string(kin_file_name(file)),
                             ino_of(KinFileNumber{file, version.id, snapshot->lineage_clock()}), FileType::regular));
  return out;
}

// Lists by age. The attributes of a diff require two manifests, so only a lookup returns them.
Result<DirPage> Lineage::list_edges(const VersionRow& version, LineageEntry dir, ListPlace from) {
  const Kin kin = kin_in(dir);
  PageMaker page(store_, from);
  const auto read = [&](Snapshot& now, std::string_view next, std::size_t rows_max) {
    return kin_ids(now, version, kin, next, rows_max);
  };
  WEFT_CHECK(page.add(1, number_behind, read, [&](Snapshot& now, VersionId id) -> Result<DirEntry> {
    WEFT_TRY(const KinEntry edge, kin_entry(now, version, kin, id));
    std::string name = kin_name(edge.other);
    if (edge.other.removed) return no_entry(name);
    if (dir != LineageEntry::diff)
      return DirEntry{std::move(name), kin_link_attr(version, kin, edge), true, place_of(1, id)};
    const Ino ino = ino_of(InoKind::diff, edge.position, edge.child);
    DirEntry entry = bare_entry(std::move(name), ino, FileType::regular);
    entry.place = place_of(1, id);
    return entry;
  }));
  return page.take();
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
  if (!is_kin_link(inode.ino)) return Subtree::readlink(inode);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(KinLink link, kin_link(*snapshot, inode.ino));
  return std::move(link.target);
}

Result<std::shared_ptr<OpenFile>> Lineage::open(const MountInode& inode) {
  if (is_kin_link(inode.ino)) return is_a_link(inode.ino);
  if (is_dir(inode.ino)) return is_a_directory(inode.ino);
  if (is_sums(inode.ino)) return open_sums(versions_, id_of(inode.ino));
  WEFT_TRY(const auto text, texts_.find(inode.ino));
  return open_text(text->text, never_changes(inode.ino) ? ReadMode::cached : ReadMode::changing);
}

Result<FileVersions> Lineage::versions(const MountInode& inode) {
  if (is_graph(inode.ino)) return FileVersions{};
  if (kind_of(inode.ino) == InoKind::lineage_entry && !is_dir(inode.ino)) return FileVersions{id_of(inode.ino), 0};
  if (kind_of(inode.ino) != InoKind::diff) return FileVersions{};
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const KinEnds ends, kin_ends(*snapshot, inode.ino));
  return FileVersions{ends.child.id, ends.parent.id};
}

}  // namespace weft
