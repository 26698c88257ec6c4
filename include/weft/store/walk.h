// Walks over more rows of a store, or of its index, than one state may read (header only). A walk reads a page by key
// in one state, and continues after the page's last key in a later state. So it may mix states. It reads each row that
// exists during the whole walk exactly once. A row that is added or deleted meanwhile may be missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/result.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"
#include "weft/store_rows.h"

namespace weft {

// Begins to read the present state. index/pages.h has the function for an index.
inline Result<std::unique_ptr<Snapshot>> read_state(Store& store) {
  return store.snapshot();
}

// A state for a walk of many single lookups: holds it for at most limits::kRowsPerSnapshot rows, and then takes a later
// one. One thread. The state ends with the object.
template <class Source>
class RenewedState {
 public:
  using Pointer = std::decay_t<decltype(read_state(std::declval<Source&>()).value())>;

  explicit RenewedState(Source& source) : source_(source) {}

  // Returns a state in which the caller reads at most `rows` rows; it is valid until the next call. Rows of an earlier
  // state may be outdated.
  Result<typename Pointer::element_type*> get(std::size_t rows = 1) {
    if (state_ && rows_ + rows > limits::kRowsPerSnapshot) end();
    if (!state_) {
      WEFT_TRY(state_, read_state(source_));
    }
    rows_ += rows;
    return state_.get();
  }
  // Call before output, a wait, or work of others.
  void end() {
    state_.reset();
    rows_ = 0;
  }

 private:
  Source& source_;
  Pointer state_;
  std::size_t rows_ = 0;
};
using Renewed = RenewedState<Store>;

// Calls step(state, from) for each page of a walk, each time with a state of its own. `from` is "" at first, and then
// the result of the previous step: Page::next. The walk ends at "".
template <class Source, class Step>
Status walk(Source& source, const Step& step) {
  std::string from;
  do {
    WEFT_TRY(auto state, read_state(source));
    WEFT_TRY(from, step(std::move(state), std::string_view(from)));
  } while (!from.empty());
  return {};
}
// The same with renewed.get(rows) as the state.
template <class Source, class Step>
Status walk(RenewedState<Source>& renewed, std::size_t rows, const Step& step) {
  std::string from;
  do {
    WEFT_TRY(auto* const state, renewed.get(rows));
    WEFT_TRY(from, step(state, std::string_view(from)));
  } while (!from.empty());
  return {};
}

// Calls visit(rows) for each page of rows: Result<Page<Row>> read(state, from). The state ends before the call, so the
// receiver of the rows may print, wait or look up more. Stops at the first error and returns it.
template <class Source, class Read, class Visit>
Status each_page(Source& source, const Read& read, const Visit& visit) {
  return walk(source, [&](auto state, std::string_view from) -> Result<std::string> {
    WEFT_TRY(auto page, read(*state, from));
    state.reset();
    WEFT_CHECK(visit(std::move(page.rows)));
    return std::move(page.next);
  });
}
// The same for each row.
template <class Source, class Read, class Visit>
Status each_row(Source& source, const Read& read, const Visit& visit) {
  return each_page(source, read, [&](auto rows) -> Status {
    for (auto& row : rows) WEFT_CHECK(visit(std::move(row)));
    return {};
  });
}
// Returns all ids of a list: Result<std::vector<id>> list(state, from, count_max), as Snapshot::pinned.
template <class Source, class List>
Result<std::vector<std::uint64_t>> all_ids(Source& source, const List& list) {
  std::vector<std::uint64_t> ids;
  WEFT_CHECK(walk(source, [&](auto state, std::string_view) -> Result<std::string> {
    const std::uint64_t from = ids.empty() ? 0 : ids.back() + 1;
    WEFT_TRY(const auto more, std::invoke(list, *state, from, limits::kRowsPerSnapshot));
    ids.insert(ids.end(), more.begin(), more.end());
    return more.size() < limits::kRowsPerSnapshot ? std::string() : std::to_string(ids.back());
  }));
  return ids;
}

// Lists for each_page() and each_row(), and for pages of at most `rows_max` rows.
inline auto list_models(std::string prefix = {}) {  // by name, also those without a live version
  return [prefix = std::move(prefix)](Snapshot& now, std::string_view from,
                                      std::size_t rows_max = limits::kRowsPerSnapshot) {
    return now.models(from, prefix, rows_max);
  };
}
inline auto list_versions(ModelId model) {  // by number, tombstones too
  return [model](Snapshot& now, std::string_view from, std::size_t rows_max = limits::kRowsPerSnapshot) {
    return now.versions(model, from, rows_max);
  };
}
inline auto list_tags(ModelId model) {  // by name
  return [model](Snapshot& now, std::string_view from, std::size_t rows_max = limits::kRowsPerSnapshot) {
    return now.tags(model, from, rows_max);
  };
}
inline auto list_tag_moves(ModelId model) {  // newest first
  return [model](Snapshot& now, std::string_view from) { return now.tag_moves(model, from); };
}
inline auto list_children(VersionId version) {  // by age, tombstones too
  return [version](Snapshot& now, std::string_view from) { return now.children(version, from); };
}

// Resolve a name in a state of their own. Errc::not_found lists what exists.
inline Result<VersionRow> version_of(Store& store, std::string_view spec) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  return resolve_version(*snapshot, spec);
}
inline Result<ModelRow> model_of(Store& store, std::string_view name) {
  WEFT_CHECK(check_model_name(name));
  WEFT_TRY(const auto snapshot, store.snapshot());
  auto row = snapshot->model(name);
  if (row.ok() || row.error().code != Errc::not_found) return row;
  WEFT_CHECK(resolve_version(*snapshot, name));  // its error message lists the existing models
  return row;
}

