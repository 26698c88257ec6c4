#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "testing.h"
#include "weft/model/format.h"

namespace weft {
namespace {

using Names = std::vector<std::string>;
using testing::MemorySource;

Names card(const std::string& text) {
  MemorySource source(text);
  return named_bases("README.md", source);
}

Names matter(const std::string& lines) {
  return card("---\n" + lines + "---\n# A model\n");
}

Names adapter(const std::string& text) {
  MemorySource source(text);
  return named_bases("adapter_config.json", source);
}

// Malformed cards: they must neither fail nor name a base.
const char* const kNonsense[] = {
    "base_model: {a: b}\n",        "base_model: &anchor a\n",  "base_model: *alias\n",
    "base_model: !!str a\n",       "base_model: |\n  a\n",     "base_model: >\n  a\n",
    "base_model: \"open\n",        "base_model: 'open\n",      "base_model:\n",
    "base_model:\n  key: value\n", "base_model: [\n",          "base_model: [a: {\n",
    "base_model: ['open, b]\n",    "  base_model: indented\n", "# base_model: comment\n",
    "base_models: other\n",        "base_model : a\n",         "tags:\n- base_model: nested\n",
    "base_model: \"a\x01\"\n",     "base_model: \xff\xfe\n",   "base_model: ''\n",
    "base_model: - a\n",           "base_model:\n-a\n",        "\t\n",
};

}  // namespace

TEST_CASE("a model card names its base models") {
  CHECK(matter("base_model: org/base\n") == Names{"org/base"});
  CHECK(matter("license: mit\nbase_model:   \"org/base\"   # the big one\ntags: [x]\n") == Names{"org/base"});
  CHECK(matter("base_model: org/base # a comment\r\n") == Names{"org/base"});
  CHECK(matter("base_model: 'it''s'\n") == Names{"it's"});
  CHECK(matter("base_model: \"a\\\"b\"\n") == Names{"a\"b"});
  CHECK(matter("base_model:\n- org/a\n- \"org/b\"\n\n# and\n  - org/c # last\nlicense: mit\n- org/d\n") ==
        Names{"org/a", "org/b", "org/c"});
  CHECK(matter("base_model: [org/a, 'org/b' , \"c,d\"]\n") == Names{"org/a", "org/b", "c,d"});
  CHECK(matter("base_model: [org/a,\n  org/b\n  ]\n") == Names{"org/a", "org/b"});
  CHECK(matter("base_model: [org/a, org/a]\n") == Names{"org/a"});
  CHECK(matter("base_model: [null, ~, 'null', org/a]\n") == Names{"null", "org/a"});
  CHECK(matter("base_model: null\n").empty());
  CHECK(matter("base_model: ~ # none\n").empty());
  CHECK(card("\xef\xbb\xbf---\r\nbase_model: a\r\n...\r\n") == Names{"a"});
}

TEST_CASE("a card without front matter, or with nonsense in it, names nothing") {
  CHECK(card("").empty());
  CHECK(card("---\nbase_model: a\n").empty());  // the front matter has no end
  CHECK(card("# Title\n---\nbase_model: a\n---\n").empty());
  CHECK(card("---").empty());
  for (const std::string lines : kNonsense) {
    CAPTURE(lines);
    CHECK(matter(lines).empty());
  }
}

TEST_CASE("huge cards and lists are bounded") {
  std::string many = "base_model:\n";
  for (int i = 0; i < 1000; ++i) many += "- org/m" + std::to_string(i) + "\n";
  CHECK(matter(many).size() == limits::kParentsMax);
  CHECK(matter("base_model: " + std::string(limits::kBaseNameMax, 'a') + "\n").size() == 1);
  CHECK(matter("base_model: " + std::string(limits::kBaseNameMax + 1, 'a') + "\n").empty());
  CHECK(card("---\nbase_model: a\n# " + std::string(1U << 20U, 'x') + "\n---\n").empty());
  CHECK(card("---\nbase_model: a\n---\n" + std::string(1U << 20U, 'x')) == Names{"a"});
  CHECK(matter("base_model: [" + std::string(60'000, ',') + "]\n").empty());
}

TEST_CASE("an adapter's configuration names its base model") {
  CHECK(adapter(R"({"peft_type": "LORA", "base_model_name_or_path": "org/base", "r": 8})") == Names{"org/base"});
  CHECK(adapter(R"({"base_model_name_or_path": "/srv/models/base"})") == Names{"/srv/models/base"});
  for (const char* text :
       {"", "[]", "{", "null", R"({"base_model_name_or_path": null})", R"("base_model_name_or_path")",
        R"({"base_model_name_or_path": ["a"]})", R"({"a": {"base_model_name_or_path": "b"}})",
        R"({"base_model_name_or_path": "a"} x)", R"({"base_model_name_or_path": "a\u0007"})",
        R"({"base_model_name_or_path": {"base_model_name_or_path": "b"}})"}) {
    CAPTURE(text);
    CHECK(adapter(text).empty());
  }
  CHECK(adapter("{\"base_model_name_or_path\": \"a\", \"x\": \"" + std::string(1U << 20U, 'x') + "\"}").empty());
  CHECK(adapter(std::string(1000, '[')).empty());
}

TEST_CASE("other files name no base") {
  MemorySource source("---\nbase_model: a\n---\n");
  CHECK(named_bases("readme.md", source).empty());
  CHECK(named_bases("docs/README.md", source).empty());
  CHECK(named_bases("config.json", source).empty());
}

}  // namespace weft
