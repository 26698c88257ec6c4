#include "vfs/hub.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "reading/open_file.h"
#include "vfs/page_maker.h"
#include "vfs/published_dirs.h"
#include "vfs/tree_attrs.h"
#include "weft/model/tree.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr std::string_view kViewRevision = "safetensors";
constexpr std::size_t kSnapshotDepth = 4;  // directories above a snapshot's entries: hub/models--…/snapshots/…/

bool is_ref(InoKind kind) {
  return kind == InoKind::hub_main || kind == InoKind::hub_tag || kind == InoKind::hub_number ||
         kind == InoKind::hub_commit || kind == InoKind::hub_view_ref;
}

// True for a snapshot of the view safetensors/, and for an entry below it.
bool is_of_view(InoKind kind) {
  return kind == InoKind::hub_view_snapshot || kind == InoKind::hub_view_dir || kind == InoKind::hub_view_link;
}

Result<ModelRow> model_of_dir(Snapshot& snapshot, Ino model_ino) {
  WEFT_TRY(const InodeRow row, snapshot.inode(model_ino));
  if (row.kind != InodeKind::model_dir) return no_inode(model_ino);
  return snapshot.model(row.model);
}

// The version that a file in refs/ names, other than that of the view.
struct Target {
  VersionRow version;
  std::uint64_t time_ns = 0;  // when the file began to name it
};

Result<Target> target_of(Snapshot& snapshot, Ino ino) {
  if (kind_of(ino) == InoKind::hub_number || kind_of(ino) == InoKind::hub_commit) {
    WEFT_TRY(VersionRow version, snapshot.version(id_of(ino)));
    return Target{std::move(version), version.time_ns};
  }
  if (kind_of(ino) == InoKind::hub_main) {
    WEFT_TRY(const ModelRow model, model_of_dir(snapshot, payload_of(ino)));
    WEFT_TRY(ModelRevision main, resolve_revision(snapshot, model, kMainRevision));
    return Target{std::move(main.version), main.time_ns};
  }
  WEFT_TRY(const InodeRow row, snapshot.inode(payload_of(ino)));
  if (row.kind != InodeKind::tag_link) return no_inode(ino);
  WEFT_TRY(const TagRow tag, tag_of(snapshot, row));
  WEFT_TRY(VersionRow version, snapshot.version(row.model, tag.number));
  return Target{std::move(version), tag.time_ns};
}

Attr ref_attr(Ino ino, std::uint64_t time_ns) {
  return text_attr(ino, time_ns, kCommitDigits);
}

Result<VersionRow> version_with(Snapshot& snapshot, const ModelRow& model, std::string_view revision) {
  WEFT_TRY(const auto id, snapshot.with_revision(model.id, revision));
  if (!id) return no_entry(revision);
  return snapshot.version(*id);
}

Result<Attr> lookup_ref(Snapshot& snapshot, const ModelRow& model, std::string_view name) {
  WEFT_TRY(const ModelRevision found, resolve_revision(snapshot, model, name));
  switch (found.kind) {
    case ModelRevision::Kind::main:
      return ref_attr(ino_of(InoKind::hub_main, model.ino), found.time_ns);
    case ModelRevision::Kind::tag:
      return ref_attr(ino_of(InoKind::hub_tag, found.tag_ino), found.time_ns);
    case ModelRevision::Kind::number:
      return ref_attr(ino_of(InoKind::hub_number, found.version.id), found.time_ns);
    case ModelRevision::Kind::commit:
      break;
  }
  if (name != found.version.source.commit) return no_entry(name);
  return ref_attr(ino_of(InoKind::hub_commit, found.version.id), found.time_ns);
}

