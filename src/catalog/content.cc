#include "catalog/content.h"

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/core.h>

#include "catalog/plan.h"

namespace weft {
namespace {

// Each blob of a version once, with the files that have it.
struct Use {
  FoundBlob blob;
  std::vector<std::uint32_t> files;
  std::uint64_t length() const { return blob_length(blob.key); }
};
using Uses = std::map<std::uint64_t, Use>;  // by the blob's number

// Which blobs each file of a version holds.
std::map<std::uint32_t, BlobNumbers> held_by_files(const Uses& uses) {
  std::map<std::uint32_t, BlobNumbers> held;
  for (const auto& [number, use] : uses)
    for (const std::uint32_t file : use.files) held[file].insert(number);
  return held;
}

// What a version does about extents that the index does not know.
enum class Unknown : std::uint8_t { refused, absent };

Unknown unknown_of(const PublishInput& input) {
  return input.absent ? Unknown::absent : Unknown::refused;
}

// The number that the journal has for each blob of a version.
using Numbers = std::unordered_map<ContentId, std::uint64_t>;

Result<Numbers> numbers_of(Txn& txn, const VersionContent& content, const std::vector<Range>& runs) {
  const std::vector<ContentId> blobs = blobs_of(content);
  const std::vector<std::uint64_t> numbers = numbers_in(runs);
  if (blobs.size() != numbers.size())
    return Error{Errc::corrupt, fmt::format("{}: a manifest names {} blobs, the journal has numbers of {}", txn.path(),
                                            blobs.size(), numbers.size())};
  Numbers found;
  for (std::size_t i = 0; i < blobs.size(); ++i) found.emplace(blobs[i], numbers[i]);
  return found;
}

// A blob that versions hold keeps its number: rows of holders go by it.
Status take_number(Txn& txn, FoundBlob& blob, std::uint64_t number) {
  if (blob.row.number == number) return {};
  WEFT_TRY(const std::optional<Holder> holder, first_holder(txn, blob));
  return holder ? Status{} : number_blob(txn, blob, number);
}

// Counts in `missing`, if it is given, the extents that are on this node in no pack.
Result<Uses> uses_of(Txn& txn, const VersionContent& content, Unknown unknown, const Numbers& numbers,
                     std::uint64_t* missing) {
  Uses uses;
  for (std::uint32_t file = 0; file < content.files.size(); ++file) {
    for (const Extent& extent : content.files[file].extents) {
      const ContentId& id = extent.id;
      WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
      if (!blob && unknown == Unknown::refused)
        return Error{Errc::invalid, fmt::format("file {}: its extent of {} bytes with digest {} is not in the store",
                                                file, id.length, to_hex(id.root))};
      if (missing != nullptr && (!blob || blob->row.absent())) ++*missing;
      if (!blob) {
        WEFT_TRY(blob, make_blob(txn, id, {}));
      }
      WEFT_CHECK(take_number(txn, *blob, numbers.at(id)));
      Use& use = uses[blob->row.number];
      use.blob = *std::move(blob);
      if (use.files.empty() || use.files.back() != file) use.files.push_back(file);
    }
  }
  return uses;
}

std::string owned_key(const Holder& holder) {
  return file_key(holder.first, holder.second);
}

Status take_owned(Txn& txn, const Holder& holder, std::uint64_t bytes) {
  WEFT_TRY(NumberRow owned, need_row<NumberRow>(txn, Table::owned, owned_key(holder)));
  if (owned.value < bytes) return damaged(txn, fmt::format("version {} owns less than it brought", holder.first));
  owned.value -= bytes;
  return put(txn, Table::owned, owned_key(holder), owned);
}

// The first holder owns the bytes: a new version owns those that nobody held, or that only later ones hold, which a
// mirror learned of before.
Status own(Txn& txn, VersionId version, const Use& use, std::vector<std::uint64_t>& owned) {
  WEFT_TRY(std::optional<Holder> owner, first_holder(txn, use.blob));
  if (!owner) WEFT_CHECK(txn.erase(Table::dead, use.blob.key));
  if (!owner || version < owner->first) owned[use.files.front()] += use.length();
  return owner && version < owner->first ? take_owned(txn, *owner, use.length()) : Status{};
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

Status make_view(Txn& txn, const std::string& key, const ViewUse& use, const FirstView& first) {
  InodeRow inode;
  inode.kind = InodeKind::view;
  inode.base = use.ino;
  inode.view = *use.key;
  inode.view_links = use.links;
  inode.view_versions = 1;
  inode.view_time_ns = first.time_ns;
  inode.view_first = first.version;
  WEFT_CHECK(put(txn, Table::inodes, key_of(use.ino), inode));
  return put(txn, Table::views, key, NumberRow{use.ino});
}

FirstView first_view(const ContentOwner& owner, const PublishInput& input, Ino ino) {
  const FirstView here{owner.version, owner.time_ns};
  if (input.first_views == nullptr) return here;
  auto found = input.first_views->find(ino);
  return found == input.first_views->end() ? here : found->second;
}

Status add_views(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  for (const auto& [key, use] : views_of(*input.content, owner.local)) {
    WEFT_TRY(const std::optional<NumberRow> ino, find_row<NumberRow>(txn, Table::views, key));
    if (!ino) {
      WEFT_CHECK(make_view(txn, key, use, first_view(owner, input, use.ino)));
      continue;
    }
    if (ino->value != use.ino)
      return damaged(txn, fmt::format("a view has inode {}, the journal says {}", ino->value, use.ino));
    WEFT_TRY(InodeRow view, need_row<InodeRow>(txn, Table::inodes, key_of(use.ino)));
    view.view_links += use.links;
    ++view.view_versions;
    WEFT_CHECK(put(txn, Table::inodes, key_of(use.ino), view));
  }
  return {};
}

}  // namespace

Status add_owned(Txn& txn, const Holder& holder, std::uint64_t bytes) {
  WEFT_TRY(NumberRow owned, need_row<NumberRow>(txn, Table::owned, owned_key(holder)));
  owned.value += bytes;
  return put(txn, Table::owned, owned_key(holder), owned);
}

Status check_shape(Txn& txn, const LocalRow& local, const VersionContent& content) {
  if (local.view_inos.size() == content.views.size() && local.ino_count == content.tree_nodes) return {};
  return Error{Errc::corrupt,
               fmt::format("{}: a manifest gives {} views and {} nodes, expected {} and {}", txn.path(),
                           content.views.size(), content.tree_nodes, local.view_inos.size(), local.ino_count)};
}

Status add_content(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  const VersionContent& content = *input.content;
  WEFT_CHECK(check_shape(txn, owner.local, content));
  WEFT_TRY(const Numbers given, numbers_of(txn, content, owner.local.blobs));
  WEFT_TRY(Uses uses, uses_of(txn, content, unknown_of(input), given, input.missing_extents));
  std::vector<std::uint64_t> owned(content.files.size());
  for (const auto& [number, use] : uses) WEFT_CHECK(own(txn, owner.version, use, owned));
  for (const auto& [file, held] : held_by_files(uses)) WEFT_CHECK(add_holder(txn, {owner.version, file}, held));
  for (std::uint32_t file = 0; file < owned.size(); ++file)
    WEFT_CHECK(put(txn, Table::owned, file_key(owner.version, file), NumberRow{owned[file]}));
  return add_views(txn, owner, input);
}

}  // namespace weft
