#include "weft/vfs.h"

#include <fmt/core.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

#include "os/safe_path.h"
#include "os/sys.h"
#include "reading/open_file.h"
#include "vfs/changes.h"
#include "vfs/fixed.h"
#include "vfs/lineage.h"
#include "vfs/models.h"
#include "vfs/seen.h"
#include "vfs/version.h"
#include "vfs/views.h"
#include "weft/tree.h"

namespace weft {
namespace {

Error no_inode(Ino ino) {
  return {Errc::not_found, fmt::format("no inode {}", ino)};
}
Error not_a_directory(Ino ino) {
  return {Errc::not_dir, fmt::format("inode {} is not a directory", ino)};
}
Error is_a_directory(Ino ino) {
  return {Errc::is_dir, fmt::format("inode {} is a directory", ino)};
}

class StoreVfs final : public Vfs {
 public:
  StoreVfs(Store& store, const VfsOptions& options)
      : store_(store),
        versions_(store, prefetcher_, options.show_views, {options.cold, options.cold_policy}),
        fixed_(store, versions_, options.mount_status) {}

  Result<Attr> lookup(Ino parent, std::string_view name) override;
  Result<Attr> getattr(Ino ino) override;
  Result<std::vector<DirEntry>> list(Ino dir) override;
  Result<Ino> parent(Ino dir) override;
  Result<std::string> readlink(Ino ino) override;
  Result<std::shared_ptr<OpenFile>> open(Ino ino) override;
  Result<Opened> open_with_attr(Ino ino) override;
  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) override {
    return store_.take_over_holds(versions);
  }
  Result<StatFs> statfs() override;
  Result<std::vector<std::pair<std::string, std::string>>> xattrs(Ino ino) override;
  Result<std::unique_ptr<CommitWatch>> watch() override { return store_.watch_commits(); }
  Result<std::uint64_t> position() override;
  Status changes(std::uint64_t from, std::uint64_t to, const TellChanges& tell) override {
    return tell_changes(store_, versions_, from, to, tell);
  }
  void set_mount_status(std::string json_members) override { fixed_.set_mount_status(std::move(json_members)); }
  void assemble(const AssemblyOptions& options, std::function<void(Ino)> tell) override {
    versions_.assembly().start(options, std::move(tell));
  }
  void assemble_nothing(std::string reason) override { versions_.assembly().start_nothing(std::move(reason)); }
  void stop_assembling() override { versions_.assembly().stop(); }
  bool assembled(Ino ino) override;
  Result<Place> place(Ino ino) override;
  void trim() override {
    versions_.trim();
    seen_.drop_unused(kSeenKeptFor);
  }

 private:
  static constexpr std::chrono::seconds kSeenKeptFor{10};

  Result<Attr> lookup_below(Ino parent, std::string_view name);
  Result<SeenInode> look_at(Ino ino);
  Result<InodeRow> inode(Ino ino);
  Result<std::shared_ptr<OpenFile>> open_row(Ino ino, const InodeRow& row);
  Result<std::shared_ptr<OpenFile>> open_view(const InodeRow& row);
  Result<Opened> open_kin(Ino ino);
  Status hold(VersionId version, Opened& opened);

  Store& store_;
  Prefetcher prefetcher_;
  Versions versions_;
  FixedFiles fixed_;
  Seen seen_{store_};
};

Result<InodeRow> StoreVfs::inode(Ino ino) {
  if (ino < kFirstStoredIno) return no_inode(ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->inode(ino);
}

Result<Attr> StoreVfs::lookup(Ino parent, std::string_view name) {
  const FixedEntry* entry = fixed_entry(parent);
  if (entry != nullptr && parent != kModelsIno) return fixed_.lookup(*entry, name);
  if (is_kin_link(parent)) return not_a_directory(parent);
  if (is_kin_file(parent)) return versions_.kin().lookup_in(parent, name);
  if (const auto known = seen_.name(parent, name)) return *known;
  return lookup_below(parent, name);
}

// What lies below a version is not kept: the kernel does that.
Result<Attr> StoreVfs::lookup_below(Ino parent, std::string_view name) {
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    row.kind = InodeKind::namespace_dir;
    if (parent != kModelsIno) {
      WEFT_TRY(row, snapshot->inode(parent));
    }
    if (row.kind == InodeKind::namespace_dir || row.kind == InodeKind::model_dir) {
      auto attr = row.kind == InodeKind::model_dir ? lookup_in_model(*snapshot, row.model, name)
                                                   : lookup_in_namespace(*snapshot, store_.info(), row.name, name);
      if (attr.ok()) seen_.put(parent, name, snapshot->state(), *attr);
      return attr;
    }
  }
  if (row.kind != InodeKind::version) return not_a_directory(parent);
  WEFT_TRY(const TreeNode dir, versions_.node(row, parent));
  return versions_.lookup(dir, name);
}

Result<Attr> StoreVfs::getattr(Ino ino) {
  if (const FixedEntry* entry = fixed_entry(ino)) return fixed_.attr(*entry);
  if (is_kin_file(ino)) return versions_.kin().attr(ino);
  if (is_kin_link(ino)) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    return kin_link_attr(*snapshot, ino);
  }
  if (const auto known = seen_.inode(ino)) return known->attr;
  WEFT_TRY(SeenInode now, look_at(ino));
  const Attr attr = now.attr;
  seen_.put(ino, std::move(now));
  return attr;
}

