// A large version takes its content in parts, each a transaction of its own, so that others write between them and no
// transaction is large. The commit that makes the version live (apply_publish) then has little left to do.
//
// Until that commit the index has the row of the version as a removed one without a model or number, so that no list
// has it, and the note kTaking with the number of steps that it has taken. The journal has no record of it: one that
// dies before its commit gives back what it has taken, and then nothing is left of it but a hole in the ids. The caller
// holds the collector's lock from before the packs are placed until the commit: gc would take what nobody needs yet,
// and fsck knows of no version under way. So there is one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "catalog/uses.h"
#include "index/env.h"
#include "packs/blob_index.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// The version that is under way, or that a dead publish has left. find_under_way() gives nothing if there is none.
struct UnderWay {
  VersionRow version;
  std::uint64_t steps = 0;  // taken
};
Result<std::optional<UnderWay>> find_under_way(Txn& txn);

// What the commit of the version records.
struct TakenContent {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
  std::vector<Ino> view_inos;  // as LocalRow's
  std::vector<Range> blobs;
};

// One step is a view, a file or a blob. The order is by the content alone: by the keys of the index, so that steps that
// follow one another change pages that stand together. A step that failed is taken again. One thread; the content and
// the blobs stay the caller's, unchanged.
class ContentTaking {
 public:
  // `brought`: blobs that come with the version. None to give back.
  ContentTaking(const VersionContent& content, std::span<const NewBlob> brought);

  std::uint64_t steps() const { return views_.size() + files() + blobs_.size(); }
  // Gives the version, which plan_version() made, its id and its row. Returns new bytes, as take().
  Result<std::uint64_t> begin(Txn& txn, VersionRow version);
  // Takes these steps; those before are taken. Returns the bytes of blobs that the index did not have.
  Result<std::uint64_t> take(Txn& txn, std::uint64_t from, std::uint64_t end);
  // After the last step. Once.
  TakenContent taken();

  // Of a version that comes to nothing: gives back these steps; those behind are given back. Without steps, its row
  // goes.
  Status give_back(Txn& txn, VersionId version, std::uint64_t from, std::uint64_t end) const;

 private:
  std::size_t files() const { return uses_.content().files.size(); }
  std::vector<NewBlob> brought_among(std::span<const std::uint32_t> places) const;
  std::vector<NewBlob> brought_in_vain() const;
  Status take_views_of(Txn& txn, std::span<const std::uint32_t> views);
  Result<std::uint64_t> take_blobs_of(Txn& txn, std::span<const std::uint32_t> places);

  const ContentUses uses_;
  std::vector<std::uint32_t> views_;  // ordinals, by key
  std::vector<std::uint32_t> blobs_;  // places, by key
  const std::span<const NewBlob> brought_;
  std::vector<std::uint32_t> by_id_;  // numbers of `brought_`
  VersionId version_ = 0;
  std::uint64_t time_ns_ = 0;
  std::vector<Ino> view_inos_;          // by ordinal
  std::vector<std::uint64_t> numbers_;  // of blobs, by place
};

}  // namespace weft
