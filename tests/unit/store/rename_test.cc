// Models that get another name: what stays, what is free, what is refused, and what a rebuild makes of it.
#include <doctest/doctest.h>

#include <filesystem>

#include <fmt/core.h>

#include "catalog/journal.h"
#include "index_support.h"

using namespace weft;
using namespace weft::testing;

namespace {

// org/a has two versions and a tag; b@1 is a child of org/a@1.
void fill(StoreImpl& store) {
  must_publish(store, "org/a", {{1, 2}, {3}}, {{}, {"best"}});
  must_publish(store, "org/a", {{1, 4}});
  must_publish(store, "b", {{2, 5}}, {{{"org/a", 1, true, 1, 1002}}, {}});
}

ModelRow model_row(Store& store, std::string_view name) {
  return store.snapshot().value()->model(name).value();
}

VersionRow version_row(Store& store, std::string_view name, std::uint64_t number) {
  const auto snapshot = store.snapshot().value();
  return snapshot->version(snapshot->model(name).value().id, number).value();
}

std::string error_of(Store& store, std::string_view spec) {
  return resolve_version(*store.snapshot().value(), spec).error().message;
}

// Returns what a rebuild makes of the journal. fsck finds no difference before and after.
std::string rebuilt(const std::string& path) {
  CHECK(open_store(path)->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  std::filesystem::remove_all(path + "/index");
  CHECK(Store::rebuild(path, decode, no_progress()).value().problems == std::vector<std::string>{});
  CHECK(open_store(path)->fsck({}, decode, no_progress()).value().problems == std::vector<std::string>{});
  return dump(*Store::open(path, {}).value(), false);
}

}  // namespace

TEST_CASE("a renamed model keeps its versions, and lineage leads to it") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  const ModelRow before = model_row(*store, "org/a");
  const VersionRow first = version_row(*store, "org/a", 1);
  const std::uint64_t begin = store->snapshot().value()->journal_end();
  REQUIRE(store->rename_model("org/a", "new/org/c").ok());

  const ModelRow after = model_row(*store, "new/org/c");
  CHECK(after.id == before.id);
  CHECK(after.ino == before.ino);
  CHECK(after.live == 2);
  CHECK(after.tags == 1);
  CHECK(after.next_number == 3);
  VersionRow row = version_row(*store, "new/org/c", 1);
  CHECK(row.id == first.id);
  CHECK(row.model_name == "new/org/c");
  CHECK(row.time_ns == first.time_ns);
  CHECK(row.message == first.message);
  row = version_row(*store, "b", 1);
  REQUIRE(row.parents.size() == 1);
  CHECK(spec_of(row.parents[0].model, row.parents[0].number) == "new/org/c@1");
  CHECK(row.parents[0].id == first.id);

  const auto snapshot = store->snapshot().value();
  CHECK(snapshot->last_rename() == snapshot->lineage_clock());
  CHECK(snapshot->namespace_entry("new/org", "c").value().ino == before.ino);
  CHECK(snapshot->namespace_entry("", "org").error().code == Errc::not_found);
  CHECK(snapshot->inode(before.ino).value().name == "new/org/c");
  CHECK(snapshot->model("org/a").error().message == "org/a was renamed to new/org/c");
  CHECK(error_of(*store, "org/a@1") == "org/a was renamed to new/org/c");
  CHECK(store->set_tag("org/a", "x", 1).error().message == "org/a was renamed to new/org/c");

  const auto commits = store->commits(begin).value().commits;
  REQUIRE(commits.size() == 1);
  CHECK(commits[0].kind == Commit::Kind::rename);
  CHECK(commits[0].model == "org/a");
  CHECK(commits[0].to == "new/org/c");
}

TEST_CASE("a rebuilt index has the names of all renames, and the removals before and after them") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  REQUIRE(store->remove_version("org/a", 2).ok());
  REQUIRE(store->rename_model("org/a", "c").ok());
  must_publish(*store, "c", {{6}}, {{{"b", 1}}, {"late"}});
  must_publish(*store, "org/a", {{7}}, {{{"c", 1}}, {"best"}});
  REQUIRE(store->remove_version("c", 1).ok());
  REQUIRE(store->rename_model("b", "org/b").ok());
  REQUIRE(store->rename_model("c", "d").ok());
  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);
  store = open_store(test.path);
  CHECK(version_row(*store, "org/a", 3).parents.at(0).model == "d");
  CHECK(version_row(*store, "d", 3).parents.at(0).model == "org/b");
}

