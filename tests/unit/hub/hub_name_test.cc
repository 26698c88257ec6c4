#include "hub/hub_name.h"

#include <doctest/doctest.h>

#include <string>

#include "base/limits.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

TEST_CASE("hub name: models and data sets, with and without a revision") {
  const HubName bert{"org/bert", VersionKind::model};
  const HubName c4{"org/c4", VersionKind::dataset};
  CHECK(must(parse_hub_source("hf:org/bert")) == HubSource{bert, "main"});
  CHECK(must(parse_hub_source("hf:org/bert@v1.0")) == HubSource{bert, "v1.0"});
  CHECK(must(parse_hub_source("hf:org/bert@refs/pr/7")) == HubSource{bert, "refs/pr/7"});
  CHECK(must(parse_hub_source("hf:org/bert@a@b")).revision == "a@b");
  CHECK(must(parse_hub_source("hf:datasets/org/c4@x")) == HubSource{c4, "x"});
  CHECK(must(parse_hub_source("hf:org/c4", VersionKind::dataset)) == HubSource{c4, "main"});
  CHECK(must(parse_hub_source("hf:datasets/org/c4", VersionKind::dataset)) == HubSource{c4, "main"});
  CHECK(must(parse_hub_source("hf:gpt2")).repository.name == "gpt2");
  CHECK(must(parse_hub_source("hf:datasets/squad")).repository == HubName{"squad", VersionKind::dataset});
  CHECK(text_of(bert) == "hf:org/bert");
  CHECK(text_of(c4) == "hf:datasets/org/c4");
}

TEST_CASE("hub name: the characters and bounds of the hub") {
  for (const std::string& name : {std::string("a"), std::string("A_b.c-d/E_f.g-h"), std::string("_a/b_"),
                                  std::string("7/8"), std::string(96, 'a') + "/" + std::string(96, 'b')}) {
    CAPTURE(name);
    CHECK(check_hub_name(name).ok());
  }
  for (const std::string& name :
       {std::string(""), std::string("/"), std::string("a/"), std::string("/a"), std::string("a/b/c"),
        std::string("a--b"), std::string("a/b..c"), std::string("a/b.git"), std::string("-a"), std::string("a/.b"),
        std::string("a/b-"), std::string("a/b."), std::string("a b"), std::string("a/\xc3\xa4"), std::string("a/b+c"),
        std::string("a/..."), std::string("a/b%2f"), std::string("a\nb"), std::string(97, 'a')}) {
    CAPTURE(name);
    const Status status = check_hub_name(name);
    REQUIRE_FALSE(status.ok());
    CHECK(status.error().code == Errc::invalid);
    CHECK(status.error().message.find('\n') == std::string::npos);
  }
}

TEST_CASE("hub name: revisions that git refuses") {
  for (const char* revision :
       {"main", "refs/pr/1", "v1.0-rc", "feature/a_b", "0123456789012345678901234567890123456789"})
    CHECK(check_hub_revision(revision).ok());
  for (const std::string& revision : {std::string(""),
                                      std::string("/a"),
                                      std::string("a/"),
                                      std::string("a//b"),
                                      std::string("a..b"),
                                      std::string("."),
                                      std::string(".."),
                                      std::string("../../api"),
                                      std::string("a."),
                                      std::string(".a"),
                                      std::string("a b"),
                                      std::string("a\tb"),
                                      std::string("a\r\nb"),
                                      std::string("a~1"),
                                      std::string("a^"),
                                      std::string("a:b"),
                                      std::string("a?b"),
                                      std::string("a*"),
                                      std::string("a["),
                                      std::string("a\\b"),
                                      std::string("a\x7f"),
                                      std::string("\xff"),
                                      std::string(limits::kHubRevisionMax + 1, 'a')}) {
    CAPTURE(revision);
    CHECK_FALSE(check_hub_revision(revision).ok());
  }
}

TEST_CASE("hub name: other sources are refused") {
  for (const char* text : {"", "org/bert", "hf:", "hf:@main", "hf:org/bert@", "hf://org/bert", "hf:datasets/",
                           "https://huggingface.co/org/bert", "HF:org/bert", "hf:spaces/org/app"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_hub_source(text).ok());
  }
}

TEST_CASE("hub name: URLs, with a revision as one component") {
  const HubUrls model("https://hub.example", {"org/bert", VersionKind::model});
  CHECK(model.page() == "https://hub.example/org/bert");
  CHECK(model.revision("main") == "https://hub.example/api/models/org/bert/revision/main");
  CHECK(model.revision("refs/pr/1") == "https://hub.example/api/models/org/bert/revision/refs%2Fpr%2F1");
  CHECK(model.tree("a+b") == "https://hub.example/api/models/org/bert/tree/a%2Bb?recursive=true");
  CHECK(model.file("main", "sub/a b#\xc3\xa4.bin") ==
        "https://hub.example/org/bert/resolve/main/sub/a%20b%23%C3%A4.bin");
  const HubUrls data("http://127.0.0.1:7/hub", {"c4", VersionKind::dataset});
  CHECK(data.page() == "http://127.0.0.1:7/hub/datasets/c4");
  CHECK(data.tree("main") == "http://127.0.0.1:7/hub/api/datasets/c4/tree/main?recursive=true");
  CHECK(data.file("v%1", "x?y") == "http://127.0.0.1:7/hub/datasets/c4/resolve/v%251/x%3Fy");
}

TEST_CASE("hub name: a branch and a tag become a tag, a commit and refs/pr/1 do not") {
  CHECK(tag_of_revision("main") == "main");
  CHECK(tag_of_revision("v1.0") == "v1.0");
  for (const std::string& other : {std::string(40, 'a'), std::string("refs/pr/1"), std::string("a/b"),
                                   std::string("latest"), std::string("12"), std::string("_x")}) {
    CAPTURE(other);
    CHECK_FALSE(tag_of_revision(other));
  }
}
