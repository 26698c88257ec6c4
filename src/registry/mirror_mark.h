// The newest change of names that a mirror has applied, in the file STORE/registry. Each change of names puts the key h
// with a random value, so the value that h had at a revision identifies the registry's history up to there. The value
// of an etcd that was set back differs, even if its revisions have caught up since.
#pragma once

#include <cstdint>
#include <optional>

#include "os/safe_path.h"
#include "os/sys.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

struct MirrorMark {
  std::uint64_t generation = 0;  // newest generation whose reconciliation this node has completed; 0: none yet
  std::uint64_t known = 0;       // Snapshot::registry_revision() of the store's state
  std::uint64_t revision = 0;    // of the change; 0: no change is known, so only a list can tell
  Digest value;                  // SHA-256 of the value of h
};

// Makes the put of the key h the mark if it is newer.
void keep_newest(std::optional<MirrorMark>& mark, const etcd::KeyValue& history);

// True if the registry's history contains the mark. False also if etcd has compacted that revision.
Result<bool> is_of(etcd::Client& client, const RegistryKeys& keys, const MirrorMark& mark);

// For one thread.
class MarkFile {
 public:
  explicit MarkFile(SafePath path) : path_(std::move(path)) {}
  MirrorMark read() const;  // an empty one if the file is missing or unreadable
  Status write(const MirrorMark& mark);

 private:
  const SafePath path_;
  Fd fd_;
};

}  // namespace weft
