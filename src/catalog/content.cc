#include "catalog/content.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace weft {
namespace {

// Each blob of a version once, with the files that have it.
struct Use {
  std::uint64_t length = 0;
  std::vector<std::uint32_t> files;
};
using Uses = std::map<std::string, Use>;

// What a version does about extents that the index does not know.
enum class Unknown : std::uint8_t { refused, left_out, absent };

Unknown unknown_of(const PublishInput& input) {
  return input.absent ? Unknown::absent : Unknown::refused;
}

// Counts in `missing`, if it is given, the extents that are on this node in no pack.
Result<Uses> uses_of(Txn& txn, const VersionContent& content, Unknown unknown, std::uint64_t* missing) {
  Uses uses;
  for (std::uint32_t file = 0; file < content.files.size(); ++file) {
    for (const Extent& extent : content.files[file].extents) {
      const ContentId& id = extent.id;
      WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
      if (!blob && unknown == Unknown::refused)
        return Error{Errc::invalid, fmt::format("file {}: its extent of {} bytes with digest {} is not in the store",
                                                file, id.length, to_hex(id.root))};
      if (missing != nullptr && (!blob || blob->row.absent())) ++*missing;
      if (!blob && unknown == Unknown::left_out) continue;
      if (!blob) WEFT_CHECK(add_blob(txn, id, {}));
      Use& use = uses[blob_key(id)];
      use.length = id.length;
      if (use.files.empty() || use.files.back() != file) use.files.push_back(file);
    }
  }
  return uses;
}

std::string owned_key(const Holder& holder) {
  return file_key(holder.first, holder.second);
}

Status add_owned(Txn& txn, const Holder& holder, std::uint64_t bytes) {
  WEFT_TRY(NumberRow owned, need_row<NumberRow>(txn, Table::owned, owned_key(holder)));
  owned.value += bytes;
  return put(txn, Table::owned, owned_key(holder), owned);
}

Status take_owned(Txn& txn, const Holder& holder, std::uint64_t bytes) {
  WEFT_TRY(NumberRow owned, need_row<NumberRow>(txn, Table::owned, owned_key(holder)));
  if (owned.value < bytes) return damaged(txn, fmt::format("version {} owns less than it brought", holder.first));
  owned.value -= bytes;
  return put(txn, Table::owned, owned_key(holder), owned);
}

// The first holder owns the bytes: a new version owns those that nobody held, or that only later ones hold, which a
// mirror learned of before.
Status hold(Txn& txn, VersionId version, const std::string& key, const Use& use, std::vector<std::uint64_t>& owned) {
  WEFT_TRY(std::optional<Holder> owner, first_holder(txn, key));
  if (!owner) WEFT_CHECK(txn.erase(Table::dead, key));
  if (!owner || version < owner->first) owned[use.files.front()] += use.length;
  if (owner && version < owner->first) WEFT_CHECK(take_owned(txn, *owner, use.length));
  for (std::uint32_t file : use.files) WEFT_CHECK(txn.put(Table::holders, key, encode_holder(key, {version, file})));
  return {};
}

// A blob that is not here is known only as long as somebody needs it.
Status bury(Txn& txn, const std::string& key) {
  WEFT_TRY(BlobRow blob, need_row<BlobRow>(txn, Table::blobs, key));
  return blob.absent() ? txn.erase(Table::blobs, key) : mark_dead(txn, key);
}

// The next holder inherits what the version owned; a blob without one is dead.
Status let_go(Txn& txn, VersionId version, const std::string& key, const Use& use) {
  WEFT_TRY(std::optional<Holder> owner, first_holder(txn, key));
  if (!owner) return damaged(txn, fmt::format("version {} is no holder of its own blob", version));
  for (std::uint32_t file : use.files)
    WEFT_CHECK(txn.erase_value(Table::holders, key, encode_holder(key, {version, file})));
  WEFT_TRY(std::optional<Holder> heir, first_holder(txn, key));
  if (!heir) return bury(txn, key);
  return owner->first == version ? add_owned(txn, *heir, use.length) : Status{};
}

struct ViewUse {
  Ino ino = 0;
  std::uint64_t links = 0;
  const ViewKey* key = nullptr;
};
using ViewUses = std::map<std::string, ViewUse>;

ViewUses views_of(const VersionContent& content, const LocalRow& local) {
  ViewUses views;
  for (std::size_t i = 0; i < content.views.size(); ++i) {
    ViewUse& use = views[view_key(content.views[i].key)];
    use.ino = local.view_inos[i];
    use.key = &content.views[i].key;
    use.links += content.views[i].links;
  }
  return views;
}

Status check_shape(Txn& txn, const LocalRow& local, const VersionContent& content) {
  if (local.view_inos.size() == content.views.size() && local.ino_count == content.tree_nodes) return {};
  return Error{Errc::corrupt,
               fmt::format("{}: a manifest gives {} views and {} nodes, expected {} and {}", txn.path(),
                           content.views.size(), content.tree_nodes, local.view_inos.size(), local.ino_count)};
}

Status make_view(Txn& txn, const std::string& key, const ViewUse& use, const FirstView& first) {
  InodeRow inode;
  inode.kind = InodeKind::view;
  inode.base = use.ino;
  inode.view = *use.key;
  WEFT_CHECK(put(txn, Table::inodes, key_of(use.ino), inode));
  return put(txn, Table::views, key, ViewRow{use.ino, use.links, first.time_ns, 1, first.version});
}

FirstView first_view(const ContentOwner& owner, const PublishInput& input, Ino ino) {
  const FirstView here{owner.version, owner.time_ns};
  if (input.first_views == nullptr) return here;
  auto found = input.first_views->find(ino);
  return found == input.first_views->end() ? here : found->second;
}

Status add_views(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  for (const auto& [key, use] : views_of(*input.content, owner.local)) {
    WEFT_TRY(std::optional<ViewRow> view, find_row<ViewRow>(txn, Table::views, key));
    if (!view) {
      WEFT_CHECK(make_view(txn, key, use, first_view(owner, input, use.ino)));
      continue;
    }
    if (view->ino != use.ino)
      return damaged(txn, fmt::format("a view has inode {}, the journal says {}", view->ino, use.ino));
    view->links += use.links;
    ++view->versions;
    WEFT_CHECK(put(txn, Table::views, key, *view));
  }
  return {};
}

Status remove_views(Txn& txn, const VersionContent& content, const LocalRow& local) {
  for (const auto& [key, use] : views_of(content, local)) {
    WEFT_TRY(ViewRow view, need_row<ViewRow>(txn, Table::views, key));
    if (view.links < use.links) return damaged(txn, fmt::format("view {} has fewer links than names", view.ino));
    view.links -= use.links;
    WEFT_CHECK(put(txn, Table::views, key, view));
  }
  return {};
}

}  // namespace

Status add_content(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  const VersionContent& content = *input.content;
  WEFT_CHECK(check_shape(txn, owner.local, content));
  WEFT_TRY(Uses uses, uses_of(txn, content, unknown_of(input), input.missing_extents));
  std::vector<std::uint64_t> owned(content.files.size());
  for (const auto& [key, use] : uses) WEFT_CHECK(hold(txn, owner.version, key, use, owned));
  for (std::uint32_t file = 0; file < owned.size(); ++file)
    WEFT_CHECK(put(txn, Table::owned, file_key(owner.version, file), NumberRow{owned[file]}));
  return add_views(txn, owner, input);
}

Status remove_content(Txn& txn, VersionId version, const LocalRow& local, const VersionContent& content) {
  WEFT_CHECK(check_shape(txn, local, content));
  WEFT_TRY(Uses uses, uses_of(txn, content, Unknown::left_out, nullptr));
  for (const auto& [key, use] : uses) WEFT_CHECK(let_go(txn, version, key, use));
  for (std::uint32_t file = 0; file < content.files.size(); ++file)
    WEFT_CHECK(txn.erase(Table::owned, file_key(version, file)));
  return remove_views(txn, content, local);
}

}  // namespace weft
