#include "endpoint/hub_route.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "testing.h"

namespace weft {
namespace {

using What = HubRoute::What;
using testing::must;

std::vector<HubRoute> routes(std::string_view raw) {
  return hub_routes(must(parse_http_path(raw)));
}

// Returns the only route of a path.
HubRoute route(std::string_view raw) {
  auto all = routes(raw);
  REQUIRE(all.size() == 1);
  return all.front();
}

TEST_CASE("each request of a client has a route") {
  struct Row {
    std::string path;
    What what;
    std::string name, revision, file;
    VersionKind kind = VersionKind::model;
  };
  for (const Row& row : std::vector<Row>{
           {"/api/models/org/m/revision/main", What::info, "org/m", "main", ""},
           {"/api/models/m/revision/refs%2Fpr%2F1", What::info, "m", "refs/pr/1", ""},
           {"/api/models/org/m/tree/main", What::tree, "org/m", "main", ""},
           {"/api/models/org/m/tree/main/", What::tree, "org/m", "main", ""},
           {"/api/models/org/m/tree/main/a/b%20c", What::tree, "org/m", "main", "a/b c"},
           {"/api/models/org/m/tree/main/a%2Fb", What::tree, "org/m", "main", "a/b"},
           {"/api/models/org/m/paths-info/prod", What::paths, "org/m", "prod", ""},
           {"/api/datasets/org/d/paths-info/prod", What::paths, "org/d", "prod", "", VersionKind::dataset},
           {"/api/datasets/org/d/tree/1/x", What::tree, "org/d", "1", "x", VersionKind::dataset},
           {"/org/m/resolve/main/config.json", What::file, "org/m", "main", "config.json"},
           {"/m/resolve/main/a/b%23c", What::file, "m", "main", "a/b#c"},
           {"/m/resolve/main/", What::file, "m", "main", ""},
           {"/org/m/resolve//x", What::file, "org/m", "", "x"},
       }) {
    CAPTURE(row.path);
    const HubRoute got = route(row.path);
    CHECK(got.what == row.what);
    CHECK(got.repository == HubName{row.name, row.kind});
    CHECK(got.revision == row.revision);
    CHECK(got.path == row.file);
  }
}

TEST_CASE("a name of two words comes before one of one word") {
  const auto refs = routes("/api/models/a/refs");
  REQUIRE(refs.size() == 2);
  CHECK(refs[0].repository.name == "a/refs");
  CHECK(refs[0].what == What::info);
  CHECK(refs[1].repository.name == "a");
  CHECK(refs[1].what == What::refs);
  const auto data = routes("/datasets/d/resolve/main/x");
  REQUIRE(data.size() == 2);
  CHECK(data[0].repository == HubName{"d", VersionKind::dataset});
  CHECK(data[1].repository == HubName{"datasets/d", VersionKind::model});
}

TEST_CASE("other paths have no route") {
  for (const char* path : {"/",
                           "/api",
                           "/api/models",
                           "/api/models/",
                           "/api/models//",
                           "/api/models/a/b/c",
                           "/api/models/a/b/tree",
                           "/api/models/a/b/revision",
                           "/api/models/a/b/revision/x/y",
                           "/api/models/a/b/refs/x",
                           "/api/models/-a/b",
                           "/api/models/a--b",
                           "/api/models/a+b",
                           "/api/models/a/b.git",
                           "/api/models/a%20b",
                           "/api/spaces/a/b",
                           "/a/b",
                           "/a/resolve",
                           "/a/resolve/main",
                           "/a/b/resolve/main",
                           "/a/b/c/resolve/main/x",
                           "/a/b/blob/main/x",
                           "//resolve/x/y",
                           "/api/whoami-v2",
                           "/metrics"}) {
    CAPTURE(path);
    CHECK(routes(path).empty());
  }
}

}  // namespace
}  // namespace weft
