// Gives bare versions their content.
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/sha256.h"
#include "catalog/plan.h"
#include "index/tables.h"
#include "store/cluster/store_cache.h"

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

Result<Events> adopt_all(StoreParts& parts, Txn& txn, std::span<const Adoption> versions,
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
    PublishInput input = input_of(parts.cluster, version);
    input.content = &contents[i];
    WEFT_CHECK(apply_adoption(txn, event, input));
    events.emplace_back(std::move(event));
  }
  return events;
}

Result<Digest> manifest_of(StoreParts& parts, const Adoption& adoption) {
  WEFT_TRY(Txn txn, parts.index.read());
  WEFT_TRY(VersionRow version, live_version(txn, adoption.model, adoption.number));
  if (adoption.manifest.empty() || sha256(adoption.manifest) == version.manifest) return version.manifest;
  return Error{Errc::corrupt, fmt::format("{}@{}: expected a manifest with the SHA-256 {}, got {}", version.model_name,
                                          version.number, to_hex(version.manifest), to_hex(sha256(adoption.manifest)))};
}

}  // namespace

Status StoreCache::adopt(std::span<const Adoption> versions) {
  std::vector<VersionContent> contents;
  WEFT_TRY(WriterLock lock, parts_.index.lock());  // so that gc keeps manifests that no version needs yet
  for (const Adoption& adoption : versions) {
    WEFT_TRY(Digest manifest, manifest_of(parts_, adoption));
    if (!adoption.manifest.empty()) WEFT_CHECK(parts_.manifests.put(manifest, adoption.manifest));
    WEFT_TRY(VersionContent content, parts_.contents.of(manifest));
    contents.push_back(std::move(content));
  }
  return parts_.index.commit(lock, [&](Txn& txn) { return adopt_all(parts_, txn, versions, contents); });
}

}  // namespace weft
