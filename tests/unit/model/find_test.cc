#include <doctest/doctest.h>

#include "unit/model/models.h"
#include "weft/model/find.h"

namespace weft {
namespace {

struct Fixture {
  Manifest manifest{
      {testing::opaque("config.json"),
       testing::file_of("m.safetensors", {{"up.weight", DType::f32, {8, 4}}, {"down.bias", DType::bf16, {4}}})},
      {}};
  ArchGraph graph{"bert",
                  {{"embedding", "in", {}, {}, {}, false},
                   {"linear", "up", {{"act", "gelu"}}, {{"weight", "up.weight", DType::f32, {8, 4}}}, {0}, false},
                   {"linear", "down", {}, {{"bias", "down.bias", DType::bf16, {4}}}, {1}, false},
                   {"layer_norm", "norm", {}, {}, {0, 2}, true}}};
  VersionRow version;
  FindSubject subject{version, {"best", "latest"}, &manifest, &graph};

  Fixture() {
    version.model_name = "org/bert";
    version.number = 3;
    version.time_ns = 1'763'683'200'000'000'000ULL;
    version.logical_bytes = logical_bytes(manifest);
    version.message = "tuned, a little";
    version.metrics = {{"loss", "0.25"}, {"note", "good"}};
    version.parents = {{"base", 2}};
  }

  bool finds(std::string_view text) const {
    auto query = Query::parse(text);
    INFO(text);
    REQUIRE_MESSAGE(query.ok(), query.error().message);
    return query->matches(subject);
  }
};

TEST_CASE_FIXTURE(Fixture, "what queries are true") {
  for (const char* text : {"model = org/bert",
                           "model ~ org/*",
                           "model != bert",
                           "tag = best",
                           "tag != worst",
                           "parent = base",
                           "parent = base@2",
                           "parent ~ ba*",
                           "message ~ '*little*'",
                           "version = 3",
                           "version >= 3 and version < 4",
                           "family = bert",
                           "kind = linear",
                           "layer = up",
                           "tensor ~ *.bias",
                           "dtype = BF16",
                           "file = config.json",
                           "bytes > 100",
                           "bytes < 1Ki",
                           "parameters = 36",
                           "parameters < 1K",
                           "layers = 4",
                           "tensors = 2",
                           "files = 2",
                           "metric.loss < 0.3",
                           "metric.loss = 0.25",
                           "time >= 2025-11-21",
                           "time < 2025-11-21T00:00:01Z",
                           "not version = 4",
                           "version = 4 or version = 3",
                           "(version = 4 or version = 3) and tag = best",
                           "version = 3 or version = 4 and tag = worst",
                           "not not tag = best",
                           "has linear",
                           "has linear[8,4]",
                           "has linear[*,4]:F32",
                           "has linear[4]:BF16",
                           "has embedding -> linear -> linear -> layer_norm",
                           "has embedding -> layer_norm",
                           "has embedding --> linear@down --> layer_norm",
                           "has *{act=g*} -> linear",
                           "has linear@up -> *@d*",
                           "has l?near->linear"})
    CHECK_MESSAGE(finds(text), text);
}

TEST_CASE_FIXTURE(Fixture, "what queries are false") {
  for (const char* text : {"model = bert",
                           "model ~ bert",
                           "tag != best",
                           "parent = base@1",
                           "parent = bas",
                           "version > 3",
                           "dtype = F16",
                           "tensor = weight",
                           "metric.loss > 0.3",
                           "metric.note = 1",
                           "metric.note != 1",
                           "metric.unknown < 1",
                           "time < 2025-11-21",
                           "has linear[4,8]",
                           "has linear[8]",
                           "has linear:F16",
                           "has linear -> embedding",
                           "has embedding -> linear@down",
                           "has layer_norm --> *",
                           "has linear{act=relu}",
                           "has conv_2d or tag = worst",
                           "not (tag = best)"})
    CHECK_FALSE_MESSAGE(finds(text), text);
}

TEST_CASE("errors point at the column") {
  struct Wrong {
    const char* text;
    const char* column;
  };
  for (const Wrong& wrong : std::initializer_list<Wrong>{{"", "column 1:"},
                                                         {"modle = x", "column 1:"},
                                                         {"model x", "column 7:"},
                                                         {"model = \u00e9\u4e16 and x", "column 16:"},
                                                         {"model =", "column 8:"},
                                                         {"model < x", "column 7:"},
                                                         {"version ~ 3", "column 9:"},
                                                         {"version = x", "column 11:"},
                                                         {"time > yesterday", "column 8:"},
                                                         {"time > 2026-02-30", "column 8:"},
                                                         {"(tag = a", "column 9:"},
                                                         {"tag = a)", "column 8:"},
                                                         {"tag = a tag = b", "column 9:"},
                                                         {"tag = 'a", "column 7:"},
                                                         {"has", "column 4:"},
                                                         {"has linear[", "column 12:"},
                                                         {"has linear[8,", "column 14:"},
                                                         {"has linear:F33", "column 12:"},
                                                         {"has linear ->", "column 14:"},
                                                         {"has linear{act}", "column 15:"},
                                                         {"tag = a and", "column 12:"},
                                                         {"not", "column 4:"},
                                                         {"metric. = 1", "column 1:"},
                                                         {"bytes > 1X", "column 9:"}}) {
    CAPTURE(wrong.text);
    auto query = Query::parse(wrong.text);
    REQUIRE_FALSE(query.ok());
    CHECK(query.error().code == Errc::invalid);
    CHECK_MESSAGE(query.error().message.starts_with(wrong.column), query.error().message);
  }
}

TEST_CASE("a query that is too deep or too long is refused") {
  CHECK_FALSE(Query::parse(std::string(1000, '(') + "tag = a").ok());
  std::string nots;
  for (int i = 0; i < 1000; ++i) nots += "not ";
  CHECK_FALSE(Query::parse(nots + "tag = a").ok());
  CHECK_FALSE(Query::parse("tag = " + std::string(1 << 20, 'a')).ok());
}

TEST_CASE("facts alone need no manifest") {
  CHECK_FALSE(Query::parse("model = a and (tag = b or metric.x > 1) and time > 2026-01-01")->needs_manifest());
  CHECK(Query::parse("model = a and not dtype = F32")->needs_manifest());
  CHECK(Query::parse("has linear")->needs_manifest());
}

}  // namespace
}  // namespace weft
