// Converts one batch of registry changes to events and applies them in a transaction.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalog/apply.h"
#include "diskformat/events.h"
#include "packs/blob_index.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"

namespace weft {

// The inputs of a batch from the store, other than the index.
struct MirrorSources {
  // Returns the content of a local manifest, nullptr if it is not local or not readable. Valid as long as the batch.
  std::function<const VersionContent*(const Digest& manifest)> content;
  std::function<Result<std::vector<NewBlob>>(std::span<const PackId> packs)> blobs;
  std::string node;  // uuid of this node
  // True if a store without a cluster is restored from an origin.
  bool restores = false;
};

// Under the writer lock. After an error the transaction cannot be used.
class Mirroring {
 public:
  Mirroring(Txn& txn, const MirrorSources& sources, MirrorOutcome& outcome)
      : txn_(txn), sources_(sources), outcome_(outcome) {}

  Status take(const MirrorChange& change);
  std::vector<Event> take_events() { return std::move(events_); }

 private:
  Status take(const MirroredVersion& change);
  Status take(const MirroredTag& change);
  Status take(const MirroredMemory& change);
  Result<std::optional<VersionRow>> live(const std::string& model_name, std::uint64_t number);
  Status take(const MirroredPurge& change);
  Status note_memory(const VersionRow& version, bool in_memory);
  Status describe(const VersionRow& known, const VersionRow& change);
  Status undelete(const VersionRow& known, const MirroredVersion& change);
  Status remove_later(const VersionRow& known, const MirroredVersion& change);
  Status undelete_later(const VersionRow& known, std::uint64_t undeleted_ns);
  Result<std::optional<VersionRow>> renumber(const ModelRow& model, const MirroredVersion& change);
  Status check_version(const MirroredVersion& change) const;
  Status publish(const MirroredVersion& change);
  std::vector<NewBlob> brought_by(const MirroredVersion& change);
  Result<PublishEvent> plan(const MirroredVersion& change, const VersionContent* content);
  Status remove(const VersionRow& known, const MirroredVersion& change);
  Status refuse(std::string_view what, std::string_view why);
  Status add(Event event);

  Txn& txn_;
  const MirrorSources& sources_;
  MirrorOutcome& outcome_;
  std::vector<Event> events_;
};

}  // namespace weft
