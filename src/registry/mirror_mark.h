// Which history a store's mirror is of: the newest change of the registry that it took over, kept in STORE/registry.
// An etcd that was set back goes on to revisions that nodes know, with other changes: a revision alone does not tell.
// The file is not synced. Who finds none, or one of another state of the store, reads the whole registry.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "os/safe_path.h"
#include "os/sys.h"
#include "registry/etcd_client.h"
#include "weft/content.h"
#include "weft/result.h"

namespace weft {

struct MirrorMark {
  std::uint64_t known = 0;      // Snapshot::registry_revision() of the state that it is of
  std::uint64_t etcd = 0;       // etcd's own id of its cluster
  std::uint64_t revision = 0;   // of the change
  std::string key;              // which was put,
  std::optional<Digest> value;  // the SHA-256 of this, or deleted
};

// A later change takes the place of an earlier one; of one revision, what was put says more than what was deleted.
void keep_newest(std::optional<MirrorMark>& mark, const etcd::Event& event);

// Whether etcd's history up to the mark is that of the mark. False also where etcd has forgotten it.
Result<bool> is_of(etcd::Client& client, const MirrorMark& mark);

// For one thread.
class MarkFile {
 public:
  explicit MarkFile(SafePath path) : path_(std::move(path)) {}
  std::optional<MirrorMark> read() const;  // nothing also where it cannot be read
  Status write(const std::optional<MirrorMark>& mark);

 private:
  const SafePath path_;
  Fd fd_;
};

}  // namespace weft
