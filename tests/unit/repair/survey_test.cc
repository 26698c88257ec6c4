// Surveys of a journal find removed versions and losses, and plan the repair that accepts the losses.
#include "repair/survey.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "unit/catalog/test_journal.h"
#include "weft/bytes/run_list.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr ModelId kModel = 1, kOther = 2;
using Lines = std::vector<std::string>;

struct SurveyedJournal : TestJournal {
  Range publish(std::string_view model, ModelId id, std::uint64_t number) {
    const VersionId version = counters.next_version++;
    return append(publish_event(model, id, number, version));
  }
  void damage(const Range& record) const {
    flip_log(record);
    flip_copy(record);
  }
  // Truncates both files. The mark stays.
  void cut(std::uint64_t size) const {
    std::filesystem::resize_file(log(), size);
    std::filesystem::resize_file(copy(), kMarksBytes + size);
  }
  JournalSurvey survey() const {
    JournalSurvey survey("journal", must(journal.mark()));
    must(journal.each(0, UINT64_MAX, [&survey](const JournaledEvent& event) -> Status {
      survey.see(event);
      return {};
    }));
    must(survey.plan_repair(journal, counters.journal_end));
    return survey;
  }
};

VersionRow version(ModelId model, std::uint64_t number) {
  VersionRow row;
  row.model = model;
  row.number = number;
  row.uid = {model, number};
  return row;
}

std::optional<ModelRow> model(ModelId id) {
  ModelRow row;
  row.id = id;
  return row;
}

}  // namespace

TEST_CASE("a set of numbers has each number once, in whatever order they are added") {
  NumberSet set;
  CHECK(set.size() == 0);
  for (const std::uint64_t number : {5, 6, 1, 3, 5, 2, 6}) set.add(number);
  CHECK(set.size() == 5);
  for (const std::uint64_t number : {1, 2, 3, 5, 6}) CHECK(set.contains(number));
  for (const std::uint64_t number : {0, 4, 7}) CHECK_FALSE(set.contains(number));
}

TEST_CASE("the last of a version's removals and undeletes decides whether it is removed") {
  SurveyedJournal made;
  for (const std::uint64_t number : {1, 2, 3}) made.publish("m", kModel, number);
  made.append(RemovalEvent{1, "m", 1, 5, 0, {}, {}, {}, {kModel, 1}});
  made.append(RemovalEvent{2, "m", 2, 6, 0, {}, {}, {}, {kModel, 2}});
  UndeleteEvent undelete{3, "m", 1, 9, {2000, 10, {}, {}, {}}};
  undelete.bare = undelete.reaped = true;
  undelete.uid = {kModel, 1};
  made.append(undelete);
  const JournalSurvey survey = made.survey();
  CHECK_FALSE(survey.is_removed(version(kModel, 1)));
  CHECK(survey.is_removed(version(kModel, 2)));
  CHECK_FALSE(survey.is_removed(version(kModel, 3)));
  CHECK_FALSE(survey.is_removed(version(kOther, 2)));
  REQUIRE(survey.later_undeletes(version(kModel, 1)).size() == 1);
  CHECK(survey.later_undeletes(version(kModel, 1))[0].reaped);
  VersionRow undeleted = version(kModel, 1);
  undeleted.undeleted_ns = 9;
  CHECK(survey.later_undeletes(undeleted).empty());
  CHECK(survey.losses() == Lines{});
  CHECK_FALSE(survey.repair());
  CHECK_FALSE(survey.any_loss());

  made.append(RemovalEvent{4, "m", 1, 10, 0, {}, {}, {}, {kModel, 1}});
  CHECK(made.survey().is_removed(version(kModel, 1)));
}

TEST_CASE("the versions of a renamed model are found by its id") {
  SurveyedJournal made;
  made.publish("m", kModel, 1);
  made.append(RenameEvent{1, "m", "o", 5, {}});
  made.publish("o", kModel, 2);
  made.publish("m", kOther, 2);
  made.append(RemovalEvent{2, "o", 1, 6, 0, {}, {}, {}, {kModel, 1}});
  const JournalSurvey survey = made.survey();
  CHECK(survey.is_removed(version(kModel, 1)));
  CHECK_FALSE(survey.is_removed(version(kModel, 2)));
  CHECK_FALSE(survey.is_removed(version(kOther, 1)));
  CHECK(survey.losses() == Lines{});
}

TEST_CASE("a lost record is named by later ones, and an accepted loss is no loss any more") {
  SurveyedJournal made;
  made.publish("m", kModel, 1);
  const Range lost = made.publish("m", kModel, 2);
  made.publish("n", kOther, 1);
  made.append(tag_event(2));
  made.damage(lost);
  const JournalSurvey survey = made.survey();
  CHECK(survey.losses() ==
        Lines{fmt::format("journal: {} bytes at {} are whole in neither copy: the records after the publish of m@1 and "
                          "before the publish of n@1 are lost, tags and removals too",
                          lost.length, lost.offset),
              "m@2: the record of its publish is lost", "tag t of m: it was set to m@2, which is lost"});
  CHECK(survey.is_lost(model(kModel), 2));
  CHECK_FALSE(survey.is_lost(model(kModel), 1));
  CHECK(survey.is_lost({}, 1));
  REQUIRE(survey.repair());
  const RepairEvent& repair = *survey.repair();
  CHECK(repair.sequence == 3);
  CHECK(repair.gaps == std::vector<Range>{lost});
  CHECK(repair.lost_versions == 1);
  CHECK(repair.lost == survey.losses());
  REQUIRE(repair.models.size() == 2);
  CHECK(repair.models[0].next_number == 3);
  CHECK(repair.models[1].next_number == 2);

  made.append(repair);
  const JournalSurvey again = made.survey();
  CHECK(again.losses() == Lines{});
  CHECK_FALSE(again.repair());
  CHECK(again.any_loss());
  CHECK(again.is_lost(model(kModel), 2));
}

TEST_CASE("each model skips as many numbers as publishes may be lost with the journal's end") {
  SurveyedJournal made;
  const Range first = made.publish("m", kModel, 1);
  made.publish("m", kModel, 2);
  made.publish("n", kOther, 1);
  made.cut(end_of(first));
  const JournalSurvey survey = made.survey();
  REQUIRE(survey.losses().size() == 2);
  CHECK(survey.losses()[0].find("after the publish of m@1 and before the end are lost") != std::string::npos);
  CHECK(survey.losses()[1] == "journal: 2 publishes more are lost, of models that no other record names");
  REQUIRE(survey.repair());
  CHECK(survey.repair()->gaps.empty());
  REQUIRE(survey.repair()->models.size() == 1);
  CHECK(survey.repair()->models[0].next_number == 4);
  CHECK(survey.repair()->counters.number_floor == 2);
  CHECK(survey.repair()->counters.next_version == 4);
}
