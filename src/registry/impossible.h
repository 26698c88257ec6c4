// The changes of a store, or of an origin, that a registry cannot have, such as a version of a name that would hide
// another model's, with the reasons. For one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "registry/registry_records.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

class Impossible {
 public:
  void add(RefusedChange change) {
    reasons_[{std::move(change.model), std::move(change.tag), change.uid}] = std::move(change.why);
  }
  void add(const VersionRow& version, std::string why) { add({version.model_name, {}, version.uid, std::move(why)}); }
  void add(const MirroredTag& tag, std::string why) { add({tag.model, tag.name, {}, std::move(why)}); }
  bool has(const VersionRow& version) const { return reasons_.contains({version.model_name, {}, version.uid}); }
  // Also if the tag leads to such a version.
  bool has(const MirroredTag& tag) const {
    return reasons_.contains({tag.model, tag.name, {}}) || reasons_.contains({tag.model, {}, tag.uid});
  }
  bool empty() const { return reasons_.empty(); }
  // The first ones, as many as a record of the registry takes, with shortened reasons.
  std::vector<RefusedChange> list() const {
    std::vector<RefusedChange> changes;
    for (const auto& [key, why] : reasons_) {
      if (changes.size() == kRefusedMax) break;
      changes.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), one_line(why)});
    }
    return changes;
  }

 private:
  static constexpr std::size_t kReasonMax = 300;
  static std::string one_line(const std::string& why) { return printable(why, kReasonMax); }

  std::map<std::tuple<std::string, std::string, Uuid>, std::string> reasons_;  // by model, tag and identity
};

}  // namespace weft
