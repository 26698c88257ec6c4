#include "catalog/attach.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "catalog/apply.h"
#include "catalog/content.h"
#include "catalog/content_steps.h"
#include "catalog/plan.h"
#include "catalog/release.h"
#include "index/blobs.h"
#include "index/gc_queue.h"
#include "index/tables.h"
#include "index/version_life.h"
#include "weft/bytes/run_list.h"

namespace weft {
namespace {

// Returns the distinct views, sorted by the first 8 bytes of their keys, and by ordinal among equals.
std::vector<std::uint32_t> views_by_key(const ContentReferences& references) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed;
  std::vector<std::uint32_t> views = references.distinct_views();
  keyed.reserve(views.size());
  for (const std::uint32_t view : views)
    keyed.emplace_back(number_at(view_key(references.content().views[view]), 0), view);
  std::sort(keyed.begin(), keyed.end());
  std::ranges::transform(keyed, views.begin(), [](const auto& one) { return one.second; });
  return views;
}

template <class KeyOf>
std::vector<std::uint32_t> numbers_by(std::size_t count, const KeyOf& key_of) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::ranges::sort(numbers, {}, key_of);
  return numbers;
}

Status give_back_view(Txn& txn, const ViewKey& view, std::uint64_t links) {
  WEFT_TRY(const NumberRow ino, need_row<NumberRow>(txn, Table::views, view_key(view)));
  WEFT_CHECK(remove_links(txn, ino.value, links));
  return release_view(txn, ino.value);
}

}  // namespace

Result<VersionId> version_under_way(Txn& txn) {
  WEFT_TRY(const std::vector<VersionId> taking, noted(txn, kAttaching, 0, 1));
  return taking.empty() ? 0 : taking.front();
}

Result<std::optional<UnderWay>> find_under_way(Txn& txn) {
  WEFT_TRY(const VersionId version, version_under_way(txn));
  if (version == 0) return std::optional<UnderWay>();
  UnderWay found;
  WEFT_TRY(found.version, need_row<VersionRow>(txn, Table::versions, key_of(version)));
  WEFT_TRY(const auto steps, note_value(txn, kAttaching, version));
  found.steps = steps.value_or(0);
  return std::optional(std::move(found));
}

ContentAttach::ContentAttach(const VersionContent& content, std::span<const NewBlob> brought)
    : references_(content),
      views_(views_by_key(references_)),
      blobs_(numbers_by(references_.blob_count(),
                        [this](std::uint32_t place) -> const ContentId& { return references_.blob(place); })),
      brought_(brought),
      by_id_(numbers_by(brought.size(),
                        [brought](std::uint32_t number) -> const ContentId& { return brought[number].id; })),
      view_inos_(content.views.size()),
      numbers_(references_.blob_count()) {}

std::vector<NewBlob> ContentAttach::brought_among(std::span<const std::uint32_t> places) const {
  std::vector<NewBlob> found;
  for (const std::uint32_t place : places) {
    const ContentId& id = references_.blob(place);
    const auto at =
        std::ranges::lower_bound(by_id_, id, {}, [this](std::uint32_t number) { return brought_[number].id; });
    if (at != by_id_.end() && brought_[*at].id == id) found.push_back(brought_[*at]);
  }
  return found;
}

// Returns the blobs in the version's packs that its content does not name.
std::vector<NewBlob> ContentAttach::brought_in_vain() const {
  std::vector<NewBlob> found;
  auto named = blobs_.begin();
  for (const std::uint32_t number : by_id_) {
    const NewBlob& blob = brought_[number];
    while (named != blobs_.end() && references_.blob(*named) < blob.id) ++named;
    if (named == blobs_.end() || references_.blob(*named) != blob.id) found.push_back(blob);
  }
  return found;
}

