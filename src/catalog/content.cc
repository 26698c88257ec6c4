#include "catalog/content.h"

#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "catalog/plan.h"

namespace weft {
namespace {

// What a version does about extents that the index does not know.
enum class Unknown : std::uint8_t { refused, absent };

Unknown unknown_of(const PublishInput& input) {
  return input.absent ? Unknown::absent : Unknown::refused;
}

// A blob that versions hold keeps its number: rows of holders go by it.
Status take_number(Txn& txn, FoundBlob& blob, std::uint64_t number) {
  if (blob.row.number == number) return {};
  WEFT_TRY(const std::optional<Holder> holder, first_holder(txn, blob));
  return holder ? Status{} : number_blob(txn, blob, number);
}

// The blob's row, with this number. Counts in `missing`, if it is given, one that is on this node in no pack.
Result<FoundBlob> known_blob(Txn& txn, const BlobUse& use, std::uint64_t number, Unknown unknown,
                             std::uint64_t* missing) {
  const ContentId& id = *use.blob;
  WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
  if (!blob && unknown == Unknown::refused)
    return Error{Errc::invalid, fmt::format("file {}: its extent of {} bytes with digest {} is not in the store",
                                            use.file, id.length, to_hex(id.root))};
  if (missing != nullptr && (!blob || blob->row.absent())) ++*missing;
  if (!blob) {
    WEFT_TRY(blob, make_blob(txn, id, {}));
  }
  WEFT_CHECK(take_number(txn, *blob, number));
  return *std::move(blob);
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
// mirror learned of before. Counts them in `owned`.
Status own(Txn& txn, VersionId version, const FoundBlob& blob, std::uint64_t& owned) {
  const std::uint64_t bytes = blob_length(blob.key);
  WEFT_TRY(std::optional<Holder> owner, first_holder(txn, blob));
  if (!owner) WEFT_CHECK(txn.erase(Table::dead, blob.key));
  if (!owner || version < owner->first) owned += bytes;
  return owner && version < owner->first ? take_owned(txn, *owner, bytes) : Status{};
}

// The blobs of a version get their rows, the numbers that the journal has for them, and this holder.
Status add_blobs_of(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  const VersionContent& content = *input.content;
  const std::vector<BlobUse> uses = blob_uses(content);
  std::vector<std::uint64_t> numbers = numbers_in(owner.local.blobs);
  if (blob_count(uses) != numbers.size())
    return Error{Errc::corrupt, fmt::format("{}: a manifest names {} blobs, the journal has numbers of {}", txn.path(),
                                            blob_count(uses), numbers.size())};
  std::vector<std::uint64_t> owned(content.files.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i != 0 && uses[i].place == uses[i - 1].place) continue;
    std::uint64_t& number = numbers[uses[i].place];
    WEFT_TRY(const FoundBlob blob, known_blob(txn, uses[i], number, unknown_of(input), input.missing_extents));
    number = blob.row.number;
    WEFT_CHECK(own(txn, owner.version, blob, owned[uses[i].file]));
  }
  std::map<std::uint32_t, BlobNumbers> held;
  for (const BlobUse& use : uses) held[use.file].insert(numbers[use.place]);
  for (const auto& [file, blobs] : held) WEFT_CHECK(add_holder(txn, {owner.version, file}, blobs));
  for (std::uint32_t file = 0; file < owned.size(); ++file)
    WEFT_CHECK(put(txn, Table::owned, file_key(owner.version, file), NumberRow{owned[file]}));
  return {};
}

FirstView first_view(const ContentOwner& owner, const PublishInput& input, Ino ino) {
  const FirstView here{owner.version, owner.time_ns};
  if (input.first_views == nullptr) return here;
  auto found = input.first_views->find(ino);
  return found == input.first_views->end() ? here : found->second;
}

// `links` more entries show this view.
Status add_view(Txn& txn, const ViewKey& view, Ino ino, std::uint64_t links, const FirstView& first) {
  const std::string key = view_key(view);
  WEFT_TRY(const std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::views, key));
  if (known && known->value != ino)
    return damaged(txn, fmt::format("a view has inode {}, the journal says {}", known->value, ino));
  InodeRow row;
  if (known) {
    WEFT_TRY(row, need_row<InodeRow>(txn, Table::inodes, key_of(ino)));
  } else {
    row.kind = InodeKind::view;
    row.base = ino;
    row.view = view;
    row.view_time_ns = first.time_ns;
    row.view_first = first.version;
    WEFT_CHECK(put(txn, Table::views, key, NumberRow{ino}));
  }
  row.view_links += links;
  ++row.view_versions;
  return put(txn, Table::inodes, key_of(ino), row);
}

Status add_views(Txn& txn, const ContentOwner& owner, const PublishInput& input) {
  const std::vector<ViewKey>& views = input.content->views;
  const std::vector<std::uint32_t> first = first_alike(views);
  std::vector<std::uint32_t> links(views.size());
  for (const std::uint32_t view : first) links[view] += kLinksOfView;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (links[i] == 0) continue;  // it equals one before it
    const Ino ino = owner.local.view_inos[i];
    WEFT_CHECK(add_view(txn, views[i], ino, links[i], first_view(owner, input, ino)));
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
  WEFT_CHECK(check_shape(txn, owner.local, *input.content));
  WEFT_CHECK(add_blobs_of(txn, owner, input));
  return add_views(txn, owner, input);
}

}  // namespace weft
