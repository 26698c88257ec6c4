#include "advise/csv.h"

#include <doctest/doctest.h>

#include <random>

#include "base/limits.h"
#include "testing.h"

using namespace weft::advise;
using weft::testing::must;

namespace {

struct Read {
  weft::Status status;
  LossSeries series;
};

Read read(std::string_view text, LossNames names = {}, std::size_t piece = std::string_view::npos) {
  Read result;
  CsvLosses csv(std::move(names));
  while (result.status.ok() && !text.empty()) {
    result.status = csv.add(text.substr(0, piece), result.series);
    text.remove_prefix(std::min(piece, text.size()));
  }
  if (result.status.ok()) result.status = csv.end(result.series);
  return result;
}

std::string refusal_of(std::string_view text) {
  const Read result = read(text);
  REQUIRE(!result.status.ok());
  CHECK(result.status.error().code == weft::Errc::invalid);
  CHECK(result.status.error().message.find('\n') == std::string::npos);
  return result.status.error().message;
}

}  // namespace

TEST_CASE("columns are found by name, and times are read where they are") {
  constexpr std::string_view kText =
      "\xEF\xBB\xBF"
      "epoch,step, loss ,note,time,save_seconds\r\n"
      "0,10,2.5,\"a, \"\"b\"\"\",100,\r\n"
      "\r\n"
      "0,15,,validation,,\r\n"
      "1,20.0,1.5,,101.5,0.25\r\n"
      "1,30,1.25";
  for (const std::size_t piece : {std::string_view::npos, std::size_t{1}, std::size_t{7}}) {
    const Read result = read(kText, {}, piece);
    must(result.status);
    const auto points = result.series.points();
    REQUIRE(points.size() == 3);
    CHECK(points[0].step == 10);
    CHECK(points[0].time_s == 100);
    CHECK(!points[0].save_s);
    CHECK(points[1].step == 20);
    CHECK(points[1].loss == 1.5);
    CHECK(points[1].save_s == 0.25);
    CHECK(points[2].loss == 1.25);
    CHECK(!points[2].time_s);
  }
  const Read other = read("train_loss,global_step\n3,1\n", {"train_loss", "global_step"});
  must(other.status);
  CHECK(other.series.points()[0].loss == 3);
}

TEST_CASE("a line without its end does not count yet") {
  LossSeries series;
  CsvLosses csv({});
  must(csv.add("step,loss\n1,0.5\n2,0.2", series));
  CHECK(series.points().size() == 1);
  must(csv.add("5\n", series));
  REQUIRE(series.points().size() == 2);
  CHECK(series.points()[1].loss == 0.25);
}

TEST_CASE("hostile files are refused with their line") {
  CHECK(refusal_of("") == "expected a line with the names of the columns, got nothing");
  CHECK(refusal_of("\n\n") == "expected a line with the names of the columns, got nothing");
  CHECK(refusal_of("step,accuracy\n") == R"(line 1: no column "loss"; it has step, accuracy)");
  CHECK(refusal_of("\x1b[2Jloss\n") == R"(line 1: no column "loss"; it has \x1b[2Jloss)");
  CHECK(refusal_of("step,loss\n1,2\n2,nan\n") == R"(line 3: loss: expected a number, got "nan")");
  CHECK(refusal_of("step,loss\n1,inf") == R"(line 2: loss: expected a number, got "inf")");
  CHECK(refusal_of("step,loss\n-1,2\n").starts_with("line 2: step: expected a whole number from 0 to "));
  CHECK(refusal_of("step,loss\n1,1e300\n") == "line 2: step 1: the loss is 1e+300");
  CHECK(refusal_of("step,loss,save_seconds\n1,1,-3\n") == "line 2: step 1: the save took -3 s");
  CHECK(refusal_of("step,loss\n1,\"2\n") ==
        "line 2: a quoted field does not end before a comma or the end of the line");
  CHECK(refusal_of("step,loss\n1,\"2\"x\n") ==
        "line 2: a quoted field does not end before a comma or the end of the line");
  CHECK(refusal_of("step,loss\n" + std::string(weft::limits::kLossLineMax + 1, ' ')) ==
        "line 2: longer than 65536 bytes");
}

TEST_CASE("random bytes are read or refused") {
  std::mt19937_64 random(9);
  constexpr std::string_view kBytes = "0123456789.,,,\"\"-e \n\n\r\tnaifx\xff";
  for (int i = 0; i < 5000; ++i) {
    std::string text = random() % 4 == 0 ? "" : "step,loss,time\n";
    for (std::uint64_t left = random() % 80; left > 0; --left) text += kBytes[random() % kBytes.size()];
    const Read whole = read(text);
    const Read pieces = read(text, {}, 1 + random() % 5);
    CHECK(whole.status.ok() == pieces.status.ok());
    CHECK(whole.series.points().size() == pieces.series.points().size());
  }
}
