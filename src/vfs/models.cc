#include "vfs/models.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::string_view kLatest = "latest";

Error absent(std::string_view name) {
  return {Errc::not_found, fmt::format("no entry {}", printable(name))};
}

// Commits change it, and Vfs::changes() tells of that.
Attr told(Attr attr) {
  attr.told = true;
  return attr;
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
  return told(directory_attr(model.ino, time_ns));
}

Result<Attr> latest_attr(Snapshot& snapshot, const ModelRow& model) {
  if (model.latest == 0) return absent(kLatest);
  WEFT_TRY(const VersionRow latest, snapshot.version(model.id, model.latest));
  return told(link_attr(model.latest_ino, latest.time_ns, std::to_string(model.latest).size()));
}

Attr tag_attr(const TagRow& tag) {
  return told(link_attr(tag.ino, tag.time_ns, std::to_string(tag.number).size()));
}

Result<Attr> numbered_attr(Snapshot& snapshot, ModelId model, std::string_view name) {
  const auto number = parse_u64(name);
  if (!number || name.front() == '0') return absent(name);
  WEFT_TRY(const VersionRow version, snapshot.version(model, *number));
  if (version.removed) return absent(name);
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

}  // namespace

Attr directory_attr(Ino ino, std::uint64_t mtime_ns) {
  Attr attr;
  attr.ino = ino;
  attr.type = FileType::directory;
  attr.mtime_ns = mtime_ns;
  return attr;
}

Attr link_attr(Ino ino, std::uint64_t mtime_ns, std::size_t target_bytes) {
  Attr attr;
  attr.ino = ino;
  attr.type = FileType::link;
  attr.size = target_bytes;
  attr.mtime_ns = mtime_ns;
  return attr;
}

Attr version_dir_attr(const VersionRow& version, Ino ino) {
  Attr attr = directory_attr(ino, version.time_ns);
  attr.lasting_attr = true;
  attr.lasting_entries = true;
  return attr;
}

DirEntry bare_entry(std::string name, Ino ino, FileType type) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.attr.ino = ino;
  entry.attr.type = type;
  return entry;
}

Result<Attr> catalog_attr(Snapshot& snapshot, const StoreInfo& store, const InodeRow& row) {
  if (row.kind == InodeKind::namespace_dir) return directory_attr(row.base, store.created_ns);
  if (row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, snapshot.tag(row.model, row.name));
    return tag_attr(tag);
  }
  WEFT_TRY(const ModelRow model, snapshot.model(row.model));
  return row.kind == InodeKind::latest_link ? latest_attr(snapshot, model) : model_dir_attr(snapshot, model);
}

Result<std::string> catalog_readlink(Snapshot& snapshot, const InodeRow& row) {
  if (row.kind == InodeKind::tag_link) {
    WEFT_TRY(const TagRow tag, snapshot.tag(row.model, row.name));
    return std::to_string(tag.number);
  }
  if (row.kind != InodeKind::latest_link) return Error{Errc::invalid, "not a link"};
  WEFT_TRY(const ModelRow model, snapshot.model(row.model));
  if (model.latest == 0) return absent(kLatest);
  return std::to_string(model.latest);
}

Result<Ino> catalog_parent(Snapshot& snapshot, const InodeRow& row) {
  if (row.kind == InodeKind::latest_link || row.kind == InodeKind::tag_link) {
    WEFT_TRY(const ModelRow model, snapshot.model(row.model));
    return model.ino;
  }
  return namespace_ino(snapshot, split_last(row.name).first);
}

Result<Attr> lookup_in_namespace(Snapshot& snapshot, const StoreInfo& store, std::string_view prefix,
                                 std::string_view name) {
  WEFT_TRY(const NamespaceEntry entry, snapshot.namespace_entry(prefix, name));
  WEFT_TRY(const InodeRow row, snapshot.inode(entry.ino));
  return catalog_attr(snapshot, store, row);
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
  std::sort(out.begin(), out.end(), [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return out;
}

}  // namespace weft
