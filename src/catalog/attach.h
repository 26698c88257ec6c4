// A large version takes its content in steps, over several transactions: other writers get their turn between them, and
// no transaction is large. The commit that makes the version live (apply_publish) then has little work left.
//
// Until that commit the index has the version's row, marked as removed and without a model or number, so that no list
// shows it, and the note kAttaching with the number of steps taken. The journal has no record of the version. If the
// publish dies before its commit, the steps are undone, and only a hole in the ids remains. The caller holds the
// collector's lock from before the packs are placed until the commit, since gc would collect content that no version
// holds yet, and fsck does not know versions in progress. Therefore a store has at most one version in progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "catalog/content_references.h"
#include "index/env.h"
#include "packs/blob_index.h"
#include "weft/content.h"
#include "weft/model/version_content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

// The version in progress, or one that a dead publish has left. If there is none, version_under_way() returns 0 and
// find_under_way() nothing.
struct UnderWay {
  VersionRow version;
  std::uint64_t steps = 0;  // steps taken
};
Result<VersionId> version_under_way(Txn& txn);
Result<std::optional<UnderWay>> find_under_way(Txn& txn);

// The numbers that the version's commit records.
struct TakenContent {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
  std::vector<Ino> view_inos;  // as in LocalRow
  std::vector<Range> blobs;
};

// The steps of one version: each takes a view, a file or a blob. The order depends on the content only. It follows the
// keys of the index, so that consecutive steps change neighbouring pages. A failed step can be repeated. One thread;
// `content` and `brought` must outlive this object, unchanged.
class ContentAttach {
 public:
  // `brought`: the blobs in the packs of the version. Empty for release().
  ContentAttach(const VersionContent& content, std::span<const NewBlob> brought);

  std::uint64_t steps() const { return views_.size() + files() + blobs_.size(); }
  // Allocates the id of the version, a result of plan_version(), and adds its row. Returns new bytes as attach() does.
  Result<std::uint64_t> begin(Txn& txn, VersionRow version);
  // Takes the steps from `from` to `end`, after all earlier steps. Returns the total size of blobs new to the index.
  Result<std::uint64_t> attach(Txn& txn, std::uint64_t from, std::uint64_t end);
  // Call once, after the last step.
  TakenContent taken();

  // Undoes the steps from `from` to `end` of an abandoned version; later ones must be undone already. If `from` is 0,
  // also deletes the version's row.
  Status release(Txn& txn, VersionId version, std::uint64_t from, std::uint64_t end) const;

 private:
  std::size_t files() const { return references_.content().files.size(); }
  std::vector<NewBlob> brought_among(std::span<const std::uint32_t> places) const;
  std::vector<NewBlob> brought_in_vain() const;
  Status take_views_of(Txn& txn, std::span<const std::uint32_t> views);
  Result<std::uint64_t> take_blobs_of(Txn& txn, std::span<const std::uint32_t> places);

  const ContentReferences references_;
  std::vector<std::uint32_t> views_;  // ordinals, sorted by key
  std::vector<std::uint32_t> blobs_;  // places, sorted by key
  const std::span<const NewBlob> brought_;
  std::vector<std::uint32_t> by_id_;  // indices into brought_, sorted by id
  VersionId version_ = 0;
  std::uint64_t time_ns_ = 0;
  std::vector<Ino> view_inos_;          // inodes of views, by ordinal
  std::vector<std::uint64_t> numbers_;  // blob numbers, by place
};

}  // namespace weft
