// Models and versions with their tags, as the commands show them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weft/publish.h"
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

struct VersionEntry {
  VersionRow row;
  std::vector<std::string> tags;  // sorted
  bool latest = false;
  Durability durability = Durability::local;  // of a live one
};

Result<ModelRow> model_row(Store& store, std::string_view name);  // Errc::not_found says which models there are
Result<VersionEntry> version_entry(Store& store, std::string_view spec);

std::string spec_of(const VersionRow& row);  // "bert-base@2"
// One object: what there is to say about a version but for its content.
void write_version(JsonWriter& json, const VersionEntry& version);

}  // namespace weft
