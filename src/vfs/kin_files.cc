#include "vfs/kin_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/limits.h"
#include "base/text.h"
#include "query/kin.h"
#include "reading/open_file.h"
#include "vfs/kin_links.h"
#include "vfs/numbers.h"
#include "weft/kin.h"

namespace weft {
namespace {

constexpr Ino kDiffBit = Ino{1} << 60U;
constexpr unsigned kWideBits = 30;  // of a version in a diff's number, and of the clock
constexpr unsigned kVersionBits = 27;
constexpr unsigned kClockBits = 30;
constexpr std::string_view kDiffName = "diff";

constexpr std::uint64_t mask(unsigned bits) {
  return (std::uint64_t{1} << bits) - 1;
}

enum File : unsigned { kAncestors, kDescendants, kLog, kSvg, kDot, kOwners, kFileCount };
struct FileKind {
  std::string_view name;
  KinWay way;
  std::size_t shown_max;
  std::string (*render)(const KinGraph&);  // none: it does not change
};
constexpr FileKind kFiles[kFileCount] = {
    {"ancestors", KinWay::ancestors, limits::kKinCountedMax, draw_ancestors},
    {"descendants", KinWay::descendants, limits::kKinCountedMax, draw_descendants},
    {"log", KinWay::ancestors, limits::kKinCountedMax, render_log},
    {"graph.svg", KinWay::both, limits::kKinDrawnMax, kin_svg},
    {"graph.dot", KinWay::both, limits::kKinDrawnMax, kin_dot},
    {"owners.tsv", KinWay::ancestors, 1, nullptr},
};

struct Address {
  bool diff = false;
  unsigned file = 0;  // of kFiles, when it is no diff
  VersionId version = 0;
  VersionId parent = 0;  // of a diff; 0: the directory
  std::uint64_t clock = 0;
};

Result<Ino> ino_of(const Address& at) {
  if (at.version > mask(kVersionBits) || at.clock > mask(kClockBits))
    return Error{Errc::internal,
                 fmt::format("version {} and tick {} are too large for an inode", at.version, at.clock)};
  if (at.diff) return kKinFileBit | kDiffBit | (at.version << kWideBits) | at.parent;
  return kKinFileBit | (Ino{at.file} << (kVersionBits + kClockBits)) | (at.version << kClockBits) | at.clock;
}

Address address_of(Ino ino) {
  Address at;
  at.diff = (ino & kDiffBit) != 0;
  if (at.diff) {
    at.version = (ino >> kWideBits) & mask(kWideBits);
    at.parent = ino & mask(kWideBits);
    return at;
  }
  at.file = static_cast<unsigned>((ino >> (kVersionBits + kClockBits)) & 7U);
  at.version = (ino >> kClockBits) & mask(kVersionBits);
  at.clock = ino & mask(kClockBits);
  return at;
}

bool is_diff_dir(Ino ino) {
  const Address at = address_of(ino);
  return at.diff && at.parent == 0;
}

Attr text_attr(Ino ino, const VersionRow& version, std::size_t bytes) {
  Attr attr = version_dir_attr(version, ino);
  attr.type = FileType::regular;
  attr.size = bytes;
  attr.blocks = bytes == 0 ? 0 : 1;
  attr.lasting_entries = false;
  return attr;
}

// Its entries go with the parents.
Attr diff_dir_attr(Ino ino, const VersionRow& version) {
  Attr attr = version_dir_attr(version, ino);
  attr.lasting_name = true;
  attr.lasting_entries = false;
  return attr;
}

}  // namespace

Result<Ino> KinFiles::parent(const MountInode& inode) {
  return lineage_of_(address_of(inode.ino).version);
}

Result<FileVersions> KinFiles::versions(const MountInode& inode) {
  const Address at = address_of(inode.ino);
  if (at.diff) return FileVersions{at.version, at.parent};
  return FileVersions{at.file == kOwners ? at.version : 0, 0};
}

Result<VersionRow> KinFiles::version(VersionId id) {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->version(id);
}

// The number that a file has by what is published and removed now.
Result<Ino> KinFiles::current(const VersionRow& version, unsigned file) {
  Address at{false, file, version.id, 0, 0};
  if (kFiles[file].render != nullptr) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const GatheredKin kin, gather_kin(*snapshot, version.id, kFiles[file].way, 1));
    at.clock = kin.clock;
  }
  return ino_of(at);
}

