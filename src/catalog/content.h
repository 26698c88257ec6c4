// The part of a version that only its content decides: who holds which blob, who owns which bytes, links of views.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "catalog/apply.h"
#include "catalog/uses.h"

namespace weft {

// Who gets content.
struct ContentOwner {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
};
// All of it, with these inode numbers of its tree and views.
Status add_content(Txn& txn, const ContentOwner& owner, const LocalRow& local, const PublishInput& input);

// Some of it (taking.h).
// The blobs of these places, with the numbers that `numbers` has for them by place. A blob that versions hold keeps its
// own, which `numbers` has afterwards. Adds to `owned`, by file, the bytes that the version owns from now on.
Status take_blobs(Txn& txn, VersionId version, const ContentUses& uses, std::span<const std::uint32_t> places,
                  const PublishInput& input, std::vector<std::uint64_t>& numbers,
                  std::map<std::uint32_t, std::uint64_t>& owned);
// The views of these ordinals, each the first of its kind, with inodes by ordinal.
Status take_views(Txn& txn, const ContentOwner& owner, const ContentUses& uses, std::span<const std::uint32_t> views,
                  const std::vector<Ino>& inos, const PublishInput& input);
Status put_owned(Txn& txn, const Holder& holder, std::uint64_t bytes);

// The parts that a removal shares (giving_back.h): counts bytes that a holder owns from now on; Errc::corrupt where a
// manifest does not fit the version's numbers.
Status add_owned(Txn& txn, const Holder& holder, std::uint64_t bytes);
Status check_shape(Txn& txn, const LocalRow& local, const VersionContent& content);

}  // namespace weft
