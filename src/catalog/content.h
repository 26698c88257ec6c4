// Index rows that depend only on a version's content: holders of blobs, owners of bytes, links of views.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "catalog/apply.h"
#include "catalog/content_references.h"

namespace weft {

// The version that receives content.
struct ContentOwner {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
};
// Adds the whole content, with the inode and blob numbers of `local`.
Status add_content(Txn& txn, const ContentOwner& owner, const LocalRow& local, const PublishInput& input);

// The next three add parts of the content (attach.h).
//
// Makes the version a holder of the blobs of these places. `numbers` has their numbers by place; a blob that a version
// holds keeps its own number, which is written back to `numbers`. Adds the bytes that the version owns as a result to
// `owned`, by file.
Status take_blobs(Txn& txn, VersionId version, const ContentReferences& references,
                  std::span<const std::uint32_t> places, const PublishInput& input, std::vector<std::uint64_t>& numbers,
                  std::map<std::uint32_t, std::uint64_t>& owned);
// Adds the views of these ordinals, each the first of its equals. `inos` has their inodes by ordinal.
Status take_views(Txn& txn, const ContentOwner& owner, const ContentReferences& references,
                  std::span<const std::uint32_t> views, const std::vector<Ino>& inos, const PublishInput& input);
Status put_owned(Txn& txn, const Holder& holder, std::uint64_t bytes);

// Shared with a removal (release.h). add_owned() adds to the bytes that a holder owns. check_shape() returns
// Errc::corrupt if a manifest does not fit the version's numbers.
Status add_owned(Txn& txn, const Holder& holder, std::uint64_t bytes);
Status check_shape(Txn& txn, const LocalRow& local, const VersionContent& content);

}  // namespace weft
