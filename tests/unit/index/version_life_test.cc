#include "index/version_life.h"

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "index/tables.h"
#include "test_index.h"

using namespace weft;
using namespace weft::testing;

namespace {

using enum VersionState;

const std::map<VersionState, std::set<VersionState>> kNext = {
    {absent, {attaching, bare, whole}}, {attaching, {whole, absent}},      {bare, {whole, unreaped}},
    {whole, {unreaped, releasing}},     {unreaped, {absent, bare, whole}}, {releasing, {absent, whole}}};
// Leads from `absent` to each state.
const std::map<VersionState, std::vector<VersionState>> kWays = {
    {absent, {}},     {attaching, {attaching}},      {bare, {bare}},
    {whole, {whole}}, {unreaped, {whole, unreaped}}, {releasing, {whole, releasing}}};

Status go(Txn& txn, VersionState state) {
  const auto entered = enter(txn, 1, state);
  if (!entered.ok()) return entered.error();
  if (state == absent || state == attaching) return txn.erase(Table::locals, key_of(1));
  return put(txn, Table::locals, key_of(1), LocalRow{});
}

// Runs `body` in a version of this state, and takes everything back.
Status in_state(TestIndex& test, VersionState state, const std::function<Status(Txn&)>& body) {
  const WriterLock lock = must(test.env->lock_writer());
  Status result;
  const Status undone = test.env->write(lock, [&](Txn& txn) -> Status {
    for (const VersionState step : kWays.at(state)) WEFT_CHECK(go(txn, step));
    CHECK(must(state_of(txn, 1)) == state);
    result = body(txn);
    return Error{Errc::cancelled, "taken back"};
  });
  CHECK(undone.error().code == Errc::cancelled);
  return result;
}

}  // namespace

TEST_CASE("a version enters only the states that follow its own") {
  TestIndex test;
  for (const auto& [from, next] : kNext)
    for (const auto& [to, unused] : kNext) {
      const Status entered = in_state(test, from, [&, state = to](Txn& txn) -> Status {
        WEFT_CHECK(go(txn, state));
        CHECK(must(state_of(txn, 1)) == state);
        return {};
      });
      CHECK(entered.ok() == next.contains(to));
      if (!entered.ok()) CHECK(entered.error().code == Errc::corrupt);
    }
}

TEST_CASE("only a live version keeps marks, and they end with it") {
  TestIndex test;
  for (const std::string_view mark : {kUnsaved, kPinned, kInMemory})
    for (const auto& [state, unused] : kNext) {
      const bool live = state == bare || state == whole;
      const Status marked = in_state(test, state, [&, live, mark](Txn& txn) -> Status {
        WEFT_CHECK(set_mark(txn, 1, mark));
        CHECK(must(has_note(txn, mark, 1)) == live);
        if (!live) return {};
        WEFT_CHECK(go(txn, unreaped));
        CHECK_FALSE(must(has_note(txn, mark, 1)));
        return {};
      });
      CHECK(marked.ok() == (live || state == absent));
    }
  CHECK(in_state(test, whole, [](Txn& txn) { return set_mark(txn, 1, kUnreaped); }).error().code == Errc::corrupt);
}

TEST_CASE("a mark is cleared where it stands, and other notes are no marks") {
  TestIndex test;
  for (const std::string_view mark : {kUnsaved, kPinned, kInMemory})
    for (const auto& [state, unused] : kNext) {
      const bool live = state == bare || state == whole;
      const Status cleared = in_state(test, state, [&, live, mark](Txn& txn) -> Status {
        WEFT_CHECK(clear_mark(txn, 1, mark));
        if (!live) return {};
        WEFT_CHECK(set_mark(txn, 1, mark));
        WEFT_CHECK(clear_mark(txn, 1, mark));
        CHECK_FALSE(must(has_note(txn, mark, 1)));
        return {};
      });
      CHECK(cleared.ok());
    }
  for (const std::string_view note : {kUnreaped, kReleasing, kCached})
    CHECK(in_state(test, releasing, [&](Txn& txn) { return clear_mark(txn, 1, note); }).error().code == Errc::corrupt);
}

TEST_CASE("only a version in a state of steps records them") {
  TestIndex test;
  for (const auto& [state, unused] : kNext)
    for (const auto& [claimed, other] : kNext) {
      const std::string_view note = claimed == attaching ? kAttaching : kReleasing;
      const Status set = in_state(test, state, [&, recorded = claimed](Txn& txn) -> Status {
        WEFT_CHECK(set_steps(txn, 1, recorded, 5));
        CHECK(must(note_value(txn, note, 1)) == 5);
        return {};
      });
      CHECK(set.ok() == (state == claimed && (state == attaching || state == releasing)));
      if (!set.ok()) CHECK(set.error().code == Errc::corrupt);
    }
}

TEST_CASE("notes about packs and the store are no marks of the version with their id, and outlive it") {
  TestIndex test;
  for (const std::string_view note : {kCached, kPromoted, kMemoryUsed})
    for (const auto& [state, next] : kNext) {
      CAPTURE(note);
      const Status marked = in_state(test, state, [&](Txn& txn) { return set_mark(txn, 1, note); });
      CHECK(marked.error().code == Errc::corrupt);
      for (const VersionState after : next) {
        const Status entered = in_state(test, state, [&, before = state](Txn& txn) -> Status {
          WEFT_CHECK(put_note(txn, note, 1));
          CHECK(must(state_of(txn, 1)) == before);
          WEFT_CHECK(go(txn, after));
          CHECK(must(has_note(txn, note, 1)));
          return {};
        });
        CHECK(entered.ok());
      }
    }
}

TEST_CASE("facts that contradict each other are damage") {
  TestIndex test;
  const auto state_with = [&](VersionState state, std::string_view note) {
    return in_state(test, state, [&](Txn& txn) -> Status {
      WEFT_CHECK(put_note(txn, note, 1));
      WEFT_CHECK(state_of(txn, 1));
      return {};
    });
  };
  CHECK(state_with(absent, kPinned).error().code == Errc::corrupt);
  CHECK(state_with(bare, kAttaching).error().code == Errc::corrupt);
  CHECK(state_with(whole, kReleasing).error().code == Errc::corrupt);
  CHECK(state_with(unreaped, kIncomplete).error().code == Errc::corrupt);
  CHECK(state_with(whole, kPinned).ok());
}
