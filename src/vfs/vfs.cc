#include "weft/programs/vfs.h"

#include <utility>

#include "base/json.h"
#include "events/follower.h"
#include "os/file_ops.h"
#include "os/safe_path.h"
#include "vfs/catalog.h"
#include "vfs/datasets.h"
#include "vfs/fixed_files.h"
#include "vfs/hub.h"
#include "vfs/lineage.h"
#include "vfs/numbers.h"
#include "vfs/seen.h"
#include "vfs/subtree.h"
#include "vfs/versions.h"
#include "vfs/versions_table.h"
#include "vfs/views.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

class StoreVfs final : public Vfs {
 public:
  StoreVfs(Store& store, const VfsOptions& options)
      : store_(store),
        versions_(store, prefetcher_, {options.cold, options.cold_policy}),
        views_(store, prefetcher_, versions_, {options.cold, options.cold_policy}),
        fixed_files_(store, versions_.assembly(), options, [this](Ino ino) { return getattr(ino); }) {}

  Result<Attr> lookup(Ino parent, std::string_view name) override;
  Result<Attr> getattr(Ino ino) override;
  Result<DirPage> list(Ino dir, ListPlace from) override;
  Result<Ino> parent(Ino dir) override { return ask(dir, &Subtree::parent); }
  Result<std::string> readlink(Ino ino) override { return ask(ino, &Subtree::readlink); }
  Result<std::shared_ptr<OpenFile>> open(Ino ino) override { return ask(ino, &Subtree::open); }
  Result<Opened> open_with_attr(Ino ino) override;
  Result<Xattrs> xattrs(Ino ino) override { return ask(ino, &Subtree::xattrs); }
  Result<std::optional<Digest>> sha256_of(Ino ino) override { return ask(ino, &Subtree::sha256_of); }
  Result<Place> place(Ino ino) override { return ask(ino, &Subtree::place); }
  bool assembled(Ino ino) override;

  Result<std::vector<VersionHold>> take_over_holds(std::span<const VersionId> versions) override {
    return store_.take_over_holds(versions);
  }
  Result<struct statvfs> statfs() override;
  Result<std::uint64_t> position() override;
  Result<std::vector<EventLines>> events(std::uint64_t position) override;
  Result<std::unique_ptr<CommitWatch>> watch_commits() override { return store_.watch_commits(); }
  void set_mount_status(std::function<std::string()> json_members) override {
    fixed_files_.set_mount_status(std::move(json_members));
  }
  void assemble(const AssemblyOptions& options, std::function<void(Ino)> tell) override {
    versions_.assembly().start(options, std::move(tell));
  }
  void assemble_nothing(std::string reason) override { versions_.assembly().start_nothing(std::move(reason)); }
  void read_by_record(bool on) override { versions_.read_by_record(on); }
  void stop_assembling() override { versions_.assembly().stop(); }
  void trim() override {
    versions_.trim();
    datasets_.trim();
    seen_.drop_unused(kSeenKeptFor);
  }

 private:
  static constexpr std::chrono::seconds kSeenKeptFor{10};

  struct Owned {
    Subtree* subtree;
    MountInode inode;
  };
  Result<Owned> owner_of(Ino ino);
  Result<Owned> owner_of_stored(Ino ino);
  Result<Owned> owner_of_name(Ino ino);
  Result<MountInode> indexed(Ino ino);
  Result<Attr> attr_of(const Owned& owned);
  template <class T>
  Result<T> ask(Ino ino, Result<T> (Subtree::*operation)(const MountInode&)) {
    WEFT_TRY(const Owned owned, owner_of(ino));
    return (owned.subtree->*operation)(owned.inode);
  }

  Store& store_;
  Prefetcher prefetcher_;
  VersionsTable versions_table_{store_};
  Catalog catalog_{store_, versions_table_};
  Versions versions_;
  Lineage lineage_{store_, versions_};
  Datasets datasets_{versions_};
  Hub hub_{store_, versions_, datasets_};
  Views views_;
  FixedFiles fixed_files_;
  Seen seen_{store_};
};

// One case for each kind of number.
Result<StoreVfs::Owned> StoreVfs::owner_of(Ino ino) {
  if (!is_possible(ino)) return no_inode(ino);
  switch (kind_of(ino)) {
    case InoKind::stored:
      return owner_of_stored(ino);
    case InoKind::layers:
    case InoKind::tensors:
    case InoKind::lineage:
    case InoKind::datasets:
    case InoKind::records:
    case InoKind::safetensors:
      return owner_of_name(ino);
    case InoKind::lineage_entry:
    case InoKind::parent_link:
    case InoKind::child_link:
    case InoKind::diff:
    case InoKind::kin_file:
      return Owned{&lineage_, {ino}};
    case InoKind::versions_table:
      return Owned{&versions_table_, {ino}};
    case InoKind::hub_model:
    case InoKind::hub_refs:
    case InoKind::hub_snapshots:
    case InoKind::hub_main:
    case InoKind::hub_tag:
    case InoKind::hub_number:
    case InoKind::hub_snapshot:
    case InoKind::hub_dir:
    case InoKind::hub_link:
    case InoKind::hub_commit:
    case InoKind::hub_commit_link:
    case InoKind::hub_view_ref:
    case InoKind::hub_view_snapshot:
    case InoKind::hub_view_dir:
    case InoKind::hub_view_link:
      return Owned{&hub_, {ino}};
    case InoKind::draft:  // served by src/drafts
      break;
  }
  return no_inode(ino);
}