// Adds a version's source commit to a listing, if it leads to this version there. `lookup` is the directory's.
template <class Lookup>
Status add_commits(PageMaker& page, unsigned part, const ModelRow& model, InoKind kind, const Lookup& lookup) {
  return page.add(part, number_behind, list_versions(model.id),
                  [&, part, kind](Snapshot& now, const VersionRow& row) -> Result<DirEntry> {
                    if (row.removed || row.source.commit.empty()) return no_entry(row.source.commit);
                    WEFT_TRY(const Attr attr, lookup(now, model, row.source.commit));
                    if (attr.ino != ino_of(kind, row.id)) return no_entry(row.source.commit);
                    return DirEntry{row.source.commit, attr, true, place_of(part, row.number)};
                  });
}

// Adds the entry that shows the view, if there is one.
Status add_view(PageMaker& page, unsigned part, const std::optional<DirEntry>& view) {
  return page.add_one(part, [&](Snapshot&) -> Result<DirEntry> {
    if (!view) return no_entry(kViewRevision);
    return DirEntry{view->name, view->attr, true, place_of(part, 0)};
  });
}

// Lists `main`, tags by name, versions by number, source commits, and the view.
Result<DirPage> list_refs(Store& store, const ModelRow& model, const std::optional<DirEntry>& view, ListPlace from) {
  enum Part : unsigned { kMainRef = 1, kTags, kNumbers, kCommits, kView };
  PageMaker page(store, from);
  WEFT_CHECK(page.add_one(kMainRef, [&](Snapshot& now) -> Result<DirEntry> {
    WEFT_TRY(const Attr attr, lookup_ref(now, model, kMainRevision));
    return DirEntry{std::string(kMainRevision), attr, true, place_of(kMainRef, 0)};
  }));
  WEFT_CHECK(page.add(kTags, name_behind, list_tags(model.id), [](Snapshot&, const TagRow& tag) -> Result<DirEntry> {
    if (tag.name == kMainRevision) return no_entry(tag.name);
    return DirEntry{tag.name, ref_attr(ino_of(InoKind::hub_tag, tag.ino), tag.time_ns), true, place_of(kTags, tag.ino)};
  }));
  WEFT_CHECK(page.add(kNumbers, number_behind, list_versions(model.id),
                      [](Snapshot&, const VersionRow& row) -> Result<DirEntry> {
                        const std::string name = std::to_string(row.number);
                        if (row.removed) return no_entry(name);
                        return DirEntry{name, ref_attr(ino_of(InoKind::hub_number, row.id), row.time_ns), true,
                                        place_of(kNumbers, row.number)};
                      }));
  WEFT_CHECK(add_commits(page, kCommits, model, InoKind::hub_commit, lookup_ref));
  WEFT_CHECK(add_view(page, kView, view));
  return page.take();
}

Attr snapshot_attr(const VersionRow& version, InoKind kind) {
  return version_dir_attr(version, ino_of(kind, version.id));
}

std::string reversed(std::string_view digits) {
  return {digits.rbegin(), digits.rend()};
}

Attr commit_link_attr(const VersionRow& version) {
  return link_attr(ino_of(InoKind::hub_commit_link, version.id), version.time_ns, kCommitDigits);
}

Result<Attr> lookup_snapshot(Snapshot& snapshot, const ModelRow& model, std::string_view name) {
  WEFT_TRY(const VersionRow version, version_with(snapshot, model, name));
  return name == commit_of(version) ? snapshot_attr(version, InoKind::hub_snapshot) : commit_link_attr(version);
}

// Lists snapshots by digest, then the links that source commits name, and the view.
Result<DirPage> list_snapshots(Store& store, const ModelRow& model, const std::optional<DirEntry>& view,
                               ListPlace from) {
  enum Part : unsigned { kContents = 1, kCommits, kView };
  PageMaker page(store, from);
  const auto read = [&](Snapshot& now, std::string_view next, std::size_t rows_max) {
    return now.distinct(model.id, next, rows_max);
  };
  WEFT_CHECK(page.add(kContents, number_behind, read, [](Snapshot& now, VersionId id) -> Result<DirEntry> {
    WEFT_TRY(const VersionRow version, now.version(id));
    const Attr attr = snapshot_attr(version, InoKind::hub_snapshot);
    return DirEntry{commit_of(version), attr, true, place_of(kContents, id)};
  }));
  WEFT_CHECK(add_commits(page, kCommits, model, InoKind::hub_commit_link, lookup_snapshot));
  WEFT_CHECK(add_view(page, kView, view));
  return page.take();
}

