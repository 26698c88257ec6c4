#include <doctest/doctest.h>

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

#include "base/limits.h"
#include "index_support.h"
#include "os/sys.h"
#include "weft/store/walk.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::vector<std::string> names(Snapshot& snapshot, std::string_view prefix) {
  std::vector<std::string> out;
  auto entries = snapshot.namespace_entries(prefix).value().rows;
  for (const NamespaceEntry& entry : entries) out.push_back(entry.component + (entry.is_model ? "" : "/"));
  return out;
}

}  // namespace

TEST_CASE("a store is made once, in an empty directory") {
  TempDir dir;
  CHECK(Store::create(dir / "a", {}).ok());
  CHECK(Store::create(dir / "a", {}).error().code == Errc::exists);
  write_file(dir / "b/file", "x");
  CHECK(Store::create(dir / "b", {}).error().code == Errc::exists);
  CHECK(read_text(dir / "b/file") == "x");
  CHECK(Store::create(dir / "c").ok());
  auto a = Store::open(dir / "a", {}).value();
  auto c = Store::open(dir / "c", {}).value();
  CHECK(a->info().uuid.size() == 36);
  CHECK(a->info().uuid != c->info().uuid);
}

TEST_CASE("opening a path that is no store fails") {
  TempDir dir;
  auto store = Store::open(dir / "nothing", {});
  REQUIRE_FALSE(store.ok());
  CHECK(store.error().code == Errc::not_found);
  write_file(dir / "file", "x");
  CHECK(Store::open(dir / "file", {}).error().code == Errc::not_found);
}

TEST_CASE("the state of an index is constant until the next commit, and never recurs") {
  TestStore test;
  auto writer = open_store(test.path);
  auto reader = Store::open(test.path, {}).value();
  std::vector<IndexState> states;
  const auto look = [&] {
    const IndexState now = reader->state().value();
    CHECK(reader->snapshot().value()->state() == now);
    CHECK(reader->state().value() == now);
    CHECK(std::find(states.begin(), states.end(), now) == states.end());
    states.push_back(now);
  };
  look();
  must_publish(*writer, "m", {{1}});
  look();
  auto kept = reader->snapshot().value();
  REQUIRE(writer->set_tag("m", "t", 1).ok());
  CHECK(kept->state() == states.back());
  kept.reset();
  look();
  REQUIRE(writer->remove_version("m", 1).ok());
  look();
  writer.reset();
  REQUIRE(Store::rebuild(test.path, decode, no_progress()).ok());  // a new file whose transaction numbers restart
  look();
}

TEST_CASE("a publish appears whole") {
  TestStore test;
  auto store = open_store(test.path);
  auto before = store->snapshot().value();
  PublishOutcome outcome = must_publish(*store, "org/model", {{1, 2}, {3, 2}}, {{}, {"best"}});
  CHECK(outcome.made);
  CHECK(outcome.version.number == 1);
  CHECK(outcome.new_bytes == 3006);
  CHECK(outcome.shared_bytes == 1002);
  CHECK(before->models().value().rows.empty());

  auto after = store->snapshot().value();
  CHECK(after->sequence() > before->sequence());
  ModelRow model = after->model("org/model").value();
  CHECK(after->model(model.id).value().name == "org/model");
  CHECK(model.latest == 1);
  VersionRow version = after->version(model.id, 1).value();
  CHECK(version.message == "made by a test");
  CHECK(version.metrics.at(0).second == "0.5");
  CHECK(after->tag(model.id, "best").value().number == 1);
  CHECK(names(*after, "") == std::vector<std::string>{"org/"});
  CHECK(names(*after, "org") == std::vector<std::string>{"model"});
  CHECK(after->namespace_entry("org", "model").value().is_model);
  CHECK(after->namespace_entries("org/model").error().code == Errc::not_found);
  CHECK(after->owned_bytes(version.id, 0).value() == 2003);
  CHECK(after->owned_bytes(version.id, 1).value() == 1003);
  CHECK(after->owned_bytes(version.id, 2).error().code == Errc::not_found);
}

