#include "index/blobs.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "index/gc_queue.h"
#include "index/pages.h"
#include "index/tables.h"

namespace weft {
namespace {

std::uint64_t group_of(std::uint64_t number) {
  return number / kBlobsPerGroup;
}
std::uint64_t bit_of(std::uint64_t number) {
  return std::uint64_t{1} << (number % kBlobsPerGroup);
}

Result<std::uint64_t> bits_of(Txn& txn, const Entry& entry) {
  const std::optional<std::uint64_t> bits = decode_held(entry.key, entry.value);
  if (!bits) return damaged(txn, "the checksum of a row of holders is wrong");
  return *bits;
}

// Calls visit(holder) for each holder of the blob, in order, until it returns false.
template <class Visit>
Status each_holder(Txn& txn, const FoundBlob& blob, const Visit& visit) {
  if (blob.row.number == 0) return {};
  const std::string prefix = key_of(group_of(blob.row.number));
  WEFT_TRY(Cursor cursor, txn.cursor(Table::holders));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(prefix));
  while (entry && entry->key.starts_with(prefix)) {
    WEFT_TRY(const std::uint64_t bits, bits_of(txn, *entry));
    if ((bits & bit_of(blob.row.number)) != 0 && !visit(holder_at(entry->key))) return {};
    WEFT_TRY(entry, cursor.next());
  }
  return {};
}

// The same in reverse order.
template <class Visit>
Status each_holder_backwards(Txn& txn, const FoundBlob& blob, const Visit& visit) {
  const std::string prefix = key_of(group_of(blob.row.number));
  WEFT_TRY(Cursor cursor, txn.cursor(Table::holders));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek_before(key_of(group_of(blob.row.number) + 1)));
  while (entry && entry->key.starts_with(prefix)) {
    WEFT_TRY(const std::uint64_t bits, bits_of(txn, *entry));
    if ((bits & bit_of(blob.row.number)) != 0 && !visit(holder_at(entry->key))) return {};
    const std::string key(entry->key);
    WEFT_TRY(entry, cursor.seek_before(key));
  }
  return {};
}

std::map<std::uint64_t, std::uint64_t> groups_of(const BlobNumbers& blobs) {
  std::map<std::uint64_t, std::uint64_t> groups;
  for (const std::uint64_t number : blobs) groups[group_of(number)] |= bit_of(number);
  return groups;
}

Result<std::uint64_t> held_bits(Txn& txn, Bytes key) {
  WEFT_TRY(const std::optional<Bytes> value, txn.get(Table::holders, key));
  return value ? bits_of(txn, {key, *value}) : Result<std::uint64_t>(std::uint64_t{0});
}

}  // namespace

Status count_in_pack(Txn& txn, PackId pack, std::int64_t change) {
  if (pack == 0) return {};
  WEFT_TRY(std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::packs, key_of(pack)));
  const std::uint64_t count = (row ? row->value : 0) + static_cast<std::uint64_t>(change);
  if (change < 0 && (!row || row->value == 0))
    return damaged(txn, fmt::format("pack {:x} has fewer blobs than rows", pack));
  return count == 0 ? txn.erase(Table::packs, key_of(pack)) : put(txn, Table::packs, key_of(pack), NumberRow{count});
}

Result<std::optional<FoundBlob>> find_blob(Txn& txn, const ContentId& id) {
  std::string key = blob_key(id);
  WEFT_TRY(std::optional<BlobRow> row, find_row<BlobRow>(txn, Table::blobs, key));
  return row ? std::optional(FoundBlob{std::move(key), *row}) : std::nullopt;
}

Result<FoundBlob> make_blob(Txn& txn, const ContentId& id, const BlobPlace& place) {
  FoundBlob blob{blob_key(id), BlobRow{place, 0}};
  WEFT_CHECK(count_in_pack(txn, place.pack, 1));
  WEFT_CHECK(put(txn, Table::blobs, blob.key, blob.row));
  return blob;
}

Status place_blob(Txn& txn, FoundBlob blob, const BlobPlace& place) {
  if (blob.row.place.pack != place.pack) {
    WEFT_CHECK(count_in_pack(txn, blob.row.place.pack, -1));
    WEFT_CHECK(queue_pack(txn, blob.row.place.pack));
    WEFT_CHECK(count_in_pack(txn, place.pack, 1));
  }
  blob.row.place = place;
  return put(txn, Table::blobs, blob.key, blob.row);
}