// Returns the attributes of hub/models--…, refs/ or snapshots/. The first keeps its two entries as long as the model
// exists.
Attr model_attr(InoKind kind, const ModelRow& model) {
  const bool top = kind == InoKind::hub_model;
  Attr attr = directory_attr(ino_of(kind, model.ino), top ? model.created_ns : model.changed_ns);
  attr.lasting_name = !top;
  attr.lasting_attr = top;
  attr.lasting_entries = top;
  return attr;
}

constexpr std::array<std::pair<std::string_view, InoKind>, 2> kParts{
    {{"refs", InoKind::hub_refs}, {"snapshots", InoKind::hub_snapshots}}};

// Returns the target of the link to the file at `path`. It leads up to the mount's root, then down.
std::string link_target(const VersionRow& version, std::string_view path, bool of_view) {
  std::string target;
  const auto depth = kSnapshotDepth + static_cast<std::size_t>(std::ranges::count(path, '/'));
  for (std::size_t i = 0; i < depth; ++i) target += "../";
  std::string_view tree = version.kind == VersionKind::dataset ? "datasets" : "models";
  if (of_view) tree = "safetensors";
  return target + fmt::format("{}/{}/{}/{}", tree, version.model_name, version.number, path);
}

// Converts the attributes of the file or directory at `path`. In hub/, each has a number of its own.
Attr in_hub(const VersionRow& version, std::string_view path, bool of_view, Attr attr) {
  if (attr.type == FileType::directory) {
    attr.ino = ino_of(of_view ? InoKind::hub_view_dir : InoKind::hub_dir, attr.ino);
    return attr;
  }
  const Ino ino = ino_of(of_view ? InoKind::hub_view_link : InoKind::hub_link, attr.ino);
  Attr link = link_attr(ino, version.time_ns, link_target(version, path, of_view).size());
  link.lasting_name = true;  // the size is that of the target, which has the model's name
  return link;
}

std::string path_in(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

// Returns the path of a file or directory of safetensors/ by its number, counted from the version's first number; ""
// for the root. Errc::not_found: the version does not need the view, or the number is of something else.
Result<std::string> path_in_view(const TreeVersion& version, std::uint64_t number) {
  const VersionTree& tree = *version.tree;
  const Error none = no_inode(version.local.ino_base + number);
  if (number >= tree.size() || !tree.view().replaces()) return none;
  std::string path;
  auto at = static_cast<std::uint32_t>(number);
  while (at >= kRootCount) {
    const Node& node = tree.node(at);
    path = path.empty() ? node.name : node.name + '/' + path;
    at = node.parent;
  }
  return at == kSafetensorsRoot ? Result<std::string>(std::move(path)) : none;
}

bool is_hub_link(InoKind kind) {
  return kind == InoKind::hub_link || kind == InoKind::hub_commit_link || kind == InoKind::hub_view_link;
}

bool is_directory(InoKind kind) {
  return !is_ref(kind) && !is_hub_link(kind);
}

bool is_snapshot(InoKind kind) {
  return kind == InoKind::hub_snapshot || kind == InoKind::hub_view_snapshot;
}

bool is_dir_of_snapshot(InoKind kind) {
  return kind == InoKind::hub_dir || kind == InoKind::hub_view_dir;
}

bool is_below_snapshot(InoKind kind) {
  return is_dir_of_snapshot(kind) || kind == InoKind::hub_link || kind == InoKind::hub_view_link;
}

}  // namespace

