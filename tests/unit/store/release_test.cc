// Removal of versions with more blobs than one batch.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "catalog/release.h"
#include "fakes/stop_after.h"
#include "index_support.h"
#include "weft/store/walk.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr unsigned kMany = limits::kBatchRows + 100;  // number of blobs and of views

struct LargeVersion {
  LargeVersion() {
    std::vector<unsigned> contents;
    for (unsigned n = 0; n < kMany; ++n) contents.push_back(n);
    large = must_publish(*store, "m", {contents}).version;
    small = must_publish(*store, "m", {{1, 2, 3}}).version;
    must(store->remove_version("m", 1));
  }
  std::optional<std::uint64_t> steps() const {
    Txn txn = must(store->parts().index.read());
    return must(note_value(txn, kReleasing, large.id));
  }
  bool is_sound() const {
    const auto problems = must(store->fsck({}, decode, no_progress())).problems;
    CHECK(problems == std::vector<std::string>{});
    return problems.empty();
  }
  VersionId owner_of(unsigned content) const {
    return must(must(store->snapshot())->owner(content_id(content)))->first;
  }
  std::uint64_t owned(VersionId version) const {
    Renewed renewed(*store);
    return must(owned_bytes(renewed, version));
  }

  TestStore test;
  std::unique_ptr<StoreImpl> store = open_store(test.path);
  VersionRow large, small;
};

}  // namespace

TEST_CASE("the content of a large removed version stays held until gc releases it") {
  LargeVersion of;
  CHECK(must(must(of.store->snapshot())->version(of.large.id)).removed);
  CHECK(of.steps() == 0);
  CHECK(of.owner_of(1) == of.large.id);
  CHECK(of.is_sound());

  const GcReport report = must(of.store->gc({}, no_progress()));
  CHECK(report.versions_reaped == 1);
  CHECK_FALSE(of.steps());
  CHECK(of.owner_of(1) == of.small.id);
  CHECK(of.owned(of.small.id) == of.small.logical_bytes);
  CHECK(must(of.store->counts()).blobs == 3);
  CHECK(of.is_sound());
}

TEST_CASE("a gc that ends between two batches leaves a sound store, and the next goes on") {
  LargeVersion of;
  StopAfter first(1);
  CHECK(of.store->gc({}, first).error().code == Errc::cancelled);
  CHECK(of.steps() == limits::kBatchRows);
  CHECK(of.is_sound());

  // Another version takes the blobs of the first and of the last step.
  const VersionRow other = must_publish(*of.store, "n", {{0, kMany - 1}}).version;
  CHECK(of.is_sound());
  const FsckOptions rebuild{.rebuild = true};
  CHECK(must(of.store->fsck(rebuild, decode, no_progress())).rebuilt);
  CHECK(of.is_sound());

  must(of.store->gc({}, no_progress()));
  CHECK_FALSE(of.steps());
  CHECK(of.owned(other.id) == other.logical_bytes);
  CHECK(of.is_sound());
  CHECK(must(of.store->counts()).blobs == 5);
}

TEST_CASE("a large version that somebody has open keeps its inodes, and a gc may end after each batch") {
  LargeVersion of;
  std::optional<VersionHold> hold = must(of.store->hold_version(of.large.id));
  CHECK(must(of.store->gc({}, no_progress())).versions_open == 1);
  const LocalRow local = must(must(of.store->snapshot())->local(of.large.id));
  for (const Ino ino : local.view_inos) CHECK(must(of.store->snapshot())->inode(ino).ok());
  CHECK(of.owner_of(1) == of.small.id);
  CHECK(of.is_sound());

  hold.reset();
  StopAfter second(1);
  CHECK(of.store->gc({}, second).error().code == Errc::cancelled);
  CHECK(of.is_sound());
  must_publish(*of.store, "n", {{0, kMany - 1}});
  CHECK(of.is_sound());
  CHECK(must(of.store->gc({}, no_progress())).versions_reaped == 1);
  CHECK_FALSE(of.steps());
  CHECK(of.is_sound());
}
