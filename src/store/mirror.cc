// Joins a cluster and mirrors its registry. Names come from the registry, content from adopt().
#include <map>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/text.h"
#include "catalog/cluster_files.h"
#include "catalog/mirroring.h"
#include "catalog/plan.h"
#include "diskformat/uuid.h"
#include "store/store_impl.h"

namespace weft {
namespace {

Status check_record(const VersionRow& version, const LocalRow& local, const VersionContent& content) {
  struct Fact {
    std::string_view what;
    std::uint64_t said;
    std::uint64_t is;
  };
  const Fact facts[] = {{"inode numbers", local.ino_count, content.tree_nodes},
                        {"bytes", version.logical_bytes, content.logical_bytes},
                        {"tensors", version.tensors, content.views.size()}};
  for (const Fact& fact : facts)
    if (fact.said != fact.is)
      return Error{Errc::corrupt, fmt::format("{}@{}: {}: its record says {}, its manifest {}", version.model_name,
                                              version.number, fact.what, fact.said, fact.is)};
  return {};
}

}  // namespace

Result<MirrorOutcome> StoreImpl::mirror(std::span<const MirrorChange> changes, std::uint64_t revision) {
  WEFT_CHECK(parts_.cluster.check_clustered());
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  WEFT_TRY(MirrorOutcome outcome, take(lock, changes, revision));
  WEFT_CHECK(keep_revision(lock, revision));
  return outcome;
}

Result<MirrorOutcome> StoreImpl::restore(std::span<const MirrorChange> changes) {
  WEFT_CHECK(parts_.cluster.check_alone());
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return take(lock, changes, 0);
}

Result<MirrorOutcome> StoreImpl::take(const WriterLock& lock, std::span<const MirrorChange> changes,
                                      std::uint64_t revision) {
  std::map<Digest, std::optional<VersionContent>> contents;
  MirrorSources sources;
  sources.restores = !parts_.cluster.joined();
  if (parts_.cluster.joined()) sources.node = parts_.cluster.identity()->node;
  sources.content = [&](const Digest& manifest) -> const VersionContent* {
    auto [at, made] = contents.try_emplace(manifest);
    if (made) {
      auto content = parts_.contents.of(manifest);
      if (content.ok()) at->second = std::move(*content);
    }
    return at->second ? &*at->second : nullptr;
  };
  sources.blobs = [this](std::span<const PackId> packs) { return blobs_of(parts_.packs, packs); };
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
  WEFT_CHECK(parts_.index.commit_with_spare(lock, make,
                                            parts_.cluster.joined() ? Durable::after_shown : Durable::before_shown));
  return outcome;
}

// A batch without events leaves no journal record. After a rebuild the store has an earlier revision, and the registry
// sends the batch again.
Status StoreImpl::keep_revision(const WriterLock& lock, std::uint64_t revision) {
  {
    WEFT_TRY(Txn txn, parts_.index.read());
    WEFT_TRY(Counters counters, get_counters(txn));
    if (counters.registry_revision == revision) return {};
  }
  return parts_.index.write(lock, [revision](Txn& txn) { return count_revision(txn, revision); });
}

Result<StoreImpl::Events> StoreImpl::adopt_all(Txn& txn, std::span<const Adoption> versions,
                                               std::span<const VersionContent> contents) {
  Events events;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    WEFT_TRY(VersionRow version, live_version(txn, versions[i].model, versions[i].number));
    WEFT_TRY(bool incomplete, is_incomplete(txn, version.id));
    if (!incomplete) continue;
    WEFT_TRY(LocalRow local, need_row<LocalRow>(txn, Table::locals, key_of(version.id)));
    WEFT_CHECK(check_record(version, local, contents[i]));
    WEFT_TRY(Counters counters, get_counters(txn));
    Allocator inos(counters);
    AdoptionEvent event;
    event.sequence = counters.sequence + 1;
    event.version = version.id;
    event.model = version.model_name;
    event.number = version.number;
    event.published_ns = version.time_ns;
    WEFT_TRY(event.view_inos, plan_views(txn, contents[i], inos, local.view_inos));
    WEFT_TRY(event.blobs, plan_blobs(txn, contents[i], counters.next_blob, local.blobs));
    PublishInput input = input_of(parts_.cluster, version);
    input.content = &contents[i];
    WEFT_CHECK(apply_adoption(txn, event, input));
    events.emplace_back(std::move(event));
  }
  return events;
}