Result<Hub::Published> Hub::published(Ino ino) {
  Published out;
  const bool below = is_below_snapshot(kind_of(ino));
  const bool of_view = is_of_view(kind_of(ino));
  if (below) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(out.inode.row, snapshot->inode(payload_of(ino)));
    out.inode.ino = payload_of(ino);
    if (out.inode.row.kind != InodeKind::version) return no_inode(ino);
  } else {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const LocalRow local, snapshot->local(id_of(ino)));
    out.inode.row.version = id_of(ino);
    out.inode.row.base = local.ino_base;
  }
  WEFT_TRY(out.version, versions_.load(out.inode.row.version, out.inode.row.base));
  const Ino base = out.version->local.ino_base;
  if (out.inode.ino == 0) out.inode.ino = base + (of_view ? kSafetensorsRoot : kPublishedRoot);
  if (below && out.inode.ino < base + kRootCount) return no_inode(ino);
  out.subtree = out.version->dataset ? datasets_.owner_of(*out.version, out.inode.ino) : &versions_;
  if (out.subtree == nullptr) return no_inode(ino);
  const std::uint64_t number = out.inode.ino - base;
  WEFT_TRY(out.path, of_view ? path_in_view(*out.version, number) : path_of_number(*out.version, number));
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(out.row, snapshot->version(out.version->row.id));
  return out;
}

// A tag named `safetensors` hides the view. Reads the manifest of `main`, which may be remote.
Result<ModelRevision> Hub::viewed(const ModelRow& model) {
  ModelRevision main;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    const auto taken = resolve_revision(*snapshot, model, kViewRevision);
    if (taken.ok()) return no_entry(kViewRevision);
    if (taken.error().code != Errc::not_found) return taken.error();
    WEFT_TRY(main, resolve_revision(*snapshot, model, kMainRevision));
  }
  if (main.version.kind == VersionKind::dataset) return no_entry(kViewRevision);
  WEFT_TRY(const auto version, versions_.load(main.version.id, 0));
  return version->tree->view().replaces() ? Result<ModelRevision>(std::move(main)) : no_entry(kViewRevision);
}

bool Hub::is_view_local(const ModelRow& model) {
  const auto snapshot = store_.snapshot();
  if (!snapshot.ok()) return false;
  const auto main = resolve_revision(**snapshot, model, kMainRevision);
  if (!main.ok()) return false;
  const auto bare = (*snapshot)->is_bare(main->version.id);
  return bare.ok() && !*bare;
}

Result<Attr> Hub::lookup_view_snapshot(const ModelRow& model, std::string_view name) {
  const std::string published = reversed(name);
  VersionRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(row, version_with(*snapshot, model, published));
  }
  if (published != commit_of(row) || row.kind == VersionKind::dataset) return no_entry(name);
  WEFT_TRY(const auto version, versions_.load(row.id, 0));
  return version->tree->view().replaces() ? Result<Attr>(snapshot_attr(row, InoKind::hub_view_snapshot))
                                          : no_entry(name);
}

// A manifest that cannot be read must not hide the other entries, so the view is left out then. A lookup tells the
// error.
std::optional<DirEntry> Hub::view_entry(InoKind part, const ModelRow& model) {
  if (!is_view_local(model)) return std::nullopt;
  const auto main = viewed(model);
  if (!main.ok()) return std::nullopt;
  if (part == InoKind::hub_refs)
    return DirEntry{std::string(kViewRevision), ref_attr(ino_of(InoKind::hub_view_ref, model.ino), main->time_ns),
                    true};
  std::string name = reversed(commit_of(main->version));
  const auto attr = lookup_in(part, model, name);
  if (!attr.ok() || kind_of(attr->ino) != InoKind::hub_view_snapshot) return std::nullopt;
  return DirEntry{std::move(name), *attr, true};
}

