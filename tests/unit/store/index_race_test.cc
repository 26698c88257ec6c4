// Concurrent processes on one store, and states that one of them leaves if it dies between two steps.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include <fmt/core.h>

#include "diskformat/toc.h"
#include "index_support.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

const Files kNoBytes = {{}};  // a version without extents

bool publish_and_remove(StoreImpl& store, const std::string& model) {
  auto made = publish(store, model, kNoBytes);
  return made.ok() && store.remove_version(model, made->version.number).ok();
}

// Runs `body` in `count` children that start together. Returns their wait statuses.
std::vector<int> all_at_once(unsigned count, const std::function<int(unsigned child)>& body) {
  int gate[2];
  REQUIRE(::pipe(gate) == 0);
  std::vector<pid_t> children;
  for (unsigned child = 0; child < count; ++child) {
    pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      char byte = 0;
      ::close(gate[1]);
      static_cast<void>(!::read(gate[0], &byte, 1));  // returns when all write ends are closed
      ::_exit(body(child));
    }
    children.push_back(pid);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  std::vector<int> ends;
  for (pid_t pid : children) ::waitpid(pid, &ends.emplace_back(), 0);
  return ends;
}

std::vector<std::string> fsck(StoreImpl& store) {
  return store.fsck({}, decode, no_progress()).value().problems;
}

}  // namespace

TEST_CASE("one of several processes that create a store at once succeeds, and the store is sound") {
  for (int round = 0; round < 10; ++round) {
    TempDir dir;
    std::string path = dir / "store";
    std::vector<int> ends = all_at_once(6, [&](unsigned) {
      Status made = Store::create(path, {});
      return made.ok() ? 0 : made.error().code == Errc::exists ? 2 : 1;
    });
    CHECK(std::count_if(ends.begin(), ends.end(), [](int status) { return exited(status, 0); }) == 1);
    CHECK(std::count_if(ends.begin(), ends.end(), [](int status) { return exited(status, 2); }) == 5);
    auto store = open_store(path);
    must_publish(*store, "m", {{1}});
    CHECK(fsck(*store).empty());
  }
}

TEST_CASE("content that is reaped and published again at once: neither waits for the other for ever") {
  TestStore test;
  std::vector<int> ends = all_at_once(4, [&](unsigned child) {
    ::alarm(60);
    auto store = open_store(test.path);
    for (unsigned round = 0; round < 40; ++round) {
      bool good =
          child == 0 ? store->gc({}, no_progress()).ok() : publish_and_remove(*store, fmt::format("m{}", child));
      if (!good) return 1;
    }
    return 0;
  });
  CHECK(std::all_of(ends.begin(), ends.end(), [](int status) { return exited(status); }));
}

namespace {

// Imports a file of this content like a user, and publishes it.
struct Importing {
  explicit Importing(const TestStore& test) : store(open_store(test.path)), file(test.dir / random_hex(4)) {
    write_file(file, as_text(content_bytes(kContent)));
  }
  void publish(const std::string& model, const std::function<void()>& before_commit = {}) {
    auto import = must(store->begin_import(Durability::local));
    const Fd fd = must(open_file(file, O_RDONLY));
    const Range all{0, content_id(kContent).length};
    REQUIRE(must(import->add(fd.get(), file, std::span(&all, 1), no_progress())).front().id == content_id(kContent));
    if (before_commit) before_commit();
    PublishRequest request;
    request.model = model;
    request.manifest = manifest_of({{kContent}});
    request.content = make_content({{kContent}});
    number = must(import->publish(request)).version.number;
  }
  bool reads() {
    const OpenPlace place = must(store->open_blob(content_id(kContent)));
    std::vector<std::byte> got(content_id(kContent).length);
    must(read_exact(place.pack->fd(), place.offset, got, "pack"));
    return got == content_bytes(kContent);
  }
  static constexpr unsigned kContent = 5;
  std::unique_ptr<StoreImpl> store;
  std::string file;
  std::uint64_t number = 0;
};

}  // namespace

TEST_CASE("an import of content that gc frees before its commit stores it again") {
  TestStore test;
  Importing one(test), other(test);
  one.publish("m");
  other.publish("n", [&] {
    must(one.store->remove_version("m", one.number));
    CHECK(must(one.store->gc({}, no_progress())).packs_deleted == 1);
    CHECK(must(list_directory(test.path + "/packs")).empty());
  });
  CHECK(one.reads());
  CHECK(fsck(*one.store).empty());
}

