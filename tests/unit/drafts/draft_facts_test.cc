// The facts in .weft.json, and the metrics of a training.
#include "drafts/draft_facts.h"

#include <string>
#include <utility>
#include <vector>

#include "os/sys.h"
#include "unit/drafts/drafts.h"

namespace weft {
namespace {

using namespace testing;

TEST_CASE("facts of a draft") {
  const auto facts = parse_draft_facts(
      R"({"message": "m", "metrics": {"loss": 0.5, "step": 7, "by": "me"}, "tags": ["a"], "parents": ["p@1"],)"
      R"( "inherit": "b@2", "durability": "origin", "keep": 3})");
  REQUIRE(facts.ok());
  CHECK(facts->message == "m");
  CHECK(facts->metrics ==
        std::vector<std::pair<std::string, std::string>>{{"by", "me"}, {"loss", "0.5"}, {"step", "7"}});
  CHECK(facts->tags == std::vector<std::string>{"a"});
  CHECK(facts->parents == std::vector<std::string>{"p@1"});
  CHECK(facts->inherit == "b@2");
  CHECK(facts->durability == "origin");
  CHECK(facts->keep == 3);
  for (const char* bad : {"", "7", "[]", R"({"message": 7})", R"({"tags": "a"})", R"({"tags": [7]})", R"({"keep": -1})",
                          R"({"keep": "3"})", R"({"metrics": []})", R"({"metrics": {"a": {}}})",
                          R"({"metrics": {"a": null}})", R"({"other": 1})", R"({"message": "a", "message": "b"})"}) {
    CAPTURE(bad);
    CHECK(parse_draft_facts(bad).error().code == Errc::invalid);
  }
}

TEST_CASE("facts of a directory whose checkpoints are published") {
  const auto facts = parse_draft_facts(R"({"model": "org/m", "each": "step-*", "when": "done", "tags": ["a"]})");
  REQUIRE(facts.ok());
  REQUIRE(facts->each);
  CHECK(facts->each->model == "org/m");
  CHECK(facts->each->pattern == "step-*");
  CHECK(facts->each->when == "done");
  CHECK_FALSE(parse_draft_facts("{}")->each);
  for (const char* bad : {R"({"model": "m"})", R"({"each": "a", "when": "b"})", R"({"model": "m", "each": "a"})",
                          R"({"model": "m", "each": "a/b", "when": "c"})", R"({"model": "m", "each": "", "when": "c"})",
                          R"({"model": 7, "each": "a", "when": "c"})"}) {
    CAPTURE(bad);
    CHECK(parse_draft_facts(bad).error().code == Errc::invalid);
  }
}

TEST_CASE("the metrics of a training that transformers runs") {
  const TempDir dir;
  const Fd fd = must(open_file(dir.path(), O_RDONLY | O_DIRECTORY));
  CHECK(trainer_metrics(fd.get()).empty());
  write_file(dir / "trainer_state.json",
             R"({"log_history": [{"loss": 2.5, "step": 1, "epoch": 0.5}, {"loss": 1.5, "step": 2},)"
             R"( {"eval_loss": 3, "step": 2, "epoch": 1.5}], "other": []})");
  CHECK(trainer_metrics(fd.get()) == std::vector<std::pair<std::string, std::string>>{
                                         {"loss", "1.5"}, {"eval_loss", "3"}, {"step", "2"}, {"epoch", "1.5"}});
  write_file(dir / "trainer_state.json", R"({"log_history": [7, {"loss": [1]}, null]})");
  CHECK(trainer_metrics(fd.get()).empty());
}

}  // namespace
}  // namespace weft