Result<Hub::Named> Hub::named(Ino ref) {
  if (kind_of(ref) == InoKind::hub_view_ref) {
    ModelRow model;
    {
      WEFT_TRY(const auto snapshot, store_.snapshot());
      WEFT_TRY(model, model_of_dir(*snapshot, payload_of(ref)));
    }
    WEFT_TRY(const ModelRevision main, viewed(model));
    return Named{reversed(commit_of(main.version)), main.time_ns};
  }
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const Target target, target_of(*snapshot, ref));
  return Named{commit_of(target.version), target.time_ns};
}

Result<Attr> Hub::attr(const MountInode& inode) {
  const Ino ino = inode.ino;
  const InoKind kind = kind_of(ino);
  if (is_below_snapshot(kind)) {
    WEFT_TRY(const Published found, published(ino));
    WEFT_TRY(const Attr attr, found.subtree->attr(found.inode));
    const Attr shown = in_hub(found.row, found.path, is_of_view(kind), attr);
    return shown.ino == ino ? Result<Attr>(shown) : no_inode(ino);
  }
  if (kind == InoKind::hub_view_snapshot) {
    WEFT_TRY(const Published found, published(ino));
    return snapshot_attr(found.row, kind);
  }
  if (is_ref(kind)) {
    WEFT_TRY(const Named ref, named(ino));
    return ref_attr(ino, ref.time_ns);
  }
  WEFT_TRY(const auto snapshot, store_.snapshot());
  if (kind == InoKind::stored) {
    Attr attr = directory_attr(ino, std::max(inode.row.changed_ns, store_.info().created_ns));
    attr.lasting_name = true;
    return attr;
  }
  if (kind == InoKind::hub_snapshot) {
    WEFT_TRY(const VersionRow version, snapshot->version(id_of(ino)));
    return snapshot_attr(version, kind);
  }
  if (kind == InoKind::hub_commit_link) {
    WEFT_TRY(const VersionRow version, snapshot->version(id_of(ino)));
    return version.source.commit.empty() ? no_inode(ino) : Result<Attr>(commit_link_attr(version));
  }
  WEFT_TRY(const ModelRow model, model_of_dir(*snapshot, payload_of(ino)));
  return model_attr(kind, model);
}

// Published snapshots and the user's revisions come first, so the view hides none of them.
Result<Attr> Hub::lookup_in(InoKind part, const ModelRow& model, std::string_view name) {
  const bool refs = part == InoKind::hub_refs;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    auto found = refs ? lookup_ref(*snapshot, model, name) : lookup_snapshot(*snapshot, model, name);
    if (found.ok() || found.error().code != Errc::not_found) return found;
  }
  if (!refs) return lookup_view_snapshot(model, name);
  if (name != kViewRevision) return no_entry(name);
  WEFT_TRY(const ModelRevision main, viewed(model));
  return ref_attr(ino_of(InoKind::hub_view_ref, model.ino), main.time_ns);
}

Result<Attr> Hub::lookup(const MountInode& dir, std::string_view name) {
  const InoKind kind = kind_of(dir.ino);
  if (!is_directory(kind)) return not_a_directory(dir.ino);
  if (is_snapshot(kind) || is_dir_of_snapshot(kind)) {
    WEFT_TRY(const Published found, published(dir.ino));
    WEFT_TRY(const Attr attr, found.subtree->lookup(found.inode, name));
    return in_hub(found.row, path_in(found.path, name), is_of_view(kind), attr);
  }
  ModelRow model;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    if (kind == InoKind::stored) {
      const auto parsed = parse_hub_name(name);
      if (!parsed) return no_entry(name);
      WEFT_TRY(model, snapshot->model(parsed->name));
      const bool shown = model.latest != 0 && model.kind == parsed->kind;
      return shown ? model_attr(InoKind::hub_model, model) : Result<Attr>(no_entry(name));
    }
    WEFT_TRY(model, model_of_dir(*snapshot, payload_of(dir.ino)));
  }
  if (kind != InoKind::hub_model) return lookup_in(kind, model, name);
  for (const auto& [part, part_kind] : kParts)
    if (part == name) return model_attr(part_kind, model);
  return no_entry(name);
}

