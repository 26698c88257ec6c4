#include "weft/vfs.h"

#include <fmt/core.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/json.h"
#include "base/sys.h"
#include "base/text.h"
#include "node/daemon_texts.h"
#include "node/open_file.h"
#include "node/vfs_changes.h"
#include "node/vfs_lineage.h"
#include "node/vfs_models.h"
#include "node/vfs_version.h"
#include "node/vfs_views.h"
#include "weft/tree.h"

namespace weft {
namespace {

// The entries that every mount has.
struct FixedEntry {
  Ino ino;
  Ino parent;
  std::string_view name;
  FileType type;
};
constexpr FixedEntry kFixed[] = {
    {kRootIno, kRootIno, "", FileType::directory},
    {kDotWeftIno, kRootIno, ".weft", FileType::directory},
    {kReadmeIno, kRootIno, "README", FileType::regular},
    {kModelsIno, kRootIno, "models", FileType::directory},
    {kMetricsIno, kDotWeftIno, "metrics", FileType::regular},
    {kPeersIno, kDotWeftIno, "peers", FileType::regular},
    {kStatusIno, kDotWeftIno, "status", FileType::regular},
};

const FixedEntry* fixed_entry(Ino ino) {
  for (const FixedEntry& entry : kFixed)
    if (entry.ino == ino) return &entry;
  return nullptr;
}

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
        daemon_(store.path()),
        versions_(store, prefetcher_, options.show_views, {options.cold, options.cold_policy}),
        mount_status_(options.mount_status) {}

  Result<Attr> lookup(Ino parent, std::string_view name) override;
  Result<Attr> getattr(Ino ino) override;
  Result<std::vector<DirEntry>> list(Ino dir) override;
  Result<Ino> parent(Ino dir) override;
  Result<std::string> readlink(Ino ino) override;
  Result<std::shared_ptr<OpenFile>> open(Ino ino) override;
  Result<Opened> open_with_attr(Ino ino) override;
  Result<StatFs> statfs() override;
  Result<std::vector<std::pair<std::string, std::string>>> xattrs(Ino ino) override;
  Result<std::unique_ptr<CommitWatch>> watch() override { return store_.watch_commits(); }
  Result<std::uint64_t> position() override;
  Status changes(std::uint64_t from, std::uint64_t to, const TellChanges& tell) override {
    return tell_changes(store_, versions_, from, to, tell);
  }
  void set_mount_status(std::string json_members) override;
  void assemble(const AssemblyOptions& options, std::function<void(Ino)> tell) override {
    versions_.assembly().start(options, std::move(tell));
  }
  void assemble_nothing(std::string reason) override { versions_.assembly().start_nothing(std::move(reason)); }
  void stop_assembling() override { versions_.assembly().stop(); }
  bool assembled(Ino ino) override;
  Result<Place> place(Ino ino) override;
  void trim() override { versions_.trim(); }

 private:
  Result<InodeRow> inode(Ino ino);
  Result<std::shared_ptr<OpenFile>> open_row(Ino ino, const InodeRow& row);
  Result<std::shared_ptr<OpenFile>> open_view(const InodeRow& row);
  Result<Attr> fixed_attr(const FixedEntry& entry);
  Result<Attr> lookup_fixed(Ino dir, std::string_view name);
  Result<std::vector<DirEntry>> list_fixed(Ino dir);
  Result<std::string> status_text();
  Result<std::string> changing_text(Ino ino);

  Store& store_;
  DaemonTexts daemon_;
  Prefetcher prefetcher_;
  Versions versions_;
  std::mutex mutex_;
  std::string mount_status_;  // guarded by mutex_
};

Result<InodeRow> StoreVfs::inode(Ino ino) {
  if (ino < kFirstStoredIno) return no_inode(ino);
  WEFT_TRY(const auto snapshot, store_.snapshot());
  return snapshot->inode(ino);
}

Result<std::string> StoreVfs::status_text() {
  std::uint64_t sequence = 0;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    sequence = snapshot->sequence();
  }
  JsonWriter json(true);
  json.begin_object().member("weft", WEFT_VERSION);
  json.key("store").begin_object();
  json.member("path", store_.path()).member("uuid", store_.info().uuid).member("sequence", sequence);
  json.end_object().key("mount");
  {
    const std::lock_guard lock(mutex_);
    json.raw("{" + mount_status_ + "}");
  }
  versions_.assembly().write_status(json);
  json.key("daemon").raw(daemon_.status()).end_object();
  return json.take() + "\n";
}

// Of a file below .weft, which says something else each time.
Result<std::string> StoreVfs::changing_text(Ino ino) {
  if (ino == kStatusIno) return status_text();
  return ino == kPeersIno ? daemon_.peers() : daemon_.metrics();
}

Result<Attr> StoreVfs::fixed_attr(const FixedEntry& entry) {
  Attr attr = directory_attr(entry.ino, store_.info().created_ns);
  attr.type = entry.type;
  attr.lasting_name = true;
  attr.lasting_attr = entry.parent != kDotWeftIno;
  attr.lasting_entries = entry.type == FileType::directory && entry.ino != kModelsIno;
  if (entry.type == FileType::directory) return attr;
  attr.blocks = 1;
  if (entry.ino == kReadmeIno) {
    attr.size = render_readme().size();
  } else {
    WEFT_TRY(const std::string text, changing_text(entry.ino));
    attr.size = text.size();
  }
  return attr;
}

