// Walks over any number of rows of a store (header only). A walk reads a page by key, ends its snapshot, hands out the
// rows, and continues after the last key in another snapshot. So the receiver of the rows may print, wait or look up
// more. A walk may mix states. It hands out each row that exists during the whole walk exactly once. A row that is
// added or deleted meanwhile may be missing.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/renewed.h"
#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store.h"
#include "weft/store_rows.h"

namespace weft {

// One listing, page by page.
template <class Row, class Read>  // Result<Page<Row>> read(Snapshot&, std::string_view from)
class PagedListing {
 public:
  PagedListing(Store& store, Read read) : store_(store), read_(std::move(read)) {}

  // Returns the next rows, after the end of their snapshot; nothing at the end.
  Result<std::optional<std::vector<Row>>> next() {
    if (ended_) return std::optional<std::vector<Row>>();
    WEFT_TRY(const auto snapshot, store_.snapshot());
    WEFT_TRY(Page<Row> page, read_(*snapshot, std::string_view(from_)));
    from_ = std::move(page.next);
    ended_ = from_.empty();
    return std::optional(std::move(page.rows));
  }

 private:
  Store& store_;
  Read read_;
  std::string from_;
  bool ended_ = false;
};

template <class Row, class Read>
PagedListing<Row, Read> paged(Store& store, Read read) {
  return PagedListing<Row, Read>(store, std::move(read));
}

inline auto list_models(Store& store, std::string prefix = {}) {
  return paged<ModelRow>(
      store, [prefix = std::move(prefix)](Snapshot& now, std::string_view from) { return now.models(from, prefix); });
}
inline auto list_namespace(Store& store, std::string prefix) {
  return paged<NamespaceEntry>(store, [prefix = std::move(prefix)](Snapshot& now, std::string_view from) {
    return now.namespace_entries(prefix, from);
  });
}
inline auto list_versions(Store& store, ModelId model) {
  return paged<VersionRow>(store, [model](Snapshot& now, std::string_view from) { return now.versions(model, from); });
}
inline auto list_distinct(Store& store, ModelId model) {
  return paged<VersionId>(store, [model](Snapshot& now, std::string_view from) { return now.distinct(model, from); });
}
inline auto list_tags(Store& store, ModelId model) {
  return paged<TagRow>(store, [model](Snapshot& now, std::string_view from) { return now.tags(model, from); });
}
inline auto list_children(Store& store, VersionId version) {
  return paged<VersionId>(store,
                          [version](Snapshot& now, std::string_view from) { return now.children(version, from); });
}

// Calls visit(row) for all rows of a listing. Stops at the first error and returns it.
template <class Listing, class Visit>
Status each_row(Listing listing, const Visit& visit) {
  for (;;) {
    WEFT_TRY(auto rows, listing.next());
    if (!rows) return {};
    for (auto& row : *rows) WEFT_CHECK(visit(std::move(row)));
  }
}
template <class Visit>
Status each_model(Store& store, const Visit& visit) {  // by name, also those without a live version
  return each_row(list_models(store), visit);
}
template <class Visit>
Status each_version(Store& store, ModelId model, const Visit& visit) {  // by number, tombstones too
  return each_row(list_versions(store, model), visit);
}
template <class Visit>
Status each_tag(Store& store, ModelId model, const Visit& visit) {  // by name
  return each_row(list_tags(store, model), visit);
}
template <class Visit>
Status each_child(Store& store, VersionId version, const Visit& visit) {  // by age, tombstones too
  return each_row(list_children(store, version), visit);
}

// Returns the pinned versions, by id.
inline Result<std::vector<VersionId>> pinned_versions(Store& store) {
  std::vector<VersionId> pinned;
  for (;;) {
    WEFT_TRY(const auto snapshot, store.snapshot());
    const VersionId from = pinned.empty() ? 0 : pinned.back() + 1;
    WEFT_TRY(const auto more, snapshot->pinned(from, limits::kRowsPerSnapshot));
    if (more.empty()) return pinned;
    pinned.insert(pinned.end(), more.begin(), more.end());
  }
}

// Returns the tags of a version, by name.
inline Result<std::vector<std::string>> tags_of(Renewed& renewed, const VersionRow& version) {
  std::vector<std::string> tags;
  std::string from;
  do {
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(Page<std::string> page, now->tags_of(version.model, version.number, from));
    WEFT_CHECK(renewed.get(page.rows.size()));
    tags.insert(tags.end(), std::move_iterator(page.rows.begin()), std::move_iterator(page.rows.end()));
    from = std::move(page.next);
  } while (!from.empty());
  return tags;
}

// Returns the bytes that the files of a version own together; 0 while the version is bare.
inline Result<std::uint64_t> owned_bytes(Renewed& renewed, VersionId version) {
  std::uint64_t bytes = 0;
  std::string from;
  do {
    WEFT_TRY(Snapshot * now, renewed.get());
    WEFT_TRY(Page<std::uint64_t> page, now->owned_by_files(version, from));
    for (const std::uint64_t owned : page.rows) bytes += owned;
    WEFT_CHECK(renewed.get(page.rows.size()));
    from = std::move(page.next);
  } while (!from.empty());
  return bytes;
}

}  // namespace weft