// Returns the tags of a version, by name.
inline Result<std::vector<std::string>> tags_of(Renewed& renewed, const VersionRow& version) {
  std::vector<std::string> tags;
  WEFT_CHECK(walk(renewed, 1, [&](Snapshot* now, std::string_view from) -> Result<std::string> {
    WEFT_TRY(Page<std::string> page, now->tags_of(version.model, version.number, from));
    WEFT_TRY(now, renewed.get(page.rows.size()));
    tags.insert(tags.end(), std::move_iterator(page.rows.begin()), std::move_iterator(page.rows.end()));
    return std::move(page.next);
  }));
  return tags;
}

// Returns some holders of a blob, as Snapshot::some_holders, with the rows of their versions.
inline Result<std::vector<std::pair<VersionRow, std::uint32_t>>> some_holding_files(Store& store, const ContentId& id,
                                                                                    std::size_t count_at_each_end) {
  std::vector<std::pair<VersionRow, std::uint32_t>> files;
  WEFT_TRY(const auto snapshot, store.snapshot());
  WEFT_TRY(const auto holders, snapshot->some_holders(id, count_at_each_end));
  for (const auto& [version, file] : holders)
    if (auto row = snapshot->version(version); row.ok()) files.emplace_back(*std::move(row), file);
  return files;
}

// True if a list of live versions has this one: list(state, from, count_max), as Snapshot::pinned.
template <class List>
Result<bool> lists_version(Snapshot& state, const List& list, VersionId version) {
  WEFT_TRY(const std::vector<VersionId> next, std::invoke(list, state, version, 1));
  return !next.empty() && next.front() == version;
}

// Returns the bytes that the files of a version own together; 0 while the version is bare.
inline Result<std::uint64_t> owned_bytes(Renewed& renewed, VersionId version) {
  std::uint64_t bytes = 0;
  WEFT_CHECK(walk(renewed, 1, [&](Snapshot* now, std::string_view from) -> Result<std::string> {
    WEFT_TRY(Page<std::uint64_t> page, now->owned_by_files(version, from));
    for (const std::uint64_t owned : page.rows) bytes += owned;
    WEFT_TRY(now, renewed.get(page.rows.size()));
    return std::move(page.next);
  }));
  return bytes;
}

}  // namespace weft
