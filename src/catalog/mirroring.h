// One batch of a registry's changes, made into events and applied to a transaction.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalog/apply.h"
#include "diskformat/events.h"
#include "packs/blob_index.h"
#include "weft/cluster_store.h"
#include "weft/result.h"

namespace weft {

// What a batch asks of the store besides its index.
struct MirrorSources {
  // Of a manifest that is here; nullptr when it is not, or says nothing that can be read. Lives as long as the batch.
  std::function<const VersionContent*(const Digest& manifest)> content;
  std::function<Result<std::vector<NewBlob>>(std::span<const PackId> packs)> blobs;
  std::string node;  // uuid of this one
  // No registry is mirrored, but a store of its own made from an origin.
  bool restores = false;
};

// Under the writer lock. After an error the transaction is spent.
class Mirroring {
 public:
  Mirroring(Txn& txn, const MirrorSources& sources, MirrorOutcome& outcome)
      : txn_(txn), sources_(sources), outcome_(outcome) {}

  Status take(const MirrorChange& change);
  std::vector<Event> take_events() { return std::move(events_); }

 private:
  Status take(const MirroredVersion& change);
  Status take(const MirroredTag& change);
  Status take(const MirroredRemoval& change);
  Status take(const MirroredMemory& change);
  Result<std::optional<VersionRow>> live(const std::string& model_name, std::uint64_t number);
  Status note_memory(const VersionRow& version, bool in_memory);
  Status check_version(const MirroredVersion& change) const;
  Status publish(const MirroredVersion& change);
  std::vector<NewBlob> brought_by(const MirroredVersion& change);
  Result<PublishEvent> plan(const MirroredVersion& change, const VersionContent* content);
  Status remove(const VersionRow& version, std::uint64_t time_ns, const std::string& lost);
  Status refuse(std::string_view what, std::string_view why);
  Status add(Event event);

  Txn& txn_;
  const MirrorSources& sources_;
  MirrorOutcome& outcome_;
  std::vector<Event> events_;
};

}  // namespace weft
