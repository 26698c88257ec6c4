// Reads models, and versions with their tags, for display by the commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "cli/shared/context.h"
#include "weft/result.h"
#include "weft/store/publish.h"
#include "weft/store/store.h"

namespace weft {

struct VersionEntry {
  VersionRow row;
  std::vector<std::string> tags;  // sorted
  bool latest = false;
  Durability durability = Durability::local;  // only set for a live version
};

Result<VersionRow> version_or_tombstone(Store& store, std::string_view spec);  // resolve_or_tombstone()
// Returns the reason why the store may lack versions of its cluster, as one line; empty if it lacks none. Asks the
// daemon, so call it before the rows are read.
std::string_view why_incomplete(const Context& context, const Store& store);
Result<VersionEntry> version_entry(Store& store, std::string_view spec);

// For tables: "loss=0.1235 step=2000", as many as fit into a cell; and the value of one, "-" if the version lacks it.
std::string metrics_text(const VersionRow& row);
std::string metric_text(const VersionRow& row, std::string_view name);
// Returns "alice", "alice on node1", or "node1" for a change that a daemon made by itself; "-": unknown.
std::string author_text(const Author& by);
// Writes one object with the facts of a version, except its files and tensors.
void write_version(JsonWriter& json, const VersionEntry& version);

}  // namespace weft
