// The members of a bundle in their order: the list, the manifests, then the blobs of each version.
//
//   weft-bundle          the list (diskformat/bundle_list.h)
//   manifests/<sha256>   as in a store
//   blobs/<n>            the blobs of the version with index n in the list, one after another
//
// A bundle that is one file is a tar with these members. Names are never read from a bundle: they follow from the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/bundle_list.h"

namespace weft {

inline constexpr std::string_view kBundleListName = "weft-bundle";

struct BundleMember {
  std::string name;
  std::uint64_t size = 0;
  std::size_t version = 0;   // index of its version
  bool is_manifest = false;  // else it has blobs
};

// Returns the members behind the list.
inline std::vector<BundleMember> members_of(const BundleList& list) {
  std::vector<BundleMember> members;
  for (std::size_t i = 0; i < list.versions.size(); ++i)
    if (const BundledVersion& version = list.versions[i]; version.manifest_bytes != 0)
      members.push_back({"manifests/" + to_hex(version.row.manifest), version.manifest_bytes, i, true});
  for (std::size_t i = 0; i < list.versions.size(); ++i) {
    if (list.versions[i].blobs.empty()) continue;
    BundleMember member{"blobs/" + std::to_string(i), 0, i, false};
    for (const ContentId& id : list.versions[i].blobs) member.size += id.length;
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace weft