Result<Attr> StoreVfs::lookup_fixed(Ino dir, std::string_view name) {
  if (fixed_entry(dir)->type != FileType::directory) return not_a_directory(dir);
  for (const FixedEntry& entry : kFixed)
    if (entry.parent == dir && entry.name == name && entry.ino != dir) return fixed_attr(entry);
  return Error{Errc::not_found, fmt::format("no entry {}", printable(name))};
}

Result<std::vector<DirEntry>> StoreVfs::list_fixed(Ino dir) {
  if (fixed_entry(dir)->type != FileType::directory) return not_a_directory(dir);
  std::vector<DirEntry> out;
  for (const FixedEntry& entry : kFixed) {
    if (entry.parent != dir || entry.ino == dir) continue;
    WEFT_TRY(const Attr attr, fixed_attr(entry));
    out.push_back({std::string(entry.name), attr, true});
  }
  return out;
}

Result<Attr> StoreVfs::lookup(Ino parent, std::string_view name) {
  if (parent == kModelsIno) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    return lookup_in_namespace(*snapshot, store_.info(), "", name);
  }
  if (fixed_entry(parent) != nullptr) return lookup_fixed(parent, name);
  if (is_kin_link(parent)) return not_a_directory(parent);
  if (is_kin_file(parent)) return versions_.kin().lookup_in(parent, name);
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(row, snapshot->inode(parent));
    if (row.kind == InodeKind::namespace_dir) return lookup_in_namespace(*snapshot, store_.info(), row.name, name);
    if (row.kind == InodeKind::model_dir) return lookup_in_model(*snapshot, row.model, name);
  }
  if (row.kind != InodeKind::version) return not_a_directory(parent);
  WEFT_TRY(const TreeNode dir, versions_.node(row, parent));
  return versions_.lookup(dir, name);
}

Result<Attr> StoreVfs::getattr(Ino ino) {
  if (const FixedEntry* entry = fixed_entry(ino)) return fixed_attr(*entry);
  if (is_kin_file(ino)) return versions_.kin().attr(ino);
  InodeRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    if (is_kin_link(ino)) return kin_link_attr(*snapshot, ino);
    WEFT_TRY(row, snapshot->inode(ino));
    if (row.kind == InodeKind::view) return view_attr(row);
    if (row.kind != InodeKind::version) return catalog_attr(*snapshot, store_.info(), row);
  }
  WEFT_TRY(const TreeNode node, versions_.node(row, ino));
  return versions_.attr(node);
}

Result<std::vector<DirEntry>> StoreVfs::list(Ino dir) {
  if (dir != kModelsIno && fixed_entry(dir) != nullptr) return list_fixed(dir);
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
  if (ino == kReadmeIno) return open_text(render_readme());
  if (const FixedEntry* fixed = fixed_entry(ino); fixed != nullptr && fixed->parent == kDotWeftIno) {
    WEFT_TRY(std::string text, changing_text(ino));
    return open_text(std::move(text), Changing::yes);
  }
  if (fixed_entry(ino) != nullptr) return is_a_directory(ino);
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
  auto opened = weft::open_view(store_, row);
  if (opened.ok() || opened.error().code != Errc::absent) return opened;
  std::optional<std::pair<VersionId, std::uint32_t>> owner;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(owner, snapshot->owner(row.view.content));
  }
  return versions_.open_absent_view(row, owner);
}

// One look at the index tells all of a view whose bytes are not here. They may come meanwhile: then they are brought
// from here.
Result<Opened> StoreVfs::open_with_attr(Ino ino) {
  if (ino < kFirstStoredIno || is_kin_link(ino) || is_kin_file(ino)) return Vfs::open_with_attr(ino);
  InodeRow row;
  bool absent = false;
  std::optional<std::pair<VersionId, std::uint32_t>> owner;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(row, snapshot->inode(ino));
    if (row.kind == InodeKind::view && row.view.content.length > 0) {
      const auto place = snapshot->find_blob(row.view.content);
      absent = !place.ok() && place.error().code == Errc::absent;
    }
    if (absent) {
      WEFT_TRY(owner, snapshot->owner(row.view.content));
    }
  }
  auto file = absent ? versions_.open_absent_view(row, owner) : open_row(ino, row);
  if (!file.ok()) return std::move(file).error();
  if (row.kind == InodeKind::view) return Opened{std::move(file).value(), view_attr(row)};
  WEFT_TRY(const Attr attr, getattr(ino));
  return Opened{std::move(file).value(), attr};
}

Result<StatFs> StoreVfs::statfs() {
  struct statvfs facts {};
  if (::statvfs(store_.path().c_str(), &facts) != 0) return sys_error(errno, store_.path() + ": statvfs");
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

void StoreVfs::set_mount_status(std::string json_members) {
  const std::lock_guard lock(mutex_);
  mount_status_ = std::move(json_members);
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
