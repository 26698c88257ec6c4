#include "vfs/kin_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "vfs/numbers.h"
#include "weft/listing.h"

namespace weft {
namespace {

constexpr std::string_view kEscapedSlash = "%2F";

// From lineage/<version>/<parents or children>/ to models/<other>.
std::string target_between(const VersionRow& version, const VersionRow& other) {
  std::string out;
  const auto depth = 4 + std::count(version.model_name.begin(), version.model_name.end(), '/');
  for (std::ptrdiff_t i = 0; i < depth; ++i) out += "../";
  return fmt::format("{}models/{}/{}", out, other.model_name, other.number);
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

// Nothing if the version is not there; its record may be lost.
Result<std::optional<VersionRow>> version_if_known(Snapshot& snapshot, VersionId id) {
  auto row = snapshot.version(id);
  if (row.ok()) return std::optional(std::move(row).value());
  if (row.error().code == Errc::not_found) return std::optional<VersionRow>();
  return std::move(row).error();
}

std::vector<VersionId> parents_of(const VersionRow& version) {
  std::vector<VersionId> ids;
  for (const ParentRef& parent : version.parents)
    if (parent.id != 0) ids.push_back(parent.id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// The first limits::kKinCountedMax.
Result<std::vector<VersionId>> children_of(Store& store, VersionId version) {
  std::vector<VersionId> ids;
  for (auto children = list_children(store, version); ids.size() < limits::kKinCountedMax;) {
    WEFT_TRY(const auto page, children.next());
    if (!page) break;
    ids.insert(ids.end(), page->begin(), page->end());
  }
  ids.resize(std::min(ids.size(), limits::kKinCountedMax));
  return ids;
}

// Removed versions too, by age.
Result<std::vector<KinEntry>> all_kin(Store& store, const VersionRow& version, Kin kin) {
  std::vector<VersionId> ids = parents_of(version);
  if (kin == Kin::child) {
    WEFT_TRY(ids, children_of(store, version.id));
  }
  std::vector<KinEntry> out;
  Renewed renewed(store);
  for (const VersionId id : ids) {
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(auto other, version_if_known(*now, id));
    if (!other) continue;
    const VersionRow& child = kin == Kin::child ? *other : version;
    const auto position = position_of(kin == Kin::child ? version : *other, child);
    if (position) out.push_back({std::move(*other), kin == Kin::child ? id : version.id, *position});
  }
  return out;
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

Result<std::vector<KinEntry>> live_kin(Store& store, const VersionRow& version, Kin kin) {
  WEFT_TRY(auto edges, all_kin(store, version, kin));
  std::erase_if(edges, [](const KinEntry& edge) { return edge.other.removed; });
  return edges;
}

Result<KinEntry> find_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name) {
  const auto ref = parse_kin_name(name);
  if (!ref) return no_entry(name);
  WEFT_TRY(const ModelRow model, snapshot.model(ref->model));
  WEFT_TRY(VersionRow other, snapshot.version(model.id, ref->number));
  const auto position = kin == Kin::child ? position_of(version, other) : position_of(other, version);
  if (!position || other.removed || kin_name(other) != name) return no_entry(name);
  const VersionId child = kin == Kin::child ? other.id : version.id;
  return KinEntry{std::move(other), child, *position};
}

Result<std::uint64_t> kin_changed_ns(Store& store, const VersionRow& version, Kin kin) {
  WEFT_TRY(const auto edges, all_kin(store, version, kin));
  std::uint64_t changed_ns = version.time_ns;
  for (const KinEntry& edge : edges) {
    if (kin == Kin::child) changed_ns = std::max(changed_ns, edge.other.time_ns);
    if (edge.other.removed) changed_ns = std::max(changed_ns, edge.other.removed_ns);
  }
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