TEST_CASE("inode numbers say what they are") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "org/model", {{1, 1, 2}}, {{}, {"best"}});
  auto snapshot = store->snapshot().value();
  ModelRow model = snapshot->model("org/model").value();
  VersionRow version = snapshot->version(model.id, 1).value();
  LocalRow local = snapshot->local(version.id).value();
  CHECK(snapshot->inode(model.ino).value().kind == InodeKind::model_dir);
  CHECK(snapshot->inode(model.latest_ino).value().kind == InodeKind::latest_link);
  CHECK(snapshot->inode(snapshot->tag(model.id, "best").value().ino).value().name == "best");
  CHECK(snapshot->inode(snapshot->namespace_entry("", "org").value().ino).value().name == "org");
  InodeRow last = snapshot->inode(local.ino_base + local.ino_count - 1).value();
  CHECK(last.version == version.id);
  CHECK(last.base == local.ino_base);
  CHECK(local.view_inos.at(0) == local.view_inos.at(1));
  InodeRow view = snapshot->inode(local.view_inos.at(0)).value();
  CHECK(view.view.content == content_id(1));
  CHECK(view.view_links == 4);
  CHECK(snapshot->inode(kFirstStoredIno - 1).error().code == Errc::not_found);
  CHECK(snapshot->inode(UINT64_MAX).error().code == Errc::not_found);
}

TEST_CASE("equal content is not published twice, and its tags are set all the same") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  PublishOutcome again = must_publish(*store, "m", {{1}}, {{}, {"good"}});
  CHECK_FALSE(again.made);
  CHECK(again.version.number == 1);
  CHECK(again.new_bytes == 0);
  CHECK(store->snapshot().value()->tag(again.version.model, "good").value().number == 1);
  must_publish(*store, "m", {{2}});
  CHECK(must_publish(*store, "m", {{1}}).version.number == 3);  // the newest version differs, so this is a new one
}

TEST_CASE("a name that would hide another is refused") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "a/b", {{1}});
  CHECK(publish(*store, "a", {{2}}).error().code == Errc::exists);
  CHECK(publish(*store, "a/b/c", {{2}}).error().code == Errc::exists);
  CHECK(publish(*store, "a//c", {{2}}).error().code == Errc::invalid);
  CHECK(publish(*store, "a/latest", {{2}}).error().code == Errc::invalid);
  CHECK(publish(*store, std::string("a\0b", 3), {{2}}).error().code == Errc::invalid);
  CHECK(must_publish(*store, "a/c", {{2}}).made);
}

TEST_CASE("a removed version goes, keeps its number, and passes on what it owned") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}, {2}}, {{}, {"one"}});
  must_publish(*store, "m", {{3}, {1}});
  must_publish(*store, "x/y", {{2}});
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(store->remove_version("m", 1).error().code == Errc::not_found);
  auto snapshot = store->snapshot().value();
  ModelRow model = snapshot->model("m").value();
  CHECK(model.latest == 2);
  CHECK(snapshot->tag(model.id, "one").error().code == Errc::not_found);
  VersionRow first = snapshot->version(model.id, 1).value();
  CHECK(first.removed);
  CHECK(first.removed_ns > 0);
  CHECK(snapshot->owned_bytes(first.id, 0).value() == 0);
  CHECK(snapshot->owned_bytes(snapshot->version(model.id, 2).value().id, 1).value() == 1001);
  ModelRow other = snapshot->model("x/y").value();
  CHECK(snapshot->owned_bytes(snapshot->version(other.id, 1).value().id, 0).value() == 1002);
  CHECK(snapshot->local(first.id).ok());  // kept until gc, for open files
  CHECK(store->counts().value().dead_bytes == 0);
  snapshot.reset();

  REQUIRE(store->remove_version("x/y", 1).ok());
  snapshot = store->snapshot().value();
  CHECK(store->counts().value().dead_bytes == 1002);
  CHECK(names(*snapshot, "") == std::vector<std::string>{"m"});
  CHECK(snapshot->model("x/y").value().latest == 0);
  Ino ino = snapshot->model("x/y").value().ino;
  snapshot.reset();
  CHECK(must_publish(*store, "x/y", {{2}}).version.number == 2);
  snapshot = store->snapshot().value();
  CHECK(snapshot->namespace_entry("x", "y").value().ino == ino);
  CHECK(store->counts().value().dead_bytes == 0);
}