Result<StoreVfs::Owned> StoreVfs::owner_of_stored(Ino ino) {
  const bool has_row = ino >= kFirstStoredIno || ino == kModelsIno || ino == kHubIno;
  if (!has_row) return Owned{&fixed_files_, {ino}};
  WEFT_TRY(MountInode inode, indexed(ino));
  if (ino == kHubIno) return Owned{&hub_, std::move(inode)};
  if (inode.row.kind == InodeKind::version) {
    WEFT_TRY(const auto version, versions_.load(inode.row.version, inode.row.base));
    Subtree* const owner = version->dataset ? datasets_.owner_of(*version, ino) : &versions_;
    return owner != nullptr ? Result<Owned>(Owned{owner, std::move(inode)}) : no_inode(ino);
  }
  if (inode.row.kind == InodeKind::view) return Owned{&views_, std::move(inode)};
  return Owned{&catalog_, std::move(inode)};
}

// For a directory or link that names versions, in a tree other than models/.
Result<StoreVfs::Owned> StoreVfs::owner_of_name(Ino ino) {
  WEFT_TRY(MountInode inode, indexed(ino));
  if (inode.row.kind == InodeKind::version || inode.row.kind == InodeKind::view) return no_inode(ino);
  if (payload_of(ino) == kHubIno) return no_inode(ino);  // hub/ has a row in the index, but is no such tree
  return Owned{&catalog_, std::move(inode)};
}

// Reads the index's row of the stored number that `ino` is or contains.
Result<MountInode> StoreVfs::indexed(Ino ino) {
  if (const auto known = seen_.inode(ino)) return MountInode{ino, known->row, known->state, known->attr};
  const Ino stored = payload_of(ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  auto row = snapshot->inode(stored);
  const bool top = stored == kModelsIno || stored == kHubIno;
  if (!row.ok() && !(top && row.error().code == Errc::not_found)) return std::move(row).error();
  return MountInode{ino, row.ok() ? std::move(row).value() : Catalog::top(stored), snapshot->state(), {}};
}

// The kernel caches lasting names. Other names are cached here until the next commit.
Result<Attr> StoreVfs::lookup(Ino parent, std::string_view name) {
  if (const auto known = seen_.name(parent, name)) return *known;
  WEFT_TRY(const Owned dir, owner_of(parent));
  auto attr = dir.subtree->lookup(dir.inode, name);
  if (attr.ok() && !attr->lasting_name && dir.inode.state) seen_.put(parent, name, *dir.inode.state, *attr);
  return attr;
}

Result<DirPage> StoreVfs::list(Ino dir, ListPlace from) {
  WEFT_TRY(const Owned owned, owner_of(dir));
  return owned.subtree->list(owned.inode, from);
}

Result<Attr> StoreVfs::getattr(Ino ino) {
  WEFT_TRY(const Owned owned, owner_of(ino));
  return attr_of(owned);
}

// The attributes may be newer than the row's state. Then seen_ never returns them, because that state is past.
Result<Attr> StoreVfs::attr_of(const Owned& owned) {
  const MountInode& inode = owned.inode;
  if (inode.attr) return *inode.attr;
  WEFT_TRY(const Attr attr, owned.subtree->attr(inode));
  if (inode.state) seen_.put(inode.ino, {*inode.state, inode.row, attr});
  return attr;
}

Result<Opened> StoreVfs::open_with_attr(Ino ino) {
  WEFT_TRY(const Owned owned, owner_of(ino));
  WEFT_TRY(const FileVersions versions, owned.subtree->versions(owned.inode));
  Opened opened;
  for (const VersionId version : versions) {
    if (version == 0) continue;
    WEFT_TRY(VersionHold hold, store_.hold_version(version));
    opened.versions[opened.holds.size()] = version;
    opened.holds.push_back(std::move(hold));
  }
  WEFT_TRY(opened.file, owned.subtree->open(owned.inode));
  WEFT_TRY(opened.attr, attr_of(owned));
  return opened;
}

bool StoreVfs::assembled(Ino ino) {
  const auto owned = owner_of(ino);
  return owned.ok() && owned->subtree->assembled(owned->inode);
}

Result<struct statvfs> StoreVfs::statfs() {
  return file_system_facts(store_.directory().root().fd(), store_.path() + ": statvfs");
}

Result<std::uint64_t> StoreVfs::position() {
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->journal_end();
}

// All events of a record but the last carry the position before it, so their lines are joined with those of the last.
Result<std::vector<EventLines>> StoreVfs::events(std::uint64_t position) {
  WEFT_TRY(EventBatch batch, events_since(store_, position));
  std::vector<EventLines> out;
  std::string text;
  for (ModelEvent& event : batch.events) {
    add_new_bytes(store_, event);
    JsonWriter json;
    write_event(json, event);
    text += json.take() + "\n";
    if (event.position == position) continue;
    position = event.position;
    out.push_back({std::exchange(text, {}), position});
  }
  if (batch.next != position) out.push_back({std::move(text), batch.next});
  return out;
}

}  // namespace

std::unique_ptr<Vfs> Vfs::make(Store& store, const VfsOptions& options) {
  return std::make_unique<StoreVfs>(store, options);
}

}  // namespace weft