TEST_CASE("the former name is free, and its numbers continue") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  REQUIRE(store->rename_model("org/a", "c").ok());
  const VersionRow next = must_publish(*store, "org/a", {{8}}).version;
  CHECK(next.number == 3);
  CHECK(next.model != model_row(*store, "c").id);
  CHECK(must_publish(*store, "c", {{9}}).version.number == 3);
  CHECK(error_of(*store, "org/a@2") == "org/a@2 was renamed to c@2");
  CHECK(error_of(*store, "org/a@9") == "org/a@9 is not there; there are 3");
  {
    const auto snapshot = store->snapshot().value();
    const auto page = snapshot->versions(next.model).value();
    REQUIRE(page.rows.size() == 1);
    CHECK(page.rows[0].number == 3);
  }
  REQUIRE(store->remove_version("org/a", 3).ok());
  CHECK(model_row(*store, "org/a").latest == 0);
  CHECK(must_publish(*store, "org/a", {{10}}).version.number == 4);
  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a name that another model has or had is refused, and so is one that hides a model") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  must_publish(*store, "gone", {{11}});
  REQUIRE(store->remove_version("gone", 1).ok());
  const auto refused = [&](std::string_view model, std::string_view to, Errc code) {
    const std::string before = dump(*store);
    CHECK(store->rename_model(model, to).error().code == code);
    CHECK(dump(*store) == before);
  };
  refused("nosuch", "x", Errc::not_found);
  refused("gone", "x", Errc::not_found);
  refused("b", "b", Errc::invalid);
  refused("b", "7", Errc::invalid);
  refused("b", "a//b", Errc::invalid);
  refused("b", "org/a", Errc::exists);
  refused("b", "gone", Errc::exists);
  refused("b", "org", Errc::exists);
  refused("b", "org/a/b", Errc::exists);
  REQUIRE(store->rename_model("org/a", "c").ok());
  refused("b", "org/a", Errc::exists);
  must_publish(*store, "org/a", {{12}});
  refused("c", "org/a", Errc::exists);
}

TEST_CASE("a model gets its former name back, and may move into a directory of its name and out again") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  for (const auto& renamed :
       {std::pair("org/a", "org"), {"org", "org/x/y"}, {"org/x/y", "org/x"}, {"org/x", "org/a"}}) {
    const auto [from, to] = renamed;
    CAPTURE(renamed.second);
    REQUIRE(store->rename_model(from, to).ok());
    CHECK(version_row(*store, "b", 1).parents.at(0).model == to);
    CHECK(error_of(*store, from) == fmt::format("{} was renamed to {}", from, to));
  }
  CHECK(must_publish(*store, "org/a", {{13}}).version.number == 3);
  const std::string before = dump(*store, false);
  store.reset();
  CHECK(rebuilt(test.path) == before);
}

TEST_CASE("a publish that chose its parents before a rename names them by the new name") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  REQUIRE(store->rename_model("org/a", "c").ok());
  CHECK(must_publish(*store, "child", {{1}}, {{{"org/a", 1}}, {}}).version.parents.at(0).model == "c");
  must_publish(*store, "org/a", {{14}});
  CHECK(must_publish(*store, "child", {{2}}, {{{"org/a", 2}}, {}}).version.parents.at(0).model == "c");
  CHECK(must_publish(*store, "child", {{3}}, {{{"org/a", 3}}, {}}).version.parents.at(0).model == "org/a");
}

TEST_CASE("a data set keeps its kind under another name") {
  TestStore test;
  auto store = open_store(test.path);
  fill(*store);
  REQUIRE(store->rename_model("b", "set").ok());
  CHECK(model_row(*store, "set").kind == VersionKind::model);
  CHECK(store->snapshot().value()->namespace_entry("", "set").value().models == 1);
}

TEST_CASE("if the record of a rename is lost, a later publish of the new name brings the rename back") {
  TestStore test;
  const std::string log = test.path + "/journal/0000000000000001.log";
  const std::string copy = test.path + "/journal/0000000000000001.copy";
  std::uint64_t lost = 0;
  {
    auto store = open_store(test.path);
    fill(*store);
    lost = std::filesystem::file_size(log);
    REQUIRE(store->rename_model("org/a", "c").ok());
    must_publish(*store, "c", {{6}});
    must_publish(*store, "org/a", {{7}});
  }
  for (const auto& [file, at] : {std::pair(log, lost + 40), {copy, kMarksBytes + lost + 40}}) {
    std::string bytes = read_text(file);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(file, bytes);
  }
  std::filesystem::remove_all(test.path + "/index");
  CHECK(Store::rebuild(test.path, decode, no_progress(), {false, {}}).value().refused);
  CHECK(Store::rebuild(test.path, decode, no_progress(), {true, {}}).value().problems == std::vector<std::string>{});
  const std::string after = dump(*Store::open(test.path, {}).value(), false);
  auto store = open_store(test.path);
  CHECK(model_row(*store, "c").live == 3);
  CHECK(version_row(*store, "b", 1).parents.at(0).model == "c");
  CHECK(model_row(*store, "org/a").live == 1);
  store.reset();
  CHECK(rebuilt(test.path) == after);
}