TEST_CASE("versions are removed in batches, and one that is not there ends a batch") {
  TestStore test;
  auto store = open_store(test.path);
  std::vector<VersionName> names;
  for (std::uint64_t number = 1; number <= limits::kBatchItems + 4; ++number) {
    must_publish(*store, "m", {{static_cast<unsigned>(number)}});
    names.push_back({"m", number});
  }
  const std::uint64_t before = must(store->snapshot())->sequence();
  CHECK(must(store->remove_versions(names, Tagged::removed)) == limits::kBatchItems);
  CHECK(must(store->snapshot())->sequence() == before + limits::kBatchItems);
  const std::span<const VersionName> rest = std::span(names).subspan(limits::kBatchItems);
  must(store->remove_version("m", rest[2].number));
  CHECK(must(store->remove_versions(rest, Tagged::removed)) == 2);
  CHECK(store->remove_versions(rest.subspan(2), Tagged::removed).error().code == Errc::not_found);
  CHECK(must(store->remove_versions(rest.subspan(3), Tagged::removed)) == 1);
  CHECK(must(must(store->snapshot())->model("m")).latest == 0);
  CHECK(must(store->gc({}, no_progress())).versions_reaped == names.size());
  CHECK(must(store->fsck({}, decode, no_progress())).problems.empty());
}

TEST_CASE("tags move, go, and must name a live version") {
  TestStore test;
  auto store = open_store(test.path);
  ModelId model = must_publish(*store, "m", {{1}}).version.model;
  must_publish(*store, "m", {{2}});
  REQUIRE(store->set_tag("m", "t", 1).ok());
  Ino ino = store->snapshot().value()->tag(model, "t").value().ino;
  REQUIRE(store->set_tag("m", "t", 2).ok());
  CHECK(store->snapshot().value()->tag(model, "t").value().number == 2);
  CHECK(store->snapshot().value()->tag(model, "t").value().ino == ino);
  CHECK(store->set_tag("m", "t", 3).error().code == Errc::not_found);
  CHECK(store->set_tag("m", "3", 1).error().code == Errc::invalid);
  CHECK(store->set_tag("m", "latest", 1).error().code == Errc::invalid);
  CHECK(store->set_tag("n", "t", 1).error().code == Errc::not_found);
  REQUIRE(store->set_tag("m", "t", {}).ok());
  CHECK(store->set_tag("m", "t", {}).error().code == Errc::not_found);
  CHECK(store->snapshot().value()->tags(model).value().rows.empty());
}

