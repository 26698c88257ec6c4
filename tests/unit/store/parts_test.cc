#include <doctest/doctest.h>
#include <unistd.h>

#include <variant>

#include "catalog/plan.h"
#include "parts_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

Status pin(StoreParts& parts, std::string_view model, bool pinned) {
  WEFT_TRY(const WriterLock lock, parts.index.lock());
  return parts.index.commit(lock, [&](Txn& txn) -> Result<Events> {
    WEFT_TRY(const VersionRow version, live_version(txn, model, 1));
    return set_note(txn, version, VersionNote::pinned, pinned);
  });
}

}  // namespace

TEST_CASE("a commit adds its events to the journal, and one without events adds nothing") {
  TestParts test;
  must(publish(*test.parts, "m", {{1}}));
  const std::uint64_t before = must(test.parts->index.journal_end());
  must(pin(*test.parts, "m", true));
  const std::uint64_t after = must(test.parts->index.journal_end());
  CHECK(after > before);
  const JournalTail tail = must(test.parts->index.some_events(before, after));
  REQUIRE(tail.events.size() == 1);
  CHECK(std::get<NoteEvent>(tail.events[0].event).note == VersionNote::pinned);
  CHECK(test.has_note(kPinned, test.version("m", 1).id));
  must(pin(*test.parts, "m", true));
  CHECK(must(test.parts->index.journal_end()) == after);
}

TEST_CASE("the next writer replays records that the index lacks") {
  TestStore made;
  const auto open = [&](CommitHooks hooks = {}) {
    return must(StoreParts::open(safe(made.path), write_options(), std::move(hooks)));
  };
  must(publish(*open(), "m", {{1}}));
  CHECK(exited(in_child([&] {
                 CommitHooks hooks;
                 hooks.after_journal = [] { ::_exit(9); };
                 static_cast<void>(pin(*open(hooks), "m", true));
                 return false;
               }),
               9));
  const auto parts = open();
  const auto pinned = [&] {
    Txn txn = must(parts->index.read());
    return must(noted(txn, kPinned, 0, 1)).size();
  };
  CHECK(pinned() == 0);
  must(parts->index.lock());
  CHECK(pinned() == 1);
}

TEST_CASE("a store joins a cluster once, which decides who changes names") {
  TestParts test;
  CHECK(test.parts->cluster.check_alone().ok());
  CHECK(test.parts->cluster.check_clustered().error().code == Errc::invalid);
  test.parts->cluster.set({"test", "node"});
  CHECK(test.parts->cluster.check_alone().error().code == Errc::read_only);
  CHECK(test.parts->cluster.check_clustered().ok());
  VersionRow version;
  version.publisher = "node";
  CHECK(test.parts->cluster.is_own(version));
}
