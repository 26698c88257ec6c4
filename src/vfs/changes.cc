#include "vfs/changes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "weft/manifest.h"

namespace weft {
namespace {

constexpr std::size_t kOwnersOfOneSnapshot = 1024;
constexpr std::size_t kHoldersSeen = 64;  // a version may have a blob in so many of its files

using Inos = std::vector<Ino>;
using PublishedFile = std::pair<VersionId, std::uint32_t>;

// An answer, or nothing where what was asked for is not there.
template <class T>
Result<std::optional<T>> if_there(Result<T> result) {
  if (result.ok()) return std::optional<T>(std::move(result).value());
  if (result.error().code == Errc::not_found) return std::optional<T>();
  return std::move(result).error();
}

// Each once.
Result<std::vector<ContentId>> blobs_of(std::span<const std::byte> bytes) {
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes));
  std::vector<ContentId> blobs;
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents) blobs.push_back(extent.id);
  std::sort(blobs.begin(), blobs.end());
  blobs.erase(std::unique(blobs.begin(), blobs.end()), blobs.end());
  return blobs;
}

class ChangeFinder {
 public:
  ChangeFinder(Store& store, Versions& versions) : store_(store), versions_(versions) {}

  Result<Inos> changes_of(const Commit& commit);

 private:
  Status add_local(Snapshot& snapshot, const ModelRow& model, const Commit& commit, Inos& changed);
  Status add_heirs(const VersionRow& removed, Inos& changed);
  Status add_former_owners(const VersionRow& adopted, Inos& changed);
  Status add_files(const std::set<PublishedFile>& files, Inos& changed);
  Status add_all_files(Inos& changed);
  Status add_files_of(VersionId id, const std::set<PublishedFile>* wanted, Inos& changed);
  Result<std::set<PublishedFile>> owners(const std::vector<ContentId>& blobs);
  Result<LocalRow> published_local(Snapshot& snapshot, const Commit& removal);

  Store& store_;
  Versions& versions_;
};

// A version that gc has reaped meanwhile is known by its publish alone.
Result<LocalRow> ChangeFinder::published_local(Snapshot& snapshot, const Commit& removal) {
  WEFT_TRY(auto commits, store_.commits(0, snapshot.journal_end()));
  for (Commit& commit : commits)
    if (commit.kind == Commit::Kind::publish && commit.model == removal.model && commit.number == removal.number)
      return std::move(commit.local);
  return Error{Errc::not_found, "no publish of " + removal.model};
}

// Views whose links were counted up or down. Those that a publish brought are numbered after its own nodes.
Status ChangeFinder::add_local(Snapshot& snapshot, const ModelRow& model, const Commit& commit, Inos& changed) {
  if (commit.kind == Commit::Kind::publish) {
    for (const Ino ino : commit.local.view_inos)
      if (ino < commit.local.ino_base) changed.push_back(ino);
    return {};
  }
  WEFT_TRY(const VersionRow version, snapshot.version(model.id, commit.number));
  WEFT_TRY(auto local, if_there(snapshot.local(version.id)));
  if (!local) {
    WEFT_TRY(local, if_there(published_local(snapshot, commit)));
  }
  if (local) changed.insert(changed.end(), local->view_inos.begin(), local->view_inos.end());
  return {};
}

Result<std::set<PublishedFile>> ChangeFinder::owners(const std::vector<ContentId>& blobs) {
  std::set<PublishedFile> files;
  for (std::size_t at = 0; at < blobs.size();) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    const std::size_t end = std::min(blobs.size(), at + kOwnersOfOneSnapshot);
    for (; at < end; ++at) {
      WEFT_TRY(const auto owner, snapshot->owner(blobs[at]));
      if (owner) files.insert(*owner);
    }
  }
  return files;
}

