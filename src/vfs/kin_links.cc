#include "vfs/kin_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "vfs/numbers.h"

namespace weft {
namespace {

// A link's number: kKinLinkBit, bit 61 of a child, 30 bits of the version, 30 of the other one.
constexpr unsigned kVersionBits = 30;
constexpr VersionId kVersionMask = (VersionId{1} << kVersionBits) - 1;
constexpr Ino kChildBit = Ino{1} << 61U;
constexpr std::string_view kEscapedSlash = "%2F";

Result<Ino> link_ino(VersionId version, VersionId other, Kin kin) {
  if (version > kVersionMask || other > kVersionMask)
    return Error{Errc::internal, fmt::format("version id {} is too large for a link", std::max(version, other))};
  return kKinLinkBit | (kin == Kin::child ? kChildBit : 0) | (version << kVersionBits) | other;
}

struct LinkEnds {
  VersionRow version;  // in whose directory the link is
  VersionRow other;    // where it leads
};

Result<LinkEnds> link_ends(Snapshot& snapshot, Ino ino) {
  LinkEnds ends;
  WEFT_TRY(ends.version, snapshot.version((ino >> kVersionBits) & kVersionMask));
  WEFT_TRY(ends.other, snapshot.version(ino & kVersionMask));
  return ends;
}

// From models/<version>/lineage/<parents or children>/ to models/<other>.
std::string target_between(const LinkEnds& ends) {
  std::string out;
  const auto depth = 4 + std::count(ends.version.model_name.begin(), ends.version.model_name.end(), '/');
  for (std::ptrdiff_t i = 0; i < depth; ++i) out += "../";
  return fmt::format("{}{}/{}", out, ends.other.model_name, ends.other.number);
}

Attr attr_between(Ino ino, const LinkEnds& ends) {
  return link_attr(ino, ends.other.time_ns, target_between(ends).size());
}

std::optional<ParentRef> parse_link_name(std::string_view name) {
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

bool declares(const VersionRow& child, std::string_view model, std::uint64_t number) {
  return std::any_of(child.parents.begin(), child.parents.end(),
                     [&](const ParentRef& parent) { return parent.model == model && parent.number == number; });
}

bool related(const VersionRow& version, const VersionRow& other, Kin kin) {
  return kin == Kin::parent ? declares(version, other.model_name, other.number)
                            : declares(other, version.model_name, version.number);
}

// A version by name, or nothing when it is not there or removed.
Result<std::optional<VersionRow>> live_version(Snapshot& snapshot, std::string_view model, std::uint64_t number) {
  const auto model_row = snapshot.model(model);
  if (!model_row.ok() && model_row.error().code == Errc::not_found) return std::optional<VersionRow>();
  if (!model_row.ok()) return model_row.error();
  auto row = snapshot.version(model_row->id, number);
  if (!row.ok() && row.error().code == Errc::not_found) return std::optional<VersionRow>();
  if (!row.ok()) return row.error();
  return row->removed ? std::nullopt : std::optional<VersionRow>(std::move(row).value());
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

Result<std::vector<VersionRow>> live_kin(Snapshot& snapshot, const VersionRow& version, Kin kin) {
  std::vector<VersionId> ids;
  if (kin == Kin::child) {
    WEFT_TRY(ids, snapshot.children(version.id, SIZE_MAX));
  } else {
    for (const ParentRef& parent : version.parents)
      if (parent.id != 0) ids.push_back(parent.id);
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  std::vector<VersionRow> out;
  for (const VersionId id : ids) {
    auto row = snapshot.version(id);
    if (!row.ok() && row.error().code != Errc::not_found) return std::move(row).error();
    if (row.ok() && !row->removed) out.push_back(std::move(row).value());
  }
  return out;
}

Result<Attr> KinLinks::attr(const MountInode& inode) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const LinkEnds ends, link_ends(*snapshot, inode.ino));
  return attr_between(inode.ino, ends);
}

Result<std::string> KinLinks::readlink(const MountInode& inode) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const LinkEnds ends, link_ends(*snapshot, inode.ino));
  return target_between(ends);
}

Result<Attr> lookup_kin(Snapshot& snapshot, const VersionRow& version, Kin kin, std::string_view name) {
  const auto ref = parse_link_name(name);
  if (!ref) return no_entry(name);
  WEFT_TRY(auto other, live_version(snapshot, ref->model, ref->number));
  if (!other || !related(version, *other, kin) || kin_name(*other) != name) return no_entry(name);
  WEFT_TRY(const Ino ino, link_ino(version.id, other->id, kin));
  return attr_between(ino, {version, *other});
}

Result<std::vector<DirEntry>> list_kin(Snapshot& snapshot, const VersionRow& version, Kin kin) {
  WEFT_TRY(const auto others, live_kin(snapshot, version, kin));
  std::vector<DirEntry> out;
  for (const VersionRow& other : others) {
    WEFT_TRY(const Ino ino, link_ino(version.id, other.id, kin));
    out.push_back(bare_entry(kin_name(other), ino, FileType::link));
  }
  std::ranges::sort(out, {}, &DirEntry::name);
  return out;
}

}  // namespace weft
