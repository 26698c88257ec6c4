// Identifies the history of etcd that a store mirrors, by the newest registry change that the store applied. The mark
// is in STORE/registry. A revision does not suffice: an etcd that was set back reaches the same revisions again with
// other changes. The file is not synced. If it is missing, or belongs to another state of the store, the mirror reads
// the whole registry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "os/safe_path.h"
#include "os/sys.h"
#include "registry/etcd_client.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

struct MirrorMark {
  std::uint64_t known = 0;      // Snapshot::registry_revision() of the store's state
  std::uint64_t etcd = 0;       // etcd's cluster id
  std::uint64_t revision = 0;   // revision of the change
  std::string key;              // the changed key
  std::optional<Digest> value;  // SHA-256 of the value put; empty if the key was deleted
};

// Makes the event the mark if it is newer. Of events of one revision a put is preferred: it identifies more than a
// deletion.
void keep_newest(std::optional<MirrorMark>& mark, const etcd::Event& event);

// True if etcd's history contains the mark. False also if etcd has compacted that revision.
Result<bool> is_of(etcd::Client& client, const MirrorMark& mark);

// For one thread.
class MarkFile {
 public:
  explicit MarkFile(SafePath path) : path_(std::move(path)) {}
  std::optional<MirrorMark> read() const;  // nothing if it is missing or unreadable
  Status write(const std::optional<MirrorMark>& mark);

 private:
  const SafePath path_;
  Fd fd_;
};

}  // namespace weft