Result<Digest> StoreImpl::manifest_of(const Adoption& adoption) {
  WEFT_TRY(Txn txn, parts_.index.read());
  WEFT_TRY(VersionRow version, live_version(txn, adoption.model, adoption.number));
  if (adoption.manifest.empty() || sha256(adoption.manifest) == version.manifest) return version.manifest;
  return Error{Errc::corrupt, fmt::format("{}@{}: expected a manifest with the SHA-256 {}, got {}", version.model_name,
                                          version.number, to_hex(version.manifest), to_hex(sha256(adoption.manifest)))};
}

Status StoreImpl::adopt(std::span<const Adoption> versions) {
  std::vector<Digest> manifests;
  std::vector<VersionContent> contents;
  WEFT_TRY(WriterLock lock, parts_.index.lock());  // so that gc keeps manifests that no version needs yet
  for (const Adoption& adoption : versions) {
    WEFT_TRY(Digest manifest, manifest_of(adoption));
    if (!adoption.manifest.empty()) WEFT_CHECK(parts_.manifests.put(manifest, adoption.manifest));
    WEFT_TRY(VersionContent content, parts_.contents.of(manifest));
    contents.push_back(std::move(content));
  }
  return parts_.index.commit(lock, [&](Txn& txn) { return adopt_all(txn, versions, contents); });
}

Status StoreImpl::saved(std::span<const VersionId> versions) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  return parts_.index.write(lock, [&](Txn& txn) -> Status {
    for (VersionId version : versions) WEFT_CHECK(erase_note(txn, kUnsaved, version));
    return bump_sequence(txn);
  });
}

Result<std::string> StoreImpl::origin() {
  return read_origin(parts_.path);
}

Result<std::vector<VersionId>> StoreImpl::own_versions(Txn& txn) const {
  std::vector<VersionId> own;
  WEFT_CHECK(each_entry(txn, Table::versions, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(const VersionRow version, row_from<VersionRow>(txn, Table::versions, entry.key, entry.value));
    if (is_own(version) && !version.removed) own.push_back(version.id);
    return {};
  }));
  return own;
}

// Writes the notes first: if the process dies in between, the previous origin is still the origin.
Status StoreImpl::set_origin(const std::string& uuid) {
  WEFT_TRY(WriterLock lock, parts_.index.lock());
  const Status noted = parts_.index.write(lock, [&](Txn& txn) -> Status {
    WEFT_TRY(const auto own, own_versions(txn));
    for (const VersionId version : own) WEFT_CHECK(put_note(txn, kUnsaved, version));
    return bump_sequence(txn);
  });
  if (!noted.ok()) return noted;
  return write_origin(parts_.path, uuid);
}

// A store with versions of its own cannot join a cluster. Versions of a registry are allowed: the store may have lost
// its STORE/cluster.
Status StoreImpl::check_joinable(const WriterLock& /*lock*/) {
  WEFT_TRY(Txn txn, parts_.index.read());
  return each_entry(txn, Table::versions, {}, [&](const Entry& entry) -> Status {
    WEFT_TRY(VersionRow version, row_from<VersionRow>(txn, Table::versions, entry.key, entry.value));
    if (!version.publisher.empty()) return {};
    return Error{Errc::unsupported, fmt::format("{}: expected a store without versions of its own to join a cluster, "
                                                "got one with {}@{}",
                                                parts_.path, version.model_name, version.number)};
  });
}

Status StoreImpl::join(const ClusterIdentity& identity) {
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
  WEFT_CHECK(check_joinable(lock));
  WEFT_CHECK(write_cluster(parts_.path, identity));
  parts_.cluster.set(identity);
  return {};
}

}  // namespace weft