// Of an inode in the store. The attributes may be of a later state than the row: then nobody takes them for this one's.
Result<SeenInode> StoreVfs::look_at(Ino ino) {
  SeenInode seen;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    seen.state = snapshot->state();
    WEFT_TRY(seen.row, snapshot->inode(ino));
    if (seen.row.kind == InodeKind::view) {
      seen.attr = view_attr(seen.row);
      return seen;
    }
    if (seen.row.kind != InodeKind::version) {
      WEFT_TRY(seen.attr, catalog_attr(*snapshot, store_.info(), seen.row));
      return seen;
    }
  }
  WEFT_TRY(const TreeNode node, versions_.node(seen.row, ino));
  WEFT_TRY(seen.attr, versions_.attr(node));
  return seen;
}

Result<std::vector<DirEntry>> StoreVfs::list(Ino dir) {
  if (const FixedEntry* entry = fixed_entry(dir); entry != nullptr && dir != kModelsIno) return fixed_.list(*entry);
  if (is_kin_link(dir)) return not_a_directory(dir);
  if (is_kin_file(dir)) return versions_.kin().list_in(dir);
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    if (dir == kModelsIno) return list_namespace(*snapshot, "");
    WEFT_TRY(row, snapshot->inode(dir));
    if (row.kind == InodeKind::namespace_dir) return list_namespace(*snapshot, row.name);
    if (row.kind == InodeKind::model_dir) return list_model(*snapshot, row.model);
  }
  if (row.kind != InodeKind::version) return not_a_directory(dir);
  WEFT_TRY(const TreeNode node, versions_.node(row, dir));
  return versions_.list(node);
}

Result<Ino> StoreVfs::parent(Ino dir) {
  if (const FixedEntry* entry = fixed_entry(dir)) return entry->parent;
  if (is_kin_link(dir)) return not_a_directory(dir);
  if (is_kin_file(dir)) return versions_.lineage_ino(KinFiles::version_of(dir));
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(row, snapshot->inode(dir));
    if (row.kind == InodeKind::view) return not_a_directory(dir);
    if (row.kind != InodeKind::version) return catalog_parent(*snapshot, row);
  }
  WEFT_TRY(const TreeNode node, versions_.node(row, dir));
  return versions_.parent(node);
}

Result<std::string> StoreVfs::readlink(Ino ino) {
  const Error no_link{Errc::invalid, fmt::format("inode {} is not a link", ino)};
  if (fixed_entry(ino) != nullptr || is_kin_file(ino)) return no_link;
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (is_kin_link(ino)) return kin_link_target(*snapshot, ino);
  WEFT_TRY(const InodeRow row, snapshot->inode(ino));
  if (row.kind == InodeKind::version || row.kind == InodeKind::view) return no_link;
  return catalog_readlink(*snapshot, row);
}

Result<std::shared_ptr<OpenFile>> StoreVfs::open(Ino ino) {
  if (const FixedEntry* entry = fixed_entry(ino)) return fixed_.open(*entry);
  if (is_kin_link(ino)) return Error{Errc::invalid, fmt::format("inode {} is a link", ino)};
  if (is_kin_file(ino)) return versions_.kin().open(ino);
  WEFT_TRY(const InodeRow row, inode(ino));
  return open_row(ino, row);
}

Result<std::shared_ptr<OpenFile>> StoreVfs::open_row(Ino ino, const InodeRow& row) {
  if (row.kind == InodeKind::view) return open_view(row);
  if (row.kind == InodeKind::namespace_dir || row.kind == InodeKind::model_dir) return is_a_directory(ino);
  if (row.kind != InodeKind::version) return Error{Errc::invalid, fmt::format("inode {} is a link", ino)};
  WEFT_TRY(const TreeNode node, versions_.node(row, ino));
  return versions_.open(node);
}

Result<std::shared_ptr<OpenFile>> StoreVfs::open_view(const InodeRow& row) {
  auto opened = weft::open_view(store_, row, prefetcher_);
  if (opened.ok() || opened.error().code != Errc::absent) return opened;
  std::optional<std::pair<VersionId, std::uint32_t>> owner;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(owner, snapshot->owner(row.view.content));
  }
  return versions_.open_absent_view(row, owner);
}

Status StoreVfs::hold(VersionId version, Opened& opened) {
  WEFT_TRY(VersionHold hold, store_.hold_version(version));
  opened.versions[opened.holds.size()] = version;
  opened.holds.push_back(std::move(hold));
  return {};
}

