#include "store/cluster/store_mirror.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/text.h"
#include "catalog/cluster_files.h"
#include "catalog/mirroring.h"
#include "diskformat/uuid.h"
#include "index/tables.h"
#include "store/publishing/undeletes.h"

namespace weft {
namespace {

Result<MirrorOutcome> take(StoreParts& parts, const WriterLock& lock, std::span<const MirrorChange> changes,
                           std::uint64_t revision) {
  std::map<Digest, std::optional<VersionContent>> contents;
  MirrorSources sources;
  sources.restores = !parts.cluster.joined();
  if (parts.cluster.joined()) sources.node = parts.cluster.identity()->node;
  sources.content = [&](const Digest& manifest) -> const VersionContent* {
    auto [at, made] = contents.try_emplace(manifest);
    if (made) {
      auto content = parts.contents.of(manifest);
      if (content.ok()) at->second = std::move(*content);
    }
    return at->second ? &*at->second : nullptr;
  };
  sources.blobs = [&](std::span<const PackId> packs) { return blobs_of(parts.packs, packs); };
  MirrorOutcome outcome;
  const MakeEvents make = [&](Txn& txn) -> Result<Events> {
    outcome = {};
    Mirroring mirroring(txn, sources, outcome);
    for (const MirrorChange& change : changes) WEFT_CHECK(mirroring.take(change));
    Events events = mirroring.take_events();
    if (!events.empty()) set_revision(events.back(), revision);
    WEFT_CHECK(count_revision(txn, revision));
    return events;
  };
  // A restore has no registry that would repeat its changes, so they are made durable first.
  const Durable durable = sources.restores ? Durable::before_shown : Durable::after_shown;
  WEFT_CHECK(parts.index.commit_with_spare(lock, make, durable));
  return outcome;
}

// A batch without events leaves no journal record. After a rebuild the store has an earlier revision, and the registry
// sends the batch again.
Status keep_revision(StoreParts& parts, const WriterLock& lock, std::uint64_t revision) {
  {
    WEFT_TRY(Txn txn, parts.index.read());
    WEFT_TRY(Counters counters, get_counters(txn));
    if (counters.registry_revision == revision) return {};
  }
  return parts.index.write(lock, [revision](Txn& txn) { return count_revision(txn, revision); });
}

// A store with versions of its own cannot join a cluster. Versions of a registry are allowed: the store may have lost
// its STORE/cluster.
Status check_joinable(StoreParts& parts) {
  WEFT_TRY(Txn txn, parts.index.read());
  return each_entry(txn, Table::versions, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(VersionRow version, row_from<VersionRow>(txn, Table::versions, entry.key, entry.value));
    if (!version.publisher.empty()) return {};
    return Error{Errc::unsupported, fmt::format("{}: expected a store without versions of its own to join a cluster, "
                                                "got one with {}@{}",
                                                parts.path, version.model_name, version.number)};
  });
}

}  // namespace

Result<MirrorOutcome> StoreMirror::apply(std::span<const MirrorChange> changes, std::uint64_t revision) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  WEFT_TRY(MirrorOutcome outcome, take(parts_, lock, changes, revision));
  WEFT_CHECK(keep_revision(parts_, lock, revision));
  return outcome;
}

Status StoreMirror::join(const ClusterIdentity& identity) {
  if (parts_.cluster.identity() == identity) return {};
  WEFT_TRY(const WriterLock lock, parts_.index.lock());
  if (parts_.cluster.identity() == identity) return {};
  if (parts_.cluster.joined())
    return Error{Errc::exists, fmt::format("{}: it is node {} of cluster {} already", parts_.path,
                                           printable(parts_.cluster.identity()->node),
                                           printable(parts_.cluster.identity()->cluster))};
  if (identity.cluster.empty() || !parse_uuid(identity.node))
    return Error{Errc::invalid, fmt::format("a node of a cluster: expected an id and a uuid, got \"{}\" and \"{}\"",
                                            printable(identity.cluster), printable(identity.node))};
  WEFT_CHECK(check_joinable(parts_));
  WEFT_CHECK(write_cluster(parts_.path, identity));
  parts_.cluster.set(identity);
  return {};
}

Result<std::unique_ptr<PreparedUndelete>> StoreMirror::prepare_undelete(std::string_view model, std::uint64_t number) {
  return weft::prepare_undelete(parts_, model, number);
}

Result<MirrorOutcome> restore_changes(StoreParts& parts, std::span<const MirrorChange> changes) {
  WEFT_CHECK(parts.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts.index.lock());
  return take(parts, lock, changes, 0);
}

}  // namespace weft