TEST_CASE("content that is removed, freed and imported again at once is always whole") {
  TestStore test;
  constexpr int kRounds = 300;
  std::atomic<bool> done = false;
  std::thread collector([&] {
    auto store = open_store(test.path);
    while (!done) must(store->gc({}, no_progress()));
  });
  Importing importer(test);
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    importer.publish("m");
    if (!importer.reads()) ++wrong;
    must(importer.store->remove_version("m", importer.number));
  }
  done = true;
  collector.join();
  CHECK(wrong == 0);
  CHECK(fsck(*importer.store).empty());
}

TEST_CASE("versions that are removed while gc runs leave a store that fsck finds whole") {
  TestStore test;
  auto store = open_store(test.path);
  for (int round = 0; round < 20; ++round) {
    const std::string model = fmt::format("m{}", round);
    for (unsigned n = 0; n < 8; ++n) must_publish(*store, model, {{n, n + 1, n + 2, 20 + n}});
    std::thread remover([&] {
      auto theirs = open_store(test.path);
      for (std::uint64_t n = 1; n < 7; ++n) must(theirs->remove_version(model, n));
    });
    for (int i = 0; i < 4; ++i) must(store->gc({}, no_progress()));
    remover.join();
    CHECK(fsck(*store) == std::vector<std::string>{});
  }
}

TEST_CASE("gc leaves the packs of a publish that is in the journal and not in the index yet") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  int status = in_child([&] {
    CommitHooks hooks;
    hooks.after_journal = [] { ::kill(::getpid(), SIGKILL); };
    must_publish(*open_store(test.path, write_options(), hooks), "m", {{2}});
    return true;
  });
  REQUIRE(WIFSIGNALED(status));
  auto store = open_store(test.path);
  Packs packs(safe(test.path), store->parts().blobs);
  GcReport report;  // of a gc that had finished its first steps when the publisher died
  REQUIRE(collect_packs(packs, store->parts().blobs, {}, no_progress(), report).ok());
  REQUIRE(store->parts().index.lock().ok());
  CHECK(store->snapshot().value()->model("m").value().latest == 2);
  CHECK(store->open_blob(content_id(2)).ok());
  CHECK(fsck(*store).empty());
}

TEST_CASE("a removed version whose manifest was lost takes nothing from those that share its views") {
  TestStore test;
  auto store = open_store(test.path);
  Digest lost = must_publish(*store, "a", {{1, 2}}).version.manifest;
  must_publish(*store, "b", {{2, 3}});
  REQUIRE(remove_file(test.path + "/manifests/" + to_hex(lost)).ok());
  REQUIRE(Store::rebuild(test.path, decode, no_progress()).value().problems.size() == 1);
  REQUIRE(store->remove_version("a", 1).ok());
  REQUIRE(store->gc({}, no_progress()).value().versions_reaped == 1);
  auto snapshot = store->snapshot().value();
  LocalRow local = snapshot->local(snapshot->version(snapshot->model("b").value().id, 1).value().id).value();
  for (Ino ino : local.view_inos) CHECK(snapshot->inode(ino).ok());
  snapshot.reset();
  CHECK(fsck(*store) == std::vector<std::string>{});
  CHECK(store->remove_version("b", 1).ok());
}

TEST_CASE("a publish that is refused leaves no packs, whatever it is refused for") {
  TestStore test;
  auto store = open_store(test.path);
  auto import = store->begin_import(Durability::local).value();
  write_file(test.dir / "source", std::string(3U << 20U, 'x'));
  Fd fd = open_file(test.dir / "source", O_RDONLY).value();
  const Range whole{0, 3U << 20U};
  REQUIRE(import->add(fd.get(), "source", std::span(&whole, 1), no_progress()).ok());
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of(kNoBytes);
  request.content = make_content(kNoBytes);
  request.message = std::string(1U << 20U, 'm');
  CHECK(import->publish(request).error().code == Errc::invalid);
  import.reset();
  CHECK(list_directory(test.path + "/packs").value().empty());
  CHECK(list_directory(test.path + "/manifests").value().empty());
  CHECK(list_directory(test.path + "/tmp").value().empty());
}

TEST_CASE("fsck reports a row that places a blob wrongly") {
  for (BlobPlace wrong : {BlobPlace{0xdead, 0}, BlobPlace{0, 8}}) {
    TestStore test;
    auto store = open_store(test.path);
    must_publish(*store, "m", {{1}});
    auto writer = store->parts().blobs.write().value();
    if (wrong.pack == 0) wrong.pack = writer->find(content_id(1)).value()->pack;
    REQUIRE(writer->put(content_id(1), wrong).ok());
    REQUIRE(writer->commit().ok());
    writer.reset();
    CHECK_FALSE(fsck(*store).empty());
    REQUIRE(Store::rebuild(test.path, decode, no_progress()).value().problems.empty());
    CHECK(fsck(*store).empty());
  }
}