TEST_CASE("a protected tag is changed by its owner and by authors who are not bound, on every way") {
  TestStore test;
  auto store = open_store(test.path);
  const Author alice{"alice", "", true}, bob{"bob", "", true}, root{"root", ""};
  const ModelId model = must_publish(*store, "m", {{1}}, {{}, {"t"}}).version.model;
  must_publish(*store, "m", {{2}});
  const auto tag = [&] { return must(must(store->snapshot())->tag(model, "t")); };
  const std::uint64_t set_ns = tag().time_ns;
  CHECK(store->protect_tag("m", "u", true, alice).error().code == Errc::not_found);
  must(store->protect_tag("m", "t", true, alice));
  CHECK(tag().owner == "alice");
  CHECK(tag().time_ns == set_ns);
  const VersionName first{"m", 1};
  CHECK(store->set_tag("m", "t", 2, bob).error().code == Errc::permission);
  CHECK(store->set_tag("m", "t", {}, bob).error().code == Errc::permission);
  CHECK(store->protect_tag("m", "t", false, bob).error().code == Errc::permission);
  CHECK(store->rename_model("m", "n", bob).error().code == Errc::permission);
  CHECK(store->remove_versions({&first, 1}, Tagged::removed, bob).error().code == Errc::permission);
  CHECK(tag().number == 1);
  must(store->set_tag("m", "t", 2, root));
  CHECK(tag().owner == "alice");
  must(store->rename_model("m", "n", alice));
  CHECK(tag().owner == "alice");
  FsckOptions rebuild;
  rebuild.rebuild = true;
  must(store->fsck(rebuild, decode, no_progress()));
  CHECK(tag().owner == "alice");
  must(store->protect_tag("n", "t", false, alice));
  must(store->set_tag("n", "t", 1, bob));
  CHECK(must(store->fsck({}, decode, no_progress())).problems.empty());
}

TEST_CASE("the changes of tags are listed with their authors, newest first, and stay when tags and versions go") {
  TestStore test;
  auto store = open_store(test.path);
  const ModelId model = must_publish(*store, "m", {{1}}, {{}, {"t"}}).version.model;
  must_publish(*store, "m", {{2}});
  must_publish(*store, "other", {{3}}, {{}, {"t"}});
  must(store->set_tag("m", "t", 2, {"alice", ""}));
  must(store->set_tag("m", "t", 2, {"bob", ""}));  // changes nothing
  must(store->set_tag("m", "u", 2, {"bob", ""}));
  must(store->set_tag("m", "u", std::nullopt, {"carol", ""}));
  const VersionName second{"m", 2};
  must(store->remove_versions({&second, 1}, Tagged::removed, {"dave", ""}));
  std::vector<std::string> moves;
  std::vector<std::uint64_t> times;
  must(each_row(*store, list_tag_moves(model), [&](const TagMove& move) -> Status {
    moves.push_back(fmt::format("{} {} {} {}", move.name, move.before, move.number, move.by.user));
    times.push_back(move.time_ns);
    return {};
  }));
  CHECK(moves == std::vector<std::string>{"t 2 0 dave", "u 2 0 carol", "u 0 2 bob", "t 1 2 alice", "t 0 1 "});
  CHECK(std::is_sorted(times.rbegin(), times.rend()));
  CHECK(must(store->fsck({}, decode, no_progress())).problems.empty());
}

TEST_CASE("parents that somebody declares must be live; children say so, tombstones too") {
  TestStore test;
  auto store = open_store(test.path);
  VersionId parent = must_publish(*store, "m", {{1}}).version.id;
  VersionId child = must_publish(*store, "n", {{1, 2}}, {{{"m", 1, false, 1, 100}}, {}}).version.id;
  VersionId next = must_publish(*store, "n", {{1, 5}}, {{{"m", 1}}, {}}).version.id;
  using Ids = std::vector<VersionId>;
  CHECK(store->snapshot().value()->children(parent).value().rows == Ids{child, next});
  CHECK(publish(*store, "n", {{3}}, {{{"m", 2}}, {}}).error().code == Errc::not_found);
  CHECK(must_publish(*store, "o", {{3}}, {{{"m", 2, false, 1, 100}}, {}}).version.parents.empty());
  REQUIRE(store->remove_version("n", 1).ok());
  REQUIRE(store->remove_version("m", 1).ok());
  auto snapshot = store->snapshot().value();
  CHECK(snapshot->children(parent).value().rows == Ids{child, next});
  VersionRow row = snapshot->version(child).value();
  REQUIRE(row.parents.size() == 1);
  CHECK(row.parents[0].id == parent);
  CHECK_FALSE(row.parents[0].declared);
  CHECK(row.parents[0].same_tensors == 1);
  CHECK(row.parents[0].same_bytes == 100);
  CHECK(row.tensors == 2);
  CHECK(row.born == 2);
  CHECK(row.died == 5);  // after four publishes
  CHECK(snapshot->version(parent).value().died == 6);
}

