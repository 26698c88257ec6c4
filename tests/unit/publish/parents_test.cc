#include <doctest/doctest.h>
#include <fmt/core.h>

#include "fakes/node_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

struct Family : Fixture {
  // Writes tensors of 4 KiB. Each element of `parts` determines the content of one tensor.
  void write(const std::string& name, const std::vector<std::uint64_t>& parts) {
    std::vector<NamedTensor> tensors;
    for (std::size_t i = 0; i < parts.size(); ++i)
      tensors.push_back({fmt::format("t{}", i), "F32", {1024}, random_bytes(4096, parts[i])});
    write_file(dir / name + "/model.safetensors", safetensors_file(tensors));
  }
  VersionRow publish_parts(const std::string& name, const std::vector<std::uint64_t>& parts,
                           const std::vector<std::string>& parents = {}) {
    write("source", parts);
    ImportOptions options;
    options.paths = {dir / "source"};
    options.name = name;
    options.parents = parents;
    options.find_parent = find_part;
    auto report = import_paths(*store, options, no_progress());
    if (!report.ok()) FAIL(report.error().message);
    return report->outcome.version;
  }
  std::optional<double> find_part = kFindParentPart;
};

std::string edges(const VersionRow& row) {
  std::string out;
  for (const ParentRef& parent : row.parents)
    out += fmt::format("{}@{} {} {} {}\n", parent.model, parent.number, parent.declared ? "declared" : "found",
                       parent.same_tensors, parent.same_bytes);
  for (const std::string& name : row.elsewhere) out += "elsewhere " + name + "\n";
  return out;
}

VersionRow version_of(Snapshot& snapshot, const std::string& name, std::uint64_t number) {
  const auto model = snapshot.model(name);
  REQUIRE(model.ok());
  auto row = snapshot.version(model->id, number);
  REQUIRE(row.ok());
  return *row;
}

}  // namespace

TEST_CASE("the version that shares most bytes is found, if it shares more than the part asked for") {
  Family f;
  CHECK(edges(f.publish_parts("base", {1, 2, 3, 4})).empty());
  f.publish_parts("far", {1, 2, 7, 8});
  f.publish_parts("other", {11, 12, 13, 14});
  CHECK(edges(f.publish_parts("child", {1, 2, 3, 9})) == "base@1 found 3 12288\n");
  CHECK(edges(f.publish_parts("half", {11, 12, 21, 22})).empty());  // shares no more than half
  f.find_part = 0.49;
  CHECK(edges(f.publish_parts("less", {13, 14, 23, 24})) == "other@1 found 2 8192\n");
  f.find_part = 0;
  CHECK(edges(f.publish_parts("least", {31, 32, 33, 22})) == "half@1 found 1 4096\n");
  f.find_part = std::nullopt;
  CHECK(edges(f.publish_parts("none", {1, 2, 3, 41})).empty());
}

TEST_CASE("of equal candidates the newest version of the model is the parent, else the oldest version") {
  Family f;
  f.publish_parts("a", {1, 2, 3, 4});
  f.publish_parts("b", {1, 2, 3, 5}, {"a"});
  f.publish_parts("b", {1, 2, 3, 6}, {"a"});
  CHECK(edges(f.publish_parts("c", {1, 2, 3, 7})) == "a@1 found 3 12288\n");
  CHECK(edges(f.publish_parts("b", {1, 2, 3, 8})) == "b@2 found 3 12288\n");
}

TEST_CASE("removed versions are nobody's parent, and names do not matter") {
  Family f;
  f.publish_parts("a", {1, 2, 3, 4});
  f.publish_parts("a", {1, 2, 3, 5}, {"a@1"});
  REQUIRE(f.store->remove_version("a", 2).ok());
  CHECK(edges(f.publish_parts("c", {5, 3, 2, 1})) == "a@1 found 3 12288\n");
}

TEST_CASE("the nearest is found in a long chain whose common tensors have very many holders") {
  Family f;
  std::vector<std::uint64_t> parts = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::vector<std::uint64_t>> chain;
  for (std::uint64_t n = 0; n < 300; ++n) {
    parts[n % 4] = 1000 + n;  // four parts change in turn, the others stay
    chain.push_back(parts);
    f.publish_parts("chain", parts, n == 0 ? std::vector<std::string>{} : std::vector<std::string>{"chain"});
  }
  parts = chain[149];
  parts[3] = 5000;
  CHECK(edges(f.publish_parts("branch", parts)).starts_with("chain@150 found 7 "));
}