Result<Attr> KinFiles::lookup_of(const VersionRow& version, std::string_view name) {
  if (name == kDiffName) {
    WEFT_TRY(const Ino ino, ino_of({true, 0, version.id, 0, 0}));
    return diff_dir_attr(ino, version);
  }
  for (unsigned file = 0; file < kFileCount; ++file) {
    if (kFiles[file].name != name) continue;
    WEFT_TRY(const Ino ino, current(version, file));
    return attr_of(ino);
  }
  return no_entry(name);
}

Result<std::vector<DirEntry>> KinFiles::list_of(const VersionRow& version) {
  std::vector<DirEntry> out;
  for (const FileKind& kind : kFiles) {
    WEFT_TRY(const Attr attr, lookup_of(version, kind.name));
    out.push_back({std::string(kind.name), attr, true});
  }
  WEFT_TRY(const Attr diff, lookup_of(version, kDiffName));
  out.push_back({std::string(kDiffName), diff, true});
  return out;
}

Result<Attr> KinFiles::attr_of(Ino ino) {
  const Address at = address_of(ino);
  WEFT_TRY(const VersionRow row, version(at.version));
  if (is_diff_dir(ino)) return diff_dir_attr(ino, row);
  WEFT_TRY(const Text bytes, text(ino));
  return text_attr(ino, row, bytes->size());
}

Result<std::shared_ptr<OpenFile>> KinFiles::open(const MountInode& inode) {
  if (is_diff_dir(inode.ino)) return is_a_directory(inode.ino);
  WEFT_TRY(const Text bytes, text(inode.ino));
  return open_text(*bytes);
}

Result<KinFiles::Text> KinFiles::text(Ino ino) {
  if (Text known = texts_.find(ino)) return known;
  WEFT_TRY(std::string rendered, render(ino));
  auto out = std::make_shared<const std::string>(std::move(rendered));
  texts_.put(ino, out, out->size());
  return out;
}

Result<std::string> KinFiles::render(Ino ino) {
  const Address at = address_of(ino);
  if (at.diff) return render_diff_of(at.version, at.parent);
  if (at.file >= kFileCount) return no_inode(ino);
  if (kFiles[at.file].render != nullptr) return render_kin(ino);
  WEFT_TRY(const VersionRow row, version(at.version));
  return owners_text(store_, row);
}

Result<std::string> KinFiles::render_kin(Ino ino) {
  const Address at = address_of(ino);
  const FileKind& kind = kFiles[at.file];
  GatheredKin kin;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(kin, gather_kin(*snapshot, at.version, kind.way, kind.shown_max, at.clock));
  }
  if (kin.graph.versions.empty()) return no_inode(ino);
  return kind.render(kin.graph);
}

Result<std::string> KinFiles::render_diff_of(VersionId child, VersionId parent) {
  WEFT_TRY(const VersionRow after, version(child));
  WEFT_TRY(const VersionRow before, version(parent));
  WEFT_TRY(const LoadedVersion a, load_version(store_, before));
  WEFT_TRY(const LoadedVersion b, load_version(store_, after));
  const DiffSides sides{spec_of(before.model_name, before.number), spec_of(after.model_name, after.number),
                        a.tree->manifest(), b.tree->manifest()};
  WEFT_TRY(const ManifestDiff diff, diff_manifests(sides.before, sides.after));
  return render_diff(sides, diff);
}

Result<Attr> KinFiles::lookup(const MountInode& dir, std::string_view name) {
  if (!is_diff_dir(dir.ino)) return not_a_directory(dir.ino);
  WEFT_TRY(const VersionRow row, version(address_of(dir.ino).version));
  VersionId parent = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const auto parents, live_kin(*snapshot, row, Kin::parent));
    for (const VersionRow& one : parents)
      if (kin_name(one) == name) parent = one.id;
  }
  if (parent == 0) return no_entry(name);
  WEFT_TRY(const Ino ino, ino_of({true, 0, row.id, parent, 0}));
  return attr_of(ino);
}

Result<std::vector<DirEntry>> KinFiles::list(const MountInode& dir) {
  if (!is_diff_dir(dir.ino)) return not_a_directory(dir.ino);
  WEFT_TRY(const VersionRow row, version(address_of(dir.ino).version));
  std::vector<DirEntry> out;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const auto parents, live_kin(*snapshot, row, Kin::parent));
  for (const VersionRow& one : parents) {
    WEFT_TRY(const Ino ino, ino_of({true, 0, row.id, one.id, 0}));
    out.push_back(bare_entry(kin_name(one), ino, FileType::regular));
  }
  std::ranges::sort(out, {}, &DirEntry::name);
  return out;
}

}  // namespace weft
