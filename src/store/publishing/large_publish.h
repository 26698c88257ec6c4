// Publishes a large version: takes its content in parts (catalog/attach.h), so that other writers can commit in
// between.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "catalog/attach.h"
#include "index/env.h"
#include "os/sys.h"
#include "packs/blob_index.h"
#include "store/parts/parts.h"
#include "weft/progress.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// The placed blobs of a publish, and the writer lock that protects them until the commit.
struct Placed {
  std::optional<WriterLock> lock;  // empty only while a large publish lets others write
  std::span<const NewBlob> new_blobs;
  bool in_memory = false;
};

// Locks out gc, fsck and other large publishes until the commit: they do not know the version's content yet.
Result<Fd> lock_for_attaching(StoreParts& parts);
// Takes the version's content in parts. Nothing if the newest version has the same manifest. `new_bytes` grows by the
// size of blobs new to the index.
Result<std::optional<TakenContent>> take_content(StoreParts& parts, const PublishRequest& request,
                                                 const Digest& manifest, Placed& placed, std::uint64_t& new_bytes);

// Undoes the parts of a large publish that ended before its commit. The caller holds the collector's lock, so no large
// publish is running. After an error, the next call continues.
Status abandon_attach(StoreParts& parts, Progress& progress);
// For fsck: undoes an unfinished large publish if this process may write.
Status give_up_left(StoreParts& parts, Progress& progress);
// Returns a problem line if a large publish ended before its commit, else "". Nothing is lost: gc or the next large
// publish undoes its parts.
Result<std::string> left_attaching(StoreParts& parts);

}  // namespace weft
