// The versions of a store as clients of a hub name them.
#pragma once

#include <string>
#include <string_view>

#include "endpoint/served_file.h"
#include "weft/names.h"
#include "weft/programs/vfs.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

struct ServedVersion {
  VersionRow row;
  std::string commit;  // the name of the version for clients
  // True if the hub may have another version under this name: for the newest version as "main", if it came from a hub
  // and the model has no tag main, and for a tag or "main" whose version is a part of a commit of the hub.
  bool is_stand_in = false;
};

// How answers name a version that came from a hub, unless the client named a commit, which they repeat.
enum class CommitNames : unsigned char {
  own,     // the commit of the content
  source,  // the commit of the hub, if it leads to this version
};

struct ServedEntry {
  ServedFile file;
  Ino ino = 0;
};

// Any thread. The caller holds no Snapshot.
class ServedStore {
 public:
  // Both outlive this.
  ServedStore(Store& store, Vfs& vfs, CommitNames names) : store_(store), vfs_(vfs), names_(names) {}

  // Errc::not_found: no live version of this kind has the name.
  Result<ModelRow> model(const HubName& repository) const;
  // True if a model has the name of this data set, or a data set that of this model: no version can be published.
  bool is_taken(const HubName& repository) const;
  // Errc::not_found: the model has no such revision. A part of a commit of the hub is not the version of this commit.
  Result<ServedVersion> version(const ModelRow& model, std::string_view revision) const;
  // True if the newest version came from a hub. Otherwise the model belongs to this cluster, whatever repository of the
  // hub has the same name.
  Result<bool> is_of_hub(const ModelRow& model) const;
  // Returns a file or directory of a version; "" is its root. May wait for the manifest. Errc::not_found.
  Result<ServedEntry> entry(const VersionRow& version, std::string_view path) const;

 private:
  Store& store_;
  Vfs& vfs_;
  const CommitNames names_;
};

}  // namespace weft