TEST_CASE("some_holders() returns holders from both ends") {
  TestStore test;
  auto store = open_store(test.path);
  std::vector<VersionId> ids;
  for (unsigned n = 0; n < 20; ++n) ids.push_back(must_publish(*store, "m", {{1, 100 + n}}).version.id);
  auto snapshot = store->snapshot().value();
  auto held_by = [&](std::size_t count_max) {
    std::vector<VersionId> versions;
    const auto holders = snapshot->some_holders(content_id(1), count_max).value();
    for (const auto& [version, file] : holders) versions.push_back(version);
    return versions;
  };
  CHECK(held_by(100) == ids);
  CHECK(held_by(10) == ids);
  CHECK(held_by(15) == ids);
  CHECK(held_by(2) == std::vector<VersionId>{ids[0], ids[1], ids[18], ids[19]});
  CHECK(snapshot->some_holders(content_id(105), 4).value().size() == 1);
  CHECK(snapshot->some_holders(content_id(9999), 4).value().empty());
}

TEST_CASE("a publish of what no pack holds is refused and leaves nothing") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  std::string before = dump(*store);
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{9}});
  request.content = make_content({{9}});
  CHECK(publish_blobs(store->parts(), request, {}).error().code == Errc::invalid);
  CHECK(dump(*store) == before);
  CHECK(must_publish(*store, "m", {{9}}).version.number == 2);
}

TEST_CASE("a store opened for reading refuses writes") {
  TestStore test;
  auto store = Store::open(test.path, {}).value();
  CHECK(store->set_tag("m", "t", 1).error().code == Errc::read_only);
  CHECK(store->begin_import(Durability::local).error().code == Errc::read_only);
  CHECK(store->gc({}, no_progress()).error().code == Errc::read_only);
}

TEST_CASE("threads read one store while one writes") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{0}});
  std::atomic<bool> done = false;
  std::atomic<int> bad = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i)
    readers.emplace_back([&] {
      while (!done) {
        auto snapshot = store->snapshot();
        auto model = snapshot.ok() ? (*snapshot)->model("m") : Result<ModelRow>(snapshot.error());
        if (!model.ok() || (*snapshot)->versions(model->id).value().rows.size() != model->latest) ++bad;
      }
    });
  for (unsigned n = 1; n < 60; ++n) must_publish(*store, "m", {{n}});
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(bad == 0);
}

TEST_CASE("a blob moves, and only a dead one can be erased") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1}});
  {
    auto writer = store->parts().blobs.write().value();
    CHECK(writer->is_held(content_id(1)).value());
    CHECK(writer->erase(content_id(1), 0).error().code == Errc::internal);
    REQUIRE(writer->put(content_id(1), {7, 8}).ok());
    REQUIRE(writer->commit().ok());
  }
  CHECK(store->snapshot().value()->find_blob(content_id(1)).value().offset == 8);
  { CHECK(store->parts().blobs.write().value()->put(content_id(1), {9, 9}).ok()); }  // destroyed without a commit
  CHECK(store->snapshot().value()->find_blob(content_id(1)).value().offset == 8);
  ContentId twin = content_id(1);
  twin.root.bytes.fill(0xee);
  {
    auto writer = store->parts().blobs.write().value();
    REQUIRE(writer->put(twin, {1, 1}).ok());
    CHECK_FALSE(writer->is_held(twin).value());
    REQUIRE(writer->erase(twin, 0).ok());
    REQUIRE(writer->commit().ok());
  }
  CHECK(store->snapshot().value()->find_blob(twin).error().code == Errc::not_found);
  CHECK(store->snapshot().value()->find_blob(content_id(1)).value().offset == 8);
}