Result<Opened> StoreVfs::open_kin(Ino ino) {
  Opened opened;
  for (const VersionId version : KinFiles::versions_of(ino))
    if (version != 0) WEFT_CHECK(hold(version, opened));
  WEFT_TRY(opened.file, versions_.kin().open(ino));
  WEFT_TRY(opened.attr, versions_.kin().attr(ino));
  return opened;
}

// One look at the index tells all of a view whose bytes are not here. They may come meanwhile: then they are brought
// from here.
Result<Opened> StoreVfs::open_with_attr(Ino ino) {
  if (is_kin_file(ino)) return open_kin(ino);
  if (ino < kFirstStoredIno || is_kin_link(ino)) return Vfs::open_with_attr(ino);
  Opened opened;
  if (const auto known = seen_.inode(ino); known && known->row.kind == InodeKind::version) {
    WEFT_CHECK(hold(known->row.version, opened));
    WEFT_TRY(opened.file, open_row(ino, known->row));
    opened.attr = known->attr;
    return opened;
  }
  SeenInode seen;
  const InodeRow& row = seen.row;
  bool absent = false;
  std::optional<std::pair<VersionId, std::uint32_t>> owner;
  VersionId keeper = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    seen.state = snapshot->state();
    WEFT_TRY(seen.row, snapshot->inode(ino));
    keeper = row.version;
    if (row.kind == InodeKind::view) {
      WEFT_TRY(keeper, snapshot->keeper(row));
    }
    if (row.kind == InodeKind::view && row.view.content.length > 0) {
      const auto place = snapshot->find_blob(row.view.content);
      absent = !place.ok() && place.error().code == Errc::absent;
    }
    if (absent) {
      WEFT_TRY(owner, snapshot->owner(row.view.content));
    }
  }
  if (keeper != 0) WEFT_CHECK(hold(keeper, opened));
  WEFT_TRY(opened.file, absent ? versions_.open_absent_view(row, owner) : open_row(ino, row));
  if (row.kind == InodeKind::view) {
    opened.attr = view_attr(row);
    return opened;
  }
  if (row.kind != InodeKind::version) return Error{Errc::internal, fmt::format("inode {} is open", ino)};
  WEFT_TRY(const TreeNode node, versions_.node(row, ino));
  WEFT_TRY(seen.attr, versions_.attr(node));
  opened.attr = seen.attr;
  seen_.put(ino, std::move(seen));
  return opened;
}

Result<StatFs> StoreVfs::statfs() {
  struct statvfs facts {};
  if (::fstatvfs(store_.directory().root().fd(), &facts) != 0) return sys_error(errno, store_.path() + ": statvfs");
  return StatFs{facts.f_frsize, facts.f_blocks, facts.f_bfree, facts.f_bavail, facts.f_files, facts.f_ffree};
}

Result<std::vector<std::pair<std::string, std::string>>> StoreVfs::xattrs(Ino ino) {
  if (ino < kFirstStoredIno || is_kin_link(ino) || is_kin_file(ino))
    return std::vector<std::pair<std::string, std::string>>();
  WEFT_TRY(const InodeRow row, inode(ino));
  if (row.kind != InodeKind::view) return std::vector<std::pair<std::string, std::string>>();
  return view_xattrs(row);
}

bool StoreVfs::assembled(Ino ino) {
  if (ino < kFirstStoredIno || is_kin_link(ino) || is_kin_file(ino)) return false;
  const auto row = inode(ino);
  if (!row.ok() || row->kind != InodeKind::version) return false;
  const auto node = versions_.node(*row, ino);
  return node.ok() && versions_.assembled(*node);
}

Result<Place> StoreVfs::place(Ino ino) {
  WEFT_TRY(const InodeRow row, inode(ino));
  if (row.kind != InodeKind::version) return no_inode(ino);
  WEFT_TRY(const TreeNode node, versions_.node(row, ino));
  WEFT_TRY(const Ino dir, versions_.parent(node));
  return Place{dir, node.node().name};
}

Result<std::uint64_t> StoreVfs::position() {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->journal_end();
}

}  // namespace

// NOLINTBEGIN(performance-unnecessary-value-param): who overrides them keeps what is given
void Vfs::assemble(const AssemblyOptions&, std::function<void(Ino)>) {}
void Vfs::assemble_nothing(std::string) {}
// NOLINTEND(performance-unnecessary-value-param)
Result<Opened> Vfs::open_with_attr(Ino ino) {
  WEFT_TRY(auto file, open(ino));
  WEFT_TRY(const Attr attr, getattr(ino));
  return Opened{std::move(file), attr};
}
Result<std::vector<VersionHold>> Vfs::take_over_holds(std::span<const VersionId>) {
  return std::vector<VersionHold>{};
}
bool Vfs::assembled(Ino) {
  return false;
}
Result<Place> Vfs::place(Ino ino) {
  return no_inode(ino);
}

std::unique_ptr<Vfs> Vfs::make(Store& store, const VfsOptions& options) {
  return std::make_unique<StoreVfs>(store, options);
}

}  // namespace weft
