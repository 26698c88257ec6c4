// The list of a bundle, its first member: the versions with their records, the tags, and which member has which bytes
// (src/bundle). Only user of its schema (in the .cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/result.h"
#include "weft/store/cluster_store.h"
#include "weft/store_rows.h"

namespace weft {

inline constexpr std::uint32_t kBundleFormat = 1;

struct BundledVersion {
  VersionRow row;                    // its ids mean nothing in another store
  std::uint64_t manifest_bytes = 0;  // 0: the bundle lacks the manifest, or an earlier version has the same one
  std::vector<ContentId> blobs;      // in the bundle, in this order; earlier versions have the others
};

struct BundleList {
  std::string uuid;
  std::string since;  // id of the bundle that has the bytes which this one lacks; "": it lacks none
  std::uint64_t created_ns = 0;
  std::vector<BundledVersion> versions;  // in the order of their publishes
  std::vector<MirroredTag> tags;         // of these versions
};

std::vector<std::byte> encode_bundle_list(const BundleList& list);
// The input is hostile. Errc::corrupt: not a whole list; a version, a manifest, a blob or a tag that is listed twice; a
// tag of another version; a size beyond its bound. Errc::unsupported: another format.
Result<BundleList> decode_bundle_list(std::span<const std::byte> bytes, std::string_view where);

}  // namespace weft
