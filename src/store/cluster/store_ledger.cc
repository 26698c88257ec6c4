#include "store/cluster/store_ledger.h"

#include <utility>
#include <variant>

#include "base/sha256.h"
#include "catalog/apply.h"
#include "catalog/cluster_files.h"
#include "index/tables.h"
#include "index/version_life.h"

namespace weft {
namespace {

// The key has a hash of the origin's id: a file contains that id, so it may have any length.
constexpr std::string_view kReplicated = "told";
std::string replicated_key(std::string_view origin) {
  return std::string(kReplicated) + digest_key(sha256(std::as_bytes(std::span(origin))));
}

void add(std::vector<CatalogEvent>& events, PublishEvent event) {
  VersionRow& version = event.version;
  for (NamedInode& tag : event.tags)
    events.emplace_back(MirroredTag{version.model_name, std::move(tag.name), version.number, version.time_ns, 0,
                                    version.by, version.uid});
  if (version.described_ns != 0)  // another node may write the version's record as it was published
    events.emplace_back(MirroredDescription{version.model_name, version.number, version.message, version.metrics,
                                            version.described_ns, version.uid});
  if (version.undeleted_ns != 0)
    events.emplace_back(MirroredUndelete{version.model_name, version.number, version.undeleted_ns, version.uid});
  events.emplace_back(std::move(version));
}

void add(std::vector<CatalogEvent>& events, TagsEvent event) {
  for (TagChange& change : event.changes)
    events.emplace_back(MirroredTag{event.model, std::move(change.name), change.number, event.time_ns,
                                    event.at.revision, event.by, change.uid, event.at.generation,
                                    std::move(change.owner)});
}

void add(std::vector<CatalogEvent>& events, RemovalEvent event) {
  events.emplace_back(
      MirroredRemoval{std::move(event.model), event.number, event.time_ns, std::move(event.lost), event.uid});
}

void add(std::vector<CatalogEvent>& events, DescriptionEvent event) {
  events.emplace_back(MirroredDescription{std::move(event.model), event.number, std::move(event.message),
                                          std::move(event.metrics), event.time_ns, event.uid});
}

void add(std::vector<CatalogEvent>& events, UndeleteEvent event) {
  events.emplace_back(MirroredUndelete{std::move(event.model), event.number, event.time_ns, event.uid});
}

void add(std::vector<CatalogEvent>& events, RenumberEvent event) {
  events.emplace_back(MirroredRenumber{std::move(event.model), event.number, event.to, event.time_ns, event.uid});
}

// The origin does not need events that concern only this node.
void add(std::vector<CatalogEvent>& /*events*/, const RepairEvent& /*event*/) {}
void add(std::vector<CatalogEvent>& /*events*/, const AdoptionEvent& /*event*/) {}
void add(std::vector<CatalogEvent>& /*events*/, const NoteEvent& /*event*/) {}
void add(std::vector<CatalogEvent>& /*events*/, const PurgeEvent& /*event*/) {}  // a collection frees its content there
void add(std::vector<CatalogEvent>& /*events*/, const RenameEvent& /*event*/) {}  // a cluster renames no model

std::vector<CatalogEvent> catalog_events(std::vector<JournaledEvent> journal) {
  std::vector<CatalogEvent> events;
  for (JournaledEvent& journaled : journal)
    std::visit([&events](auto& event) { add(events, std::move(event)); }, journaled.event);
  return events;
}

}  // namespace

Status StoreLedger::saved(std::span<const VersionId> versions) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    for (VersionId version : versions) WEFT_CHECK(clear_mark(txn, version, kUnsaved));
    return bump_sequence(txn);
  });
}

Result<std::vector<VersionId>> StoreLedger::own_versions(Txn& txn) const {
  std::vector<VersionId> own;
  WEFT_CHECK(each_entry(txn, Table::versions, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(const VersionRow version, row_from<VersionRow>(txn, Table::versions, entry.key, entry.value));
    if (parts_.cluster.is_own(version) && !version.removed) own.push_back(version.id);
    return {};
  }));
  return own;
}

Result<std::string> known_origin(Store& store) {
  return read_origin(store.directory());
}

Result<std::string> StoreLedger::origin() {
  return read_origin(parts_.path);
}

// Writes the notes first: if the process dies in between, the previous origin is still the origin.
Status StoreLedger::set_origin(const std::string& uuid) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  const Status noted = parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const auto own, own_versions(txn));
    for (const VersionId version : own) WEFT_CHECK(set_mark(txn, version, kUnsaved));
    return bump_sequence(txn);
  });
  if (!noted.ok()) return noted;
  return write_origin(parts_.path, uuid);
}

Result<CatalogEvents> StoreLedger::events(std::uint64_t from) {
  WEFT_TRY(const std::uint64_t end, parts_.index.journal_end());
  if (from > end) from = 0;  // the journal was cut since
  if (from == end) return CatalogEvents{{}, end};
  WEFT_TRY(JournalTail tail, parts_.index.some_events(from, end));
  const std::uint64_t next = tail.events.empty() ? end : tail.events.back().end;
  return CatalogEvents{catalog_events(std::move(tail.events)), next};
}

Result<std::uint64_t> StoreLedger::replicated(std::string_view origin) {
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(std::optional<NumberRow> row, find_row<NumberRow>(txn, Table::meta, replicated_key(origin)));
  return row ? row->value : 0;
}

Status StoreLedger::set_replicated(std::string_view origin, std::uint64_t end) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_CHECK(put(txn, Table::meta, replicated_key(origin), NumberRow{end}));
    return bump_sequence(txn);
  });
}

}  // namespace weft