TEST_CASE("an import's bytes come back, and one that is not published leaves nothing") {
  TestStore test;
  auto store = open_store(test.path);
  auto bytes = random_bytes(100'000, 1);
  write_file(test.dir / "source", as_text(bytes));
  Fd source = open_file(test.dir / "source", O_RDONLY).value();
  const Range ranges[] = {{0, 60'000}, {60'000, 40'000}};
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{1}});
  { CHECK(store->begin_import(Durability::local).value()->add(source.get(), "source", ranges, no_progress()).ok()); }
  CHECK(list_directory(test.path + "/packs").value().empty());
  auto import = store->begin_import(Durability::local).value();
  auto extents = import->add(source.get(), "source", ranges, no_progress()).value();
  request.content.files = {{extents}};
  request.content.logical_bytes = bytes.size();
  PublishOutcome outcome = import->publish(request).value();
  CHECK(outcome.new_bytes == bytes.size());
  CHECK(import->publish(request).error().code == Errc::internal);
  OpenPlace place = store->open_blob(extents[1].id).value();
  std::vector<std::byte> back(40'000);
  REQUIRE(read_exact(place.pack->fd(), place.offset, back, "pack").ok());
  CHECK(std::equal(back.begin(), back.end(), bytes.begin() + 60'000));
  // A failed publish deletes its packs.
  std::size_t files = list_directory(test.path + "/packs").value().size();
  auto other = random_bytes(50'000, 2);
  write_file(test.dir / "other", as_text(other));
  import = store->begin_import(Durability::local).value();
  const Range whole[] = {{0, 50'000}};
  auto other_ids = import->add(open_file(test.dir / "other", O_RDONLY).value().get(), "other", whole, no_progress());
  request.content.files = {{other_ids.value()}};
  request.manifest = manifest_of({{2}});
  request.parents = {{"nobody", 1}};
  CHECK(import->publish(request).error().code == Errc::not_found);
  import.reset();
  CHECK(list_directory(test.path + "/packs").value().size() == files);
  CHECK(list_directory(test.path + "/manifests").value().size() == 2);  // another publish may need it
  CHECK(store->gc({}, no_progress()).value().stale_temporaries == 1);
  CHECK(list_directory(test.path + "/manifests").value().size() == 1);
}

TEST_CASE("versions of one model with one content are found together, the oldest live one first") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionRow first = must_publish(*store, "m", {{1}}).version;
  const VersionRow other = must_publish(*store, "m", {{2}}).version;
  const VersionRow again = must_publish(*store, "m", {{1}}).version;
  const VersionRow elsewhere = must_publish(*store, "n", {{1}}).version;
  REQUIRE(first.manifest == again.manifest);
  const auto first_with = [&](const VersionRow& version) {
    return must(
        must(store->snapshot())->with_revision(version.model, to_hex(version.manifest).substr(0, kCommitDigits)));
  };
  const auto distinct = [&] {
    auto ids = must(must(store->snapshot())->distinct(first.model)).rows;
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  using Ids = std::vector<VersionId>;
  CHECK(first_with(again) == first.id);
  CHECK(first_with(other) == other.id);
  CHECK(first_with(elsewhere) == elsewhere.id);
  CHECK(distinct() == Ids{first.id, other.id});
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(first_with(again) == again.id);
  CHECK(distinct() == Ids{other.id, again.id});
  REQUIRE(store->remove_version("m", 3).ok());
  CHECK(first_with(again) == std::nullopt);
  CHECK(distinct() == Ids{other.id});
  CHECK(first_with(elsewhere) == elsewhere.id);
}

TEST_CASE("the newest live version of a source commit is found, and a snapshot's digits come first") {
  TestStore test;
  auto store = open_store(test.path);
  const std::string commit(kCommitDigits, 'c');
  PublishArgs args;
  args.source_commit = commit;
  const VersionRow part = must_publish(*store, "m", {{1}}, args).version;
  const VersionRow whole = must_publish(*store, "m", {{1}, {2}}, args).version;
  const std::string digits = to_hex(part.manifest).substr(0, kCommitDigits);
  args.source_commit = digits;
  const VersionRow liar = must_publish(*store, "m", {{3}}, args).version;
  const auto found = [&](std::string_view revision) {
    return must(must(store->snapshot())->with_revision(part.model, revision));
  };
  CHECK(found(commit) == whole.id);
  CHECK(found(digits) == part.id);
  for (const std::string& none : {std::string(), commit.substr(1), commit + "c", std::string(kCommitDigits, 'C')})
    CHECK(found(none) == std::nullopt);
  REQUIRE(store->remove_version("m", 2).ok());
  CHECK(found(commit) == part.id);
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(found(commit) == std::nullopt);
  CHECK(found(digits) == liar.id);
  args.source_commit = "main";
  CHECK(publish(*store, "m", {{4}}, args).error().code == Errc::invalid);
}

TEST_CASE("a version owns what its files own, and what it owned goes to the next holder") {
  TestStore test;
  auto store = open_store(test.path);
  const VersionId first = must_publish(*store, "m", {{1, 2}, {3}}).version.id;
  const VersionId second = must_publish(*store, "m", {{1, 4}, {3, 5}}).version.id;
  const auto owned = [&](VersionId id) {
    Renewed renewed(*store);
    return must(owned_bytes(renewed, id));
  };
  CHECK(owned(first) == 1001 + 1002 + 1003);
  CHECK(owned(second) == 1004 + 1005);
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(owned(second) == 1001 + 1003 + 1004 + 1005);
}

TEST_CASE("the lineage's clock counts publishes and removals") {
  TestStore test;
  auto store = open_store(test.path);
  const auto clock = [&] { return must(store->snapshot())->lineage_clock(); };
  CHECK(clock() == 0);
  must_publish(*store, "m", {{1}});
  must_publish(*store, "m", {{2}});
  CHECK(clock() == 2);
  REQUIRE(store->set_tag("m", "prod", 1).ok());
  CHECK(clock() == 2);
  REQUIRE(store->remove_version("m", 1).ok());
  CHECK(clock() == 3);
}

TEST_CASE("a row of a blob that is lost frees nothing") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{1, 2}});
  must_publish(*store, "n", {{2, 3}});
  {
    const WriterLock lock = store->parts().index.lock().value();
    const std::string key = blob_key(content_id(1));
    REQUIRE(store->parts().index.write(lock, [&](Txn& txn) { return txn.erase(Table::blobs, key); }).ok());
  }
  REQUIRE(store->gc({}, no_progress()).ok());
  CHECK_FALSE(store->open_blob(content_id(1)).ok());
  FsckOptions rebuild;
  rebuild.rebuild = true;
  CHECK(store->fsck(rebuild, decode, no_progress()).value().rebuilt);
  CHECK(store->open_blob(content_id(1)).ok());
}

TEST_CASE("a version that shares blobs adds a row of holders for each 64 of them") {
  TestStore test;
  auto store = open_store(test.path);
  std::vector<unsigned> contents;
  for (unsigned n = 1; n <= 200; ++n) contents.push_back(n);
  must_publish(*store, "base", {contents});
  const auto rows = [&] { return store->parts().index.read().value().count(Table::holders).value(); };
  const auto before = rows();
  contents[100] = 1000;
  const VersionRow tuned = must_publish(*store, "tuned", {contents}).version;
  CHECK(rows() - before <= 5);
  CHECK(store->snapshot().value()->some_holders(content_id(1), 1000).value().size() == 2);
  CHECK(store->snapshot().value()->some_holders(content_id(101), 1000).value().size() == 1);
  CHECK(store->snapshot().value()->owner(content_id(1000)).value()->first == tuned.id);
}
