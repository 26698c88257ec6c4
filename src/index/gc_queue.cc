#include "index/gc_queue.h"

#include <optional>
#include <string_view>

#include "index/tables.h"

namespace weft {
namespace {

constexpr std::string_view kLook = "look";  // gc has to judge the pack; value: the transaction that queued it
constexpr std::string_view kDead = "dead";  // value: bytes that gc has left in the pack
constexpr std::string_view kWalked = "walked";

Result<std::vector<NotedPack>> noted_packs(Txn& txn, std::string_view note, PackId from, std::size_t count_max) {
  std::vector<NotedPack> packs;
  WEFT_TRY(Cursor cursor, txn.cursor(Table::meta));
  WEFT_TRY(std::optional<Entry> entry, cursor.seek(note_key(note, from)));
  while (entry && entry->key.starts_with(note) && packs.size() < count_max) {
    WEFT_TRY(const NumberRow row, row_from<NumberRow>(txn, Table::meta, entry->key, entry->value));
    packs.push_back({number_at(entry->key, note.size()), row.value});
    WEFT_TRY(entry, cursor.next());
  }
  return packs;
}

}  // namespace

Status queue_pack(Txn& txn, PackId pack) {
  if (pack == 0) return {};
  WEFT_TRY(const std::optional<std::uint64_t> queued, note_value(txn, kLook, pack));
  return queued == txn.id() ? Status{} : put_note(txn, kLook, pack, txn.id());
}

Result<std::vector<NotedPack>> queued_packs(Txn& txn, PackId from, std::size_t count_max) {
  return noted_packs(txn, kLook, from, count_max);
}

Result<std::vector<NotedPack>> packs_left_dead(Txn& txn, PackId from, std::size_t count_max) {
  return noted_packs(txn, kDead, from, count_max);
}

Status note_verdict(Txn& txn, const PackVerdict& verdict) {
  WEFT_CHECK(verdict.dead_bytes == 0 ? erase_note(txn, kDead, verdict.pack)
                                     : put_note(txn, kDead, verdict.pack, verdict.dead_bytes));
  WEFT_TRY(const std::optional<std::uint64_t> queued, note_value(txn, kLook, verdict.pack));
  if (verdict.again) return queued ? Status{} : queue_pack(txn, verdict.pack);
  const bool changed = queued && !verdict.gone && queued != verdict.queued;
  return changed ? Status{} : erase_note(txn, kLook, verdict.pack);
}

Result<bool> has_walked(Txn& txn, std::uint64_t boot) {
  WEFT_TRY(const std::optional<std::uint64_t> walked, note_value(txn, kWalked, 0));
  return boot != 0 && walked == boot;
}

Status note_walked(Txn& txn, std::uint64_t boot) {
  return put_note(txn, kWalked, 0, boot);
}

}  // namespace weft
