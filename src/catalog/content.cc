#include "catalog/content.h"

#include <numeric>
#include <string>

#include <fmt/core.h>

#include "catalog/attach.h"
#include "catalog/plan.h"

namespace weft {
namespace {

// Numbers a blob. A blob that a version holds keeps its number: rows of holders refer to it.
Status take_number(Txn& txn, FoundBlob& blob, std::uint64_t number) {
  if (blob.row.number == number) return {};
  WEFT_TRY(const std::optional<Holder> holder, first_holder(txn, blob));
  return holder ? Status{} : number_blob(txn, blob, number);
}

// Returns the blob's row, with this number. Adds an absent row if the index has none and `input` permits it. Counts a
// blob that no local pack has.
Result<FoundBlob> known_blob(Txn& txn, const BlobReference& reference, std::uint64_t number,
                             const PublishInput& input) {
  const ContentId& id = *reference.blob;
  WEFT_TRY(std::optional<FoundBlob> blob, find_blob(txn, id));
  if (!blob && !input.absent)
    return Error{Errc::invalid, fmt::format("file {}: its extent of {} bytes with digest {} is not in the store",
                                            reference.file, id.length, to_hex(id.root))};
  if (input.missing_extents != nullptr && (!blob || blob->row.absent())) ++*input.missing_extents;
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

// The first holder of a blob owns its bytes. A new version owns a blob if no version holds it, or only later versions,
// which a mirror may learn of earlier. Adds the bytes to `owned`.
Status own(Txn& txn, VersionId version, const FoundBlob& blob, std::uint64_t& owned) {
  const std::uint64_t bytes = blob_length(blob.key);
  WEFT_TRY(std::optional<Holder> owner, first_holder(txn, blob));
  if (!owner) WEFT_CHECK(txn.erase(Table::dead, blob.key));
  if (!owner || version < owner->first) owned += bytes;
  return owner && version < owner->first ? take_owned(txn, *owner, bytes) : Status{};
}

FirstView first_view(const ContentOwner& owner, const PublishInput& input, Ino ino) {
  const FirstView here{owner.version, owner.time_ns};
  if (input.first_views == nullptr) return here;
  auto found = input.first_views->find(ino);
  return found == input.first_views->end() ? here : found->second;
}

struct NewLinks {
  Ino ino = 0;
  std::uint64_t links = 0;
  FirstView first;
  VersionId under_way = 0;
};

// Adds links to a view. A version in progress may be abandoned, so a version that commits before it becomes the view's
// first version.
Status add_view(Txn& txn, const ViewKey& view, const NewLinks& more) {
  const std::string key = view_key(view);
  WEFT_TRY(const std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::views, key));
  if (known && known->value != more.ino)
    return damaged(txn, fmt::format("a view has inode {}, the journal says {}", known->value, more.ino));
  InodeRow row;
  if (known) {
    WEFT_TRY(row, need_row<InodeRow>(txn, Table::inodes, key_of(more.ino)));
  } else {
    row.kind = InodeKind::view;
    row.base = more.ino;
    row.view = view;
    WEFT_CHECK(put(txn, Table::views, key, NumberRow{more.ino}));
  }
  if (!known || (more.under_way != 0 && row.view_first == more.under_way)) {
    row.view_time_ns = more.first.time_ns;
    row.view_first = more.first.version;
  }
  row.view_links += more.links;
  ++row.view_versions;
  return put(txn, Table::inodes, key_of(more.ino), row);
}

// Makes the version a holder of all its blobs, with the numbers that the journal has for them.
Status add_blobs_of(Txn& txn, const ContentOwner& owner, const ContentReferences& references, const LocalRow& local,
                    const PublishInput& input) {
  std::vector<std::uint64_t> numbers = numbers_in(local.blobs);
  if (references.blob_count() != numbers.size())
    return Error{Errc::corrupt, fmt::format("{}: a manifest names {} blobs, the journal has numbers of {}", txn.path(),
                                            references.blob_count(), numbers.size())};
  std::vector<std::uint32_t> places(numbers.size());
  std::iota(places.begin(), places.end(), 0U);
  std::map<std::uint32_t, std::uint64_t> owned;
  WEFT_CHECK(take_blobs(txn, owner.version, references, places, input, numbers, owned));
  for (std::uint32_t file = 0; file < input.content->files.size(); ++file)
    WEFT_CHECK(put_owned(txn, {owner.version, file}, owned[file]));
  return {};
}

}  // namespace

Status take_blobs(Txn& txn, VersionId version, const ContentReferences& references,
                  std::span<const std::uint32_t> places, const PublishInput& input, std::vector<std::uint64_t>& numbers,
                  std::map<std::uint32_t, std::uint64_t>& owned) {
  std::map<std::uint32_t, BlobNumbers> held;
  for (const std::uint32_t place : places) {
    const auto of = references.of_blob(place);
    WEFT_TRY(const FoundBlob blob, known_blob(txn, of.front(), numbers[place], input));
    numbers[place] = blob.row.number;
    WEFT_CHECK(own(txn, version, blob, owned[of.front().file]));
    for (const BlobReference& reference : of) held[reference.file].insert(blob.row.number);
  }
  for (const auto& [file, blobs] : held) WEFT_CHECK(add_holder(txn, {version, file}, blobs));
  return {};
}

Status take_views(Txn& txn, const ContentOwner& owner, const ContentReferences& references,
                  std::span<const std::uint32_t> views, const std::vector<Ino>& inos, const PublishInput& input) {
  NewLinks more;
  WEFT_TRY(more.under_way, version_under_way(txn));
  for (const std::uint32_t view : views) {
    more.ino = inos[view];
    more.links = references.links(view);
    more.first = first_view(owner, input, more.ino);
    WEFT_CHECK(add_view(txn, references.content().views[view], more));
  }
  return {};
}

Status put_owned(Txn& txn, const Holder& holder, std::uint64_t bytes) {
  return put(txn, Table::owned, owned_key(holder), NumberRow{bytes});
}

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

Status add_content(Txn& txn, const ContentOwner& owner, const LocalRow& local, const PublishInput& input) {
  WEFT_CHECK(check_shape(txn, local, *input.content));
  const ContentReferences references(*input.content);
  WEFT_CHECK(add_blobs_of(txn, owner, references, local, input));
  return take_views(txn, owner, references, references.distinct_views(), local.view_inos, input);
}

}  // namespace weft