// Reserves consecutive numbers for all blobs, whatever publishes run between the steps. Queues the version's packs for
// gc, in case the publish dies.
Result<std::uint64_t> ContentAttach::begin(Txn& txn, VersionRow version) {
  WEFT_TRY(Counters counters, get_counters(txn));
  version.id = counters.next_version++;
  WEFT_CHECK(check_ids(version));
  version.removed = true;
  version.removed_ns = version.time_ns;
  version_ = version.id;
  time_ns_ = version.time_ns;
  std::iota(numbers_.begin(), numbers_.end(), counters.next_blob);
  counters.next_blob += numbers_.size();
  ++counters.sequence;
  WEFT_CHECK(put_counters(txn, counters));
  WEFT_CHECK(put(txn, Table::versions, key_of(version.id), version));
  WEFT_CHECK(enter(txn, version.id, VersionState::attaching));
  PackId last = 0;
  for (const NewBlob& blob : brought_)
    if (blob.place.pack != std::exchange(last, blob.place.pack)) WEFT_CHECK(queue_pack(txn, last));
  return add_blobs(txn, brought_in_vain());
}

Status ContentAttach::take_views_of(Txn& txn, std::span<const std::uint32_t> views) {
  WEFT_TRY(Counters counters, get_counters(txn));
  Allocator inos(counters);
  for (const std::uint32_t view : views) {
    const std::string key = view_key(references_.content().views[view]);
    WEFT_TRY(const std::optional<NumberRow> known, find_row<NumberRow>(txn, Table::views, key));
    view_inos_[view] = known ? known->value : inos.one();
  }
  WEFT_CHECK(inos.check_room());
  counters.next_ino = inos.next();
  WEFT_CHECK(put_counters(txn, counters));
  return take_views(txn, {version_, time_ns_}, references_, views, view_inos_, {});
}

Result<std::uint64_t> ContentAttach::take_blobs_of(Txn& txn, std::span<const std::uint32_t> places) {
  WEFT_TRY(const std::uint64_t new_bytes, add_blobs(txn, brought_among(places)));
  for (const std::uint32_t place : places) {  // like plan_blobs()
    WEFT_TRY(const std::optional<FoundBlob> known, find_blob(txn, references_.blob(place)));
    if (known && known->row.number != 0) numbers_[place] = known->row.number;
  }
  std::map<std::uint32_t, std::uint64_t> owned;
  WEFT_CHECK(take_blobs(txn, version_, references_, places, {}, numbers_, owned));
  for (const auto& [file, bytes] : owned) WEFT_CHECK(add_owned(txn, {version_, file}, bytes));
  return new_bytes;
}

Result<std::uint64_t> ContentAttach::attach(Txn& txn, std::uint64_t from, std::uint64_t end) {
  WEFT_CHECK(take_views_of(txn, steps_of(views_, 0, from, end)));
  for (const std::uint32_t file : numbers_of(files(), views_.size(), from, end))
    WEFT_CHECK(put_owned(txn, {version_, file}, 0));
  WEFT_TRY(const std::uint64_t new_bytes, take_blobs_of(txn, steps_of(blobs_, views_.size() + files(), from, end)));
  WEFT_CHECK(set_steps(txn, version_, VersionState::attaching, end));
  WEFT_CHECK(bump_sequence(txn));
  return new_bytes;
}

TakenContent ContentAttach::taken() {
  TakenContent taken{version_, time_ns_, std::move(view_inos_), {}};
  for (std::size_t view = 0; view < taken.view_inos.size(); ++view)
    taken.view_inos[view] = taken.view_inos[references_.first_alike(view)];
  for (const std::uint64_t number : numbers_) append_run(taken.blobs, Range{number, 1});
  return taken;
}

Status ContentAttach::release(Txn& txn, VersionId version, std::uint64_t from, std::uint64_t end) const {
  WEFT_CHECK(let_go(txn, version, references_, steps_of(blobs_, views_.size() + files(), from, end)));
  for (const std::uint32_t file : numbers_of(files(), views_.size(), from, end))
    WEFT_CHECK(txn.erase(Table::owned, file_key(version, file)));
  for (const std::uint32_t view : steps_of(views_, 0, from, end))
    WEFT_CHECK(give_back_view(txn, references_.content().views[view], references_.links(view)));
  WEFT_CHECK(bump_sequence(txn));
  if (from != 0) return set_steps(txn, version, VersionState::attaching, from);
  WEFT_CHECK(enter(txn, version, VersionState::absent));
  return txn.erase(Table::versions, key_of(version));
}

}  // namespace weft