TEST_CASE("declared parents say what they share, be it nothing") {
  Family f;
  f.publish_parts("a", {1, 2});
  f.publish_parts("b", {3, 4});
  CHECK(edges(f.publish_parts("c", {1, 5}, {"b", "a"})) == "b@1 declared 0 0\na@1 declared 1 4096\n");
}

TEST_CASE("cards and adapters declare parents that are stored; other names are kept as they are") {
  Family f;
  f.publish_parts("org/base", {1, 2, 3, 4});
  f.publish_parts("org/base", {5, 6, 7, 8});
  f.publish_parts("org/near", {1, 2, 3, 9});
  auto publish = [&](const std::string& name, const std::string& card, const std::vector<std::string>& parents = {}) {
    write_file(f.dir / "source/README.md", "---\nbase_model: " + card + "\n---\n");
    return edges(f.publish_parts(name, {1, 2, 3, 10}, parents));
  };
  CHECK(publish("a", "org/base") == "org/base@1 declared 3 12288\n");  // the version that shares the most
  CHECK(publish("b", "[org/base@2, not/here, ../../x, org/near]") ==
        "org/base@2 declared 0 0\norg/near@1 declared 3 12288\nelsewhere not/here\nelsewhere ../../x\n");
  CHECK(publish("c", "org/base", {"org/base@2"}) == "org/base@2 declared 0 0\n");
  CHECK(publish("d", "not/here") == "a@1 found 4 16384\nelsewhere not/here\n");
  REQUIRE(f.store->remove_version("org/near", 1).ok());
  CHECK(publish("e", "org/near@1").find("elsewhere org/near@1\n") != std::string::npos);
  write_file(f.dir / "source/adapter_config.json", R"({"base_model_name_or_path": "org/base"})");
  f.write("source", {77});
  CHECK(edges(f.publish_parts("adapter", {77})).find("org/base@2 declared 0 0\n") != std::string::npos);
}

TEST_CASE("a base that two files name is one parent, and the file that names a version decides") {
  Family f;
  f.publish_parts("org/base", {1, 2});
  f.publish_parts("org/base", {3, 4});
  auto publish = [&](const std::string& card, const std::string& config) {
    write_file(f.dir / "source/README.md", "---\nbase_model: " + card + "\n---\n");
    write_file(f.dir / "source/adapter_config.json", R"({"base_model_name_or_path": ")" + config + "\"}");
    return edges(f.publish_parts("adapter", {77}));
  };
  f.find_part = std::nullopt;
  CHECK(publish("/data/base", "/data/base") == "elsewhere /data/base\n");
  CHECK(publish("org/base", "org/base@1") == "org/base@1 declared 0 0\n");
}

TEST_CASE("a model card that names its own model or a child makes no cycle") {
  Family f;
  auto publish = [&](const std::string& name, const std::vector<std::uint64_t>& parts, const std::string& base) {
    write_file(f.dir / "source/README.md", "---\nbase_model: " + base + "\n---\n");
    return f.publish_parts(name, parts);
  };
  CHECK(edges(publish("self", {1, 2}, "self")) == "elsewhere self\n");  // no other version has that name yet
  CHECK(edges(publish("self", {1, 3}, "self")) == "self@1 declared 1 4096\n");
  CHECK(edges(publish("self", {1, 4}, "self@3")).ends_with("elsewhere self@3\n"));
  f.find_part = std::nullopt;
  CHECK(edges(publish("left", {5, 6}, "right")) == "elsewhere right\n");
  CHECK(edges(publish("right", {5, 7}, "left")) == "left@1 declared 1 4096\n");
  CHECK(edges(publish("left", {5, 8}, "right")) == "right@1 declared 1 4096\n");
  // A parent is always older than its child, whatever a card declares.
  for (const auto& one : std::vector<std::pair<std::string, unsigned>>{
           {"self", 1}, {"self", 2}, {"self", 3}, {"left", 1}, {"right", 1}, {"left", 2}}) {
    CAPTURE(one.first);
    auto snapshot = f.store->snapshot();
    REQUIRE(snapshot.ok());
    const auto row = version_of(**snapshot, one.first, one.second);
    for (const ParentRef& parent : row.parents) CHECK(version_of(**snapshot, parent.model, parent.number).id < row.id);
  }
}

TEST_CASE("many bases and nonsense never fail a publish") {
  Family f;
  std::string card = "---\nbase_model:\n";
  for (int i = 0; i < 500; ++i) card += fmt::format("- \"name {} with blanks/@@/\"\n", i);
  write_file(f.dir / "source/README.md", card + "---\n");
  write_file(f.dir / "source/adapter_config.json", std::string(10'000, '{'));
  CHECK(f.publish_parts("m", {1}).elsewhere.size() == 64);
}
