// Transfers of versions that exist in no store, for tests of the parts of a Fetcher.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "caching_store.h"
#include "fetch/plan.h"
#include "fetch/transfer.h"
#include "testing.h"

namespace weft::testing {

// Returns a transfer of blobs with these lengths, one after the other in one file. Blob I has I + 1 as the first bytes
// of its root.
inline std::shared_ptr<Transfer> made_transfer(CachingStore& store, const std::vector<std::uint64_t>& lengths,
                                               VersionId version = 1) {
  std::vector<Extent> extents;
  std::uint64_t offset = 0;
  for (std::uint64_t name = 1; const std::uint64_t length : lengths) {
    Extent extent{offset, {length, {}}};
    std::memcpy(extent.id.root.bytes.data(), &name, sizeof name);
    extents.push_back(extent);
    offset += length;
    ++name;
  }
  return must(Transfer::make(version, 0, {}, plan_fetch(extents), must(store.fetch_pack(offset)),
                             must(store.hold_version(version))));
}

}  // namespace weft::testing