Result<DirPage> Hub::list(const MountInode& dir, ListPlace from) {
  const InoKind kind = kind_of(dir.ino);
  if (!is_directory(kind)) return not_a_directory(dir.ino);
  if (kind == InoKind::stored) return list_models(from);
  if (is_snapshot(kind) || is_dir_of_snapshot(kind)) {
    WEFT_TRY(const Published found, published(dir.ino));
    WEFT_TRY(auto out, found.subtree->list(found.inode, from));
    for (DirEntry& entry : out.entries)
      entry.attr = in_hub(found.row, path_in(found.path, entry.name), is_of_view(kind), entry.attr);
    return out;
  }
  ModelRow model;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(model, model_of_dir(*snapshot, payload_of(dir.ino)));
  }
  if (kind == InoKind::hub_refs) return list_refs(store_, model, view_entry(kind, model), from);
  if (kind == InoKind::hub_snapshots) return list_snapshots(store_, model, view_entry(kind, model), from);
  std::vector<DirEntry> parts;
  for (const auto& [part, part_kind] : kParts) parts.push_back({std::string(part), model_attr(part_kind, model), true});
  return page_of(std::move(parts), from);
}

// Lists by the names of models.
Result<DirPage> Hub::list_models(ListPlace from) {
  PageMaker page(store_, from);
  WEFT_CHECK(page.add(1, name_behind, weft::list_models(), [](Snapshot&, const ModelRow& model) -> Result<DirEntry> {
    auto name = model.latest == 0 ? std::nullopt : hub_name(model.name, model.kind);
    if (!name) return no_entry(model.name);
    return DirEntry{std::move(*name), model_attr(InoKind::hub_model, model), true, place_of(1, model.ino)};
  }));
  return page.take();
}

Result<Ino> Hub::parent(const MountInode& inode) {
  const InoKind kind = kind_of(inode.ino);
  if (kind == InoKind::stored) return kRootIno;
  if (kind == InoKind::hub_model) return kHubIno;
  if (!is_directory(kind)) return not_a_directory(inode.ino);
  if (kind == InoKind::hub_refs || kind == InoKind::hub_snapshots)
    return ino_of(InoKind::hub_model, payload_of(inode.ino));
  if (is_dir_of_snapshot(kind)) {
    const bool of_view = is_of_view(kind);
    WEFT_TRY(const Published dir, published(inode.ino));
    WEFT_TRY(const Ino parent, dir.subtree->parent(dir.inode));
    const bool top = parent == dir.version->local.ino_base + (of_view ? kSafetensorsRoot : kPublishedRoot);
    if (!top) return ino_of(kind, parent);
    return ino_of(of_view ? InoKind::hub_view_snapshot : InoKind::hub_snapshot, dir.version->row.id);
  }
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(const VersionRow version, snapshot->version(id_of(inode.ino)));
  WEFT_TRY(const ModelRow model, snapshot->model(version.model));
  return ino_of(InoKind::hub_snapshots, model.ino);
}

Result<std::shared_ptr<OpenFile>> Hub::open(const MountInode& inode) {
  if (is_hub_link(kind_of(inode.ino))) return is_a_link(inode.ino);
  if (!is_ref(kind_of(inode.ino))) return is_a_directory(inode.ino);
  WEFT_TRY(Named ref, named(inode.ino));
  return open_text(std::move(ref.snapshot), ReadMode::changing);
}

Result<std::string> Hub::readlink(const MountInode& inode) {
  if (kind_of(inode.ino) == InoKind::hub_commit_link) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const VersionRow version, snapshot->version(id_of(inode.ino)));
    return commit_of(version);
  }
  if (!is_hub_link(kind_of(inode.ino))) return Subtree::readlink(inode);
  WEFT_TRY(const Published file, published(inode.ino));
  return link_target(file.row, file.path, is_of_view(kind_of(inode.ino)));
}

}  // namespace weft
