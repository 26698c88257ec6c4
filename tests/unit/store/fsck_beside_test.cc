// fsck during writes: it blocks writers for moments only, reports none of their changes as damage, and finds real
// damage.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "catalog/journal.h"
#include "diskformat/events.h"
#include "index/blobs.h"
#include "index/tables.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Lines = std::vector<std::string>;

// Opens a store whose writes fail as soon as they have to wait, for the lock or for a reader of an old state.
std::unique_ptr<StoreImpl> open_impatient(const std::string& path) {
  OpenOptions options = write_options();
  options.patience.cancelled = [] { return true; };
  return open_store(path, options);
}

// Acts from time to time while fsck compares the index, on the thread of fsck.
class Interrupting final : public Progress {
 public:
  Interrupting(unsigned count, std::function<void(unsigned)> act) : count_(count), act_(std::move(act)) {}
  void total(std::uint64_t /*bytes*/) override {}
  void advance(std::uint64_t /*bytes*/) override {}
  void phase(std::string_view what) override { comparing_ = what == "comparing the index"; }
  bool cancelled() const override {
    if (comparing_ && ++calls_ % 7 == 0 && acts_ < count_) act_(acts_++);
    return false;
  }
  unsigned acts() const { return acts_; }

 private:
  const unsigned count_;
  const std::function<void(unsigned)> act_;
  bool comparing_ = false;
  mutable std::atomic<unsigned> calls_ = 0, acts_ = 0;
};

void fill(StoreImpl& store) {
  for (unsigned i = 0; i < 40; ++i) must_publish(store, fmt::format("m{}", i % 8), {{1, 2, 100 + i}, {3}});
  REQUIRE(store.set_tag("m1", "good", 1).ok());
  REQUIRE(store.remove_version("m2", 1).ok());
}

Status change(StoreImpl& store, unsigned i) {
  switch (i % 4) {
    case 0:
      return store.set_tag("m1", fmt::format("t{}", i), 5);
    case 1:
      return store.remove_version(fmt::format("m{}", i % 8), 2 + i / 8);
    case 2:
      return store.set_tag("m1", "good", 4 + i / 4 % 2);
    default: {
      auto made = publish(store, fmt::format("n{}", i), {{1, 3, 1000 + i}});
      return made.ok() ? Status{} : Status{std::move(made).error()};
    }
  }
}

Lines problems_of(StoreImpl& store, Progress& progress) {
  return store.fsck({}, decode, progress).value().problems;
}

void tamper(StoreImpl& store, const std::function<Status(Txn&)>& change) {
  const WriterLock lock = store.parts().index.lock().value();
  REQUIRE(store.parts().index.write(lock, change).ok());
}

}  // namespace

TEST_CASE("a writer is not blocked while fsck compares the index") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  auto writer = open_impatient(test.path);
  Interrupting progress(16, [&](unsigned i) {
    const Status changed = change(*writer, i);
    INFO((changed.ok() ? std::string() : changed.error().message));
    CHECK(changed.ok());
  });
  const FsckReport report = store->fsck({}, decode, progress).value();
  CHECK(progress.acts() == 16);
  CHECK(report.problems == Lines{});
  CHECK(report.versions == 40 - 1 - 4 + 4);
}

TEST_CASE("fsck finds damaged rows beside a writer") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  auto writer = open_impatient(test.path);
  tamper(*store, [](Txn& txn) { return txn.erase(Table::tags, tag_key(2, "good")); });
  tamper(*store, [](Txn& txn) { return put(txn, Table::owned, file_key(7, 1), NumberRow{5}); });
  tamper(*store, [](Txn& txn) -> Status {
    WEFT_TRY(const std::optional<FoundBlob> blob, find_blob(txn, content_id(105)));
    WEFT_TRY(const std::optional<Holder> holder, first_holder(txn, *blob));
    return remove_holder(txn, *holder, {blob->row.number});
  });
  tamper(*store, [](Txn& txn) { return put_note(txn, kPinned, 77); });
  tamper(*store, [](Txn& txn) { return mark_dead(txn, blob_key(content_id(7777))); });
  tamper(*store, [](Txn& txn) { return put(txn, Table::blobs, blob_key(content_id(8888)), BlobRow{{5, 0}, 99999}); });
  tamper(*store, [](Txn& txn) { return put(txn, Table::packs, key_of(77), NumberRow{3}); });
  Interrupting progress(8, [&](unsigned i) { CHECK(change(*writer, 4 * i + 3).ok()); });
  Lines problems = problems_of(*store, progress);
  CHECK(progress.acts() == 8);
  for (const char* what : {"table tags", "note pinned of 4d should not be there", "table owned", "table holders",
                           "table packs: row 000000000000004d", "table blobs", "table dead"}) {
    INFO(what);
    CHECK(std::ranges::count_if(problems, [&](const std::string& line) {
            return line.starts_with("index: ") && line.find(what) != std::string::npos;
          }) == 1);
  }
}

TEST_CASE("fsck reports the first few of many wrong rows of one table") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  tamper(*store, [](Txn& txn) -> Status {
    for (std::uint64_t id = 1000; id < 4000; ++id) WEFT_CHECK(put(txn, Table::children, key_of(id, id), NumberRow{0}));
    return {};
  });
  const Lines problems = problems_of(*store, no_progress());
  CHECK(problems.size() == 10);
  CHECK(std::ranges::all_of(problems, [](const std::string& line) {
    return line.starts_with("index: table children: row ") && line.find("should not be there") != std::string::npos;
  }));
}

TEST_CASE("a record that cannot be applied is told, and those beside it are applied") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  Counters counters;
  tamper(*store, [&](Txn& txn) -> Status {
    WEFT_TRY(counters, get_counters(txn));
    const Event tags = TagsEvent{counters.sequence + 1, "nobody", 1, {{"x", 1, 5000}}};
    const std::vector<std::byte> record = encode_event(tags, counters.journal_end);
    counters.journal_end += record.size();
    WEFT_CHECK(Journal(store->directory()).append(record, counters));
    return put_counters(txn, counters);
  });
  must_publish(*store, "m1", {{1, 2, 3000}});
  const Lines problems = problems_of(*store, no_progress());
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("the record at ") != std::string::npos);
  CHECK(problems[0].find("nobody") != std::string::npos);
}

TEST_CASE("fsck, again and again beside a writer, finds nothing wrong, and neither fails") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  std::atomic<bool> done = false;
  std::atomic<unsigned> failed = 0;
  std::thread writer([&] {
    auto own = open_store(test.path);
    for (unsigned i = 0; i < 300; ++i) {
      const std::string model = fmt::format("w{}", i % 5);
      if (!publish(*own, model, {{1, 2, 5000 + i}, {3, 4}}, {{}, {fmt::format("t{}", i % 3)}}).ok()) ++failed;
      if (i % 3 == 0 && !own->set_tag(model, "kept", i / 5 + 1).ok()) ++failed;
      if (i % 4 == 0 && !own->remove_version(model, i / 5 + 1).ok()) ++failed;
    }
    done = true;
  });
  unsigned runs = 0;
  Lines problems;
  do {
    auto report = store->fsck({.rebuild = false, .data = false}, decode, no_progress());
    if (!report.ok()) problems.push_back(report.error().message);
    if (report.ok()) problems.insert(problems.end(), report->problems.begin(), report->problems.end());
    ++runs;
  } while (!done && problems.empty());
  writer.join();
  CHECK(runs > 0);
  CHECK(failed == 0);
  INFO((problems.empty() ? std::string() : problems[0]));
  CHECK(problems == Lines{});
}
