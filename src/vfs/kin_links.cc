#include "vfs/kin_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "vfs/numbers.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr std::string_view kEscapedSlash = "%2F";

// Returns the path from lineage/<version>/<parents or children>/ to models/<other> or datasets/<other>.
std::string target_between(const VersionRow& version, const VersionRow& other) {
  std::string out;
  const auto depth = 4 + std::count(version.model_name.begin(), version.model_name.end(), '/');
  for (std::ptrdiff_t i = 0; i < depth; ++i) out += "../";
  const std::string_view tree = other.kind == VersionKind::dataset ? "datasets" : "models";
  return fmt::format("{}{}/{}/{}", out, tree, other.model_name, other.number);
}

std::optional<ParentRef> parse_kin_name(std::string_view name) {
  const auto at = name.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = parse_u64(name.substr(at + 1));
  if (!number || name[at + 1] == '0') return std::nullopt;
  ParentRef ref{"", *number};
  for (std::string_view rest = name.substr(0, at); !rest.empty();) {
    const bool slash = rest.starts_with(kEscapedSlash);
    ref.model.push_back(slash ? '/' : rest.front());
    rest.remove_prefix(slash ? kEscapedSlash.size() : 1);
  }
  return ref;
}

std::optional<unsigned> position_of(const VersionRow& parent, const VersionRow& child) {
  for (unsigned position = 0; position < child.parents.size(); ++position)
    if (child.parents[position].id == parent.id) return position;
  return std::nullopt;
}

std::vector<VersionId> parents_of(const VersionRow& version) {
  std::vector<VersionId> ids;
  for (const ParentRef& parent : version.parents)
    if (parent.id != 0) ids.push_back(parent.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

std::string kin_name(const VersionRow& version) {
  std::string out;
  for (const char c : version.model_name) {
    if (c == '/')
      out += kEscapedSlash;
    else
      out.push_back(c);
  }
  return fmt::format("{}@{}", out, version.number);
}

Result<Page<VersionId>> kin_ids(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view from,
                                std::size_t rows_max) {
  if (kin == Kin::child) return snapshot.children(version.id, from, rows_max);
  Page<VersionId> page{parents_of(version), {}};  // at most limits::kParentsMax
  std::erase_if(page.rows, [begin = parse_u64(from).value_or(0)](VersionId id) { return id <= begin; });
  return page;
}

Result<KinEntry> kin_entry(Snapshot& snapshot, const VersionRow& version, Kin kin, VersionId id) {
  WEFT_TRY(VersionRow other, snapshot.version(id));
  const auto position = kin == Kin::child ? position_of(version, other) : position_of(other, version);
  if (!position) return no_entry(kin_name(other));
  return KinEntry{std::move(other), kin == Kin::child ? id : version.id, *position};
}

Result<KinEntry> find_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name) {
  const auto ref = parse_kin_name(name);
  if (!ref) return no_entry(name);
  WEFT_TRY(const ModelRow model, snapshot.model(ref->model));
  WEFT_TRY(const VersionRow other, snapshot.version(model.id, ref->number));
  WEFT_TRY(KinEntry edge, kin_entry(snapshot, version, kin, other.id));
  if (edge.other.removed || kin_name(edge.other) != name) return no_entry(name);
  return edge;
}

// Reads the first limits::kKinCountedMax entries.
Result<std::uint64_t> kin_changed_ns(Store& store, const VersionRow& version, Kin kin) {
  std::uint64_t changed_ns = version.time_ns;
  std::size_t count = 0;
  WEFT_CHECK(walk(store, [&](const auto& snapshot, std::string_view from) -> Result<std::string> {
    WEFT_TRY(Page<VersionId> page, kin_ids(*snapshot, version, kin, from, limits::kRowsPerSnapshot / 2));
    for (const VersionId id : page.rows) {
      const auto edge = kin_entry(*snapshot, version, kin, id);
      if (!edge.ok() && edge.error().code == Errc::not_found) continue;  // its record is lost
      if (!edge.ok()) return edge.error();
      if (kin == Kin::child) changed_ns = std::max(changed_ns, edge->other.time_ns);
      changed_ns = std::max({changed_ns, edge->other.removed_ns, edge->other.undeleted_ns, edge->other.renamed_ns});
    }
    count += page.rows.size();
    return count < limits::kKinCountedMax ? std::move(page.next) : std::string();
  }));
  return changed_ns;
}

Attr kin_link_attr(const VersionRow& version, Kin kin, const KinEntry& edge) {
  const InoKind kind = kin == Kin::child ? InoKind::child_link : InoKind::parent_link;
  const Ino ino = ino_of(kind, edge.position, edge.child);
  return link_attr(ino, edge.other.time_ns, target_between(version, edge.other).size());
}

Result<KinEnds> kin_ends(Snapshot& snapshot, Ino ino) {
  KinEnds ends;
  WEFT_TRY(ends.child, snapshot.version(id_of(ino)));
  const std::uint64_t position = high_of(ino);
  if (position >= ends.child.parents.size()) return no_inode(ino);
  WEFT_TRY(ends.parent, snapshot.version(ends.child.parents[position].id));
  return ends;
}

Result<KinLink> kin_link(Snapshot& snapshot, Ino ino) {
  WEFT_TRY(const KinEnds ends, kin_ends(snapshot, ino));
  const bool to_child = kind_of(ino) == InoKind::child_link;
  const VersionRow& version = to_child ? ends.parent : ends.child;
  const VersionRow& other = to_child ? ends.child : ends.parent;
  std::string target = target_between(version, other);
  return KinLink{link_attr(ino, other.time_ns, target.size()), std::move(target)};
}

}  // namespace weft