// The inodes of a live version's published files.
Status ChangeFinder::add_files_of(VersionId id, const std::set<PublishedFile>* wanted, Inos& changed) {
  WEFT_TRY(const auto version, if_there(versions_.load(id)));
  if (!version) return {};
  const VersionTree& tree = *(*version)->tree;
  for (std::uint32_t index = 0; index < tree.size(); ++index) {
    const Node& node = tree.node(index);
    if (node.kind != NodeKind::file || (wanted != nullptr && !wanted->contains({id, node.file}))) continue;
    changed.push_back(TreeNode{*version, index}.ino());
  }
  return {};
}

Status ChangeFinder::add_all_files(Inos& changed) {
  std::vector<VersionId> live;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const auto models, snapshot->models());
    for (const ModelRow& model : models) {
      WEFT_TRY(const auto versions, snapshot->versions(model.id));
      for (const VersionRow& version : versions)
        if (!version.removed) live.push_back(version.id);
    }
  }
  for (const VersionId id : live) WEFT_CHECK(add_files_of(id, nullptr, changed));
  return {};
}

// Owned bytes pass on to the next holder, which is now the first. When gc was faster than we, nobody knows any more
// what the version had.
Status ChangeFinder::add_heirs(const VersionRow& removed, Inos& changed) {
  WEFT_TRY(const auto reader, if_there(store_.open_manifest(removed.manifest)));
  if (!reader) return add_all_files(changed);
  WEFT_TRY(const auto blobs, blobs_of((*reader)->bytes()));
  WEFT_TRY(const auto files, owners(blobs));
  return add_files(files, changed);
}

// What a version brought that was bare so far counts among its files now, not among those of later ones.
Status ChangeFinder::add_former_owners(const VersionRow& adopted, Inos& changed) {
  WEFT_TRY(const auto reader, if_there(store_.open_manifest(adopted.manifest)));
  if (!reader) return {};  // it has been removed, which tells the same
  WEFT_TRY(const auto blobs, blobs_of((*reader)->bytes()));
  std::set<PublishedFile> files;
  for (std::size_t at = 0; at < blobs.size();) {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    const std::size_t end = std::min(blobs.size(), at + kOwnersOfOneSnapshot);
    for (; at < end; ++at) {
      WEFT_TRY(const auto holders, snapshot->some_holders(blobs[at], kHoldersSeen));
      if (holders.empty() || holders.front().first != adopted.id) continue;
      const auto next =
          std::ranges::find_if(holders, [&](const PublishedFile& one) { return one.first != adopted.id; });
      if (next != holders.end()) files.insert(*next);
    }
  }
  return add_files(files, changed);
}

Status ChangeFinder::add_files(const std::set<PublishedFile>& files, Inos& changed) {
  std::set<VersionId> versions;
  for (const auto& [version, file] : files) versions.insert(version);
  for (const VersionId id : versions) WEFT_CHECK(add_files_of(id, &files, changed));
  return {};
}

Result<Inos> ChangeFinder::changes_of(const Commit& commit) {
  Inos changed = commit.tags;
  VersionRow row;
  {
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(const ModelRow model, snapshot->model(commit.model));
    changed.insert(changed.end(), {model.ino, model.latest_ino});
    if (commit.kind == Commit::Kind::tags) return changed;
    WEFT_CHECK(add_local(*snapshot, model, commit, changed));
    if (commit.kind == Commit::Kind::publish) return changed;
    WEFT_TRY(row, snapshot->version(model.id, commit.number));
    // Nobody here had looked into it: it had neither bytes nor views.
    const bool removal = commit.kind == Commit::Kind::removal;
    if (removal && !row.publisher.empty() && row.tensors != 0 && changed.size() == commit.tags.size() + 2)
      return changed;
  }
  WEFT_CHECK(commit.kind == Commit::Kind::adoption ? add_former_owners(row, changed) : add_heirs(row, changed));
  return changed;
}

}  // namespace

Status tell_changes(Store& store, Versions& versions, std::uint64_t from, std::uint64_t to, const TellChanges& tell) {
  WEFT_TRY(const auto commits, store.commits(from, to));
  ChangeFinder finder(store, versions);
  for (const Commit& commit : commits) {
    WEFT_TRY(const Inos changed, finder.changes_of(commit));
    tell(changed);
  }
  return {};
}

}  // namespace weft