Status number_blob(Txn& txn, FoundBlob& blob, std::uint64_t number) {
  blob.row.number = number;
  return put(txn, Table::blobs, blob.key, blob.row);
}

Status erase_blob(Txn& txn, const FoundBlob& blob) {
  WEFT_CHECK(count_in_pack(txn, blob.row.place.pack, -1));
  return txn.erase(Table::blobs, blob.key);
}

Result<std::uint64_t> blobs_in_pack(Txn& txn, PackId pack) {
  WEFT_TRY(const std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::packs, key_of(pack)));
  return row ? row->value : 0;
}

Result<std::optional<Holder>> first_holder(Txn& txn, const FoundBlob& blob) {
  std::optional<Holder> first;
  WEFT_CHECK(each_holder(txn, blob, [&first](const Holder& holder) {
    first = holder;
    return false;
  }));
  return first;
}

Result<Page<Holder>> holders_of(Txn& txn, const FoundBlob& blob, std::string_view from, std::size_t rows_max) {
  Page<Holder> page;
  if (blob.row.number == 0) return page;
  const std::string group = key_of(group_of(blob.row.number));
  const std::string behind = from.empty() ? "" : group + std::string(from);
  const auto add = [&](const Entry& entry) -> Status {
    WEFT_TRY(const std::uint64_t bits, bits_of(txn, entry));
    if ((bits & bit_of(blob.row.number)) != 0) page.rows.push_back(holder_at(entry.key));
    return {};
  };
  WEFT_TRY(const std::string last, visit_page(txn, Table::holders, group, behind, add, rows_max));
  if (!last.empty()) page.next = last.substr(group.size());
  return page;
}

Result<std::vector<Holder>> some_holders(Txn& txn, const FoundBlob& blob, std::size_t count_max) {
  std::vector<Holder> holders;
  WEFT_CHECK(each_holder(txn, blob, [&](const Holder& holder) {
    holders.push_back(holder);
    return holders.size() < count_max;
  }));
  if (holders.size() < count_max) return holders;
  std::vector<Holder> last;
  const Holder known = holders.back();
  WEFT_CHECK(each_holder_backwards(txn, blob, [&](const Holder& holder) {
    if (holder <= known) return false;
    last.push_back(holder);
    return last.size() < count_max;
  }));
  holders.insert(holders.end(), last.rbegin(), last.rend());
  return holders;
}

Status add_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs) {
  for (const auto& [group, bits] : groups_of(blobs)) {
    const std::string key = held_key(group, holder);
    WEFT_TRY(const std::uint64_t before, held_bits(txn, key));
    WEFT_CHECK(txn.put(Table::holders, key, encode_held(key, before | bits)));
  }
  return {};
}

Status remove_holder(Txn& txn, const Holder& holder, const BlobNumbers& blobs) {
  for (const auto& [group, bits] : groups_of(blobs)) {
    const std::string key = held_key(group, holder);
    WEFT_TRY(const std::uint64_t before, held_bits(txn, key));
    const std::uint64_t after = before & ~bits;
    WEFT_CHECK(after == 0 ? txn.erase(Table::holders, key) : txn.put(Table::holders, key, encode_held(key, after)));
  }
  return {};
}

Status put_hint(Txn& txn, const ContentId& id, std::uint64_t hint) {
  if (hint == 0) return {};
  return put(txn, Table::hints, hint_key(id.length, hint), HintRow{id.root});
}

Status erase_hint(Txn& txn, const ContentId& id, std::uint64_t hint) {
  WEFT_TRY(const std::optional<ContentId> hinted, find_hinted(txn, id.length, hint));
  return hinted == id ? txn.erase(Table::hints, hint_key(id.length, hint)) : Status{};
}

Result<std::optional<ContentId>> find_hinted(Txn& txn, std::uint64_t length, std::uint64_t hint) {
  if (hint == 0) return std::optional<ContentId>();
  WEFT_TRY(const std::optional<HintRow> row, find_row<HintRow>(txn, Table::hints, hint_key(length, hint)));
  return row ? std::optional(ContentId{length, row->root}) : std::nullopt;
}

}  // namespace weft
