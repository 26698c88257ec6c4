// Recognises a directory of the Hugging Face hub's cache, and takes names from directories. Only a process with the
// rights of the user who names the paths may call it.
#pragma once

#include <optional>
#include <string>

#include "weft/names.h"
#include "weft/result.h"

namespace weft {

// One snapshot in a cache of the hub (huggingface_hub, file_download.py).
struct HubSnapshot {
  std::string path;  // its directory
  std::string name;  // as "org/bert"
  VersionKind kind = VersionKind::model;
  std::string revision;  // "main", or "" if refs/main names another snapshot
  std::string commit;    // the name of the snapshot; "" in a mount of weft, whose snapshots have digests as names
};

// Returns the snapshot that a directory stands for: itself, the one that refs/main of a repository (models--org--bert)
// names, or that of the only repository in a cache. Nothing if the directory belongs to no cache. Errc::invalid: there
// are several repositories, or the cache lacks the snapshot.
Result<std::optional<HubSnapshot>> hub_snapshot(const std::string& path);

// Returns the name of the directory if it can be the name of a model; "" for any other path.
std::string name_of_directory(const std::string& path);

}  // namespace weft
