// Waits for other processes: each can be cancelled, and leaves the store unchanged.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "index_support.h"
#include "os/file_lock.h"
#include "os/sys.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Options of a writer that gives up at once.
OpenOptions impatient() {
  OpenOptions options = write_options();
  options.patience.cancelled = [] { return true; };
  return options;
}

Fd locked(const std::string& path) {
  Fd fd = open_file(path, O_RDWR | O_CREAT).value();
  REQUIRE(try_lock(fd.get(), LockKind::exclusive, path).ok());
  return fd;
}

std::string files_of(const std::string& path) {
  std::string all;
  for (const char* directory : {"/packs", "/manifests", "/journal", "/tmp"}) {
    std::vector<std::string> names = list_directory(path + directory).value();
    for (const std::string& name : names) all += directory + ("/" + name) + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("a timed-out wait for a lock names its holder") {
  TempDir dir;
  write_file(dir / "lock", "");
  Fd held = locked(dir / "lock");
  Fd waiting = open_file(dir / "lock", O_RDWR).value();
  Patience patience;
  patience.cancelled = [] { return true; };
  Status status = wait_for_lock(waiting.get(), LockKind::shared, patience, "the lock");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Errc::cancelled);
  CHECK(status.error().message.find("the lock") != std::string::npos);
  CHECK(status.error().message.find(fmt::format("process {} (", ::getpid())) != std::string::npos);
  CHECK(lock_holder(waiting.get()).starts_with(fmt::format("process {} (", ::getpid())));
  held.reset();
  CHECK(lock_holder(waiting.get()).empty());  // the file names a past holder
  CHECK(wait_for_lock(waiting.get(), LockKind::shared, patience, "the lock").ok());
  Fd third = open_file(dir / "lock", O_RDWR).value();
  CHECK(lock_holder(third.get()).empty());  // holders of shared locks are not named
  Status refused = try_lock(third.get(), LockKind::exclusive, "the lock");
  REQUIRE(refused.error().code == Errc::busy);
  CHECK(refused.error().message.find("another process") != std::string::npos);
}

TEST_CASE("a wait that takes long is told once, and ends with the lock") {
  TempDir dir;
  write_file(dir / "lock", "");
  Fd held = locked(dir / "lock");
  std::atomic<int> told = 0;
  Patience patience;
  patience.cancelled = [] { return false; };
  patience.waiting = [&](std::string_view) { ++told; };
  std::thread other([&] {
    while (told == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    held.reset();
  });
  Fd waiting = open_file(dir / "lock", O_RDWR).value();
  CHECK(wait_for_lock(waiting.get(), LockKind::exclusive, patience, "the lock").ok());
  other.join();
  CHECK(told == 1);
}

TEST_CASE("a publish, a tag, a removal, gc, fsck and a rebuild give up waiting for the writer") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  auto store = open_store(test.path, impatient());
  auto import = store->begin_import(Durability::local).value();
  write_file(test.dir / "source", std::string(3U << 20U, 'x'));
  Fd fd = open_file(test.dir / "source", O_RDONLY).value();
  const Range all{0, 3U << 20U};
  auto ids = import->add(fd.get(), "source", std::span(&all, 1), no_progress()).value();
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{1}, {1}});
  request.content = make_content({{1}, {1}});
  std::string before = dump(*store);
  {
    Fd writer = locked(test.path + "/index/writer");
    CHECK(import->publish(request).error().code == Errc::cancelled);
    CHECK(store->set_tag("m", "t", 1).error().code == Errc::cancelled);
    CHECK(store->remove_version("m", 1).error().code == Errc::cancelled);
    CHECK(store->gc({}, no_progress()).error().code == Errc::cancelled);
    CHECK(store->fsck({}, decode, no_progress()).error().code == Errc::cancelled);
    RebuildOptions options;
    options.patience.cancelled = [] { return true; };
    CHECK(Store::rebuild(test.path, decode, no_progress(), options).error().code == Errc::cancelled);
  }
  import.reset();
  CHECK(dump(*store) == before);
  CHECK(files_of(test.path).find(".pack") == files_of(test.path).rfind(".pack"));  // only the pack of m@1
  CHECK(list_directory(test.path + "/tmp").value().empty());
  CHECK(store->set_tag("m", "t", 1).ok());
}

TEST_CASE("gc and fsck give up waiting for one another") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  auto store = open_store(test.path, impatient());
  Fd collector = locked(test.path + "/index/gc");
  CHECK(store->gc({}, no_progress()).error().code == Errc::cancelled);
  CHECK(store->fsck({}, decode, no_progress()).error().code == Errc::cancelled);
}

TEST_CASE("creating a store waits for another creator, and fails if it then exists") {
  TempDir dir;
  std::string path = dir / "store";
  REQUIRE(make_directory(path).ok());
  CreateOptions options;
  options.patience.cancelled = [] { return true; };
  {
    Fd maker = locked(path + "/maker.lock");
    CHECK(Store::create(path, options).error().code == Errc::cancelled);
  }
  CHECK(Store::create(path, options).ok());
  CHECK(Store::create(path, options).error().code == Errc::exists);
}

TEST_CASE("an unused store can be removed unless another process has it open") {
  TempDir dir;
  std::string path = dir / "store";
  REQUIRE(Store::create(path, {}).ok());
  {
    auto other = Store::open(path, {}).value();
    CHECK_FALSE(Store::remove_unused(Store::open(path, write_options()).value(), true).value());
  }
  {
    auto store = open_store(path);
    must_publish(*store, "m", {{1}});
  }
  CHECK_FALSE(Store::remove_unused(Store::open(path, write_options()).value(), true).value());
  std::string empty = dir / "empty";
  REQUIRE(Store::create(empty, {}).ok());
  CHECK(Store::remove_unused(Store::open(empty, write_options()).value(), true).value());
  CHECK_FALSE(std::filesystem::exists(empty));
}

TEST_CASE("a directory in which a maker was killed becomes a store, one that holds anything does not") {
  TempDir dir;
  const std::string path = dir / "store";
  for (const char* left :
       {"maker.lock", "packs/", "index/data.mdb", "tmp/weft-store", "journal/0000000000000001.log"}) {
    REQUIRE(make_directories(path).ok());
    const std::string name = left;
    if (const auto slash = name.find('/'); slash != std::string::npos)
      REQUIRE(make_directories(path + "/" + name.substr(0, slash)).ok());
    if (!name.ends_with('/')) write_file(path + "/" + name, "");
    CHECK(Store::open(path, {}).error().code == Errc::not_found);
    CHECK(Store::create(path, {}).ok());
    CHECK(open_store(path)->snapshot().ok());
    std::filesystem::remove_all(path);
  }
  REQUIRE(Store::create(path, {}).ok());  // killed between the last two steps
  std::filesystem::remove(path + "/weft-store");
  CHECK(Store::open(path, {}).error().code == Errc::not_found);
  CHECK(Store::open(path, write_options()).error().code == Errc::not_found);
  CHECK(Store::rebuild(path, decode, no_progress()).error().code == Errc::not_found);
  CHECK(Store::create(path, {}).ok());
  std::filesystem::remove_all(path);
  for (const char* kept : {"packs/0123456789abcdef.pack", "manifests/x", "journal/0000000000000001.log", "notes.txt"}) {
    const std::string name = kept;
    const auto slash = name.find('/');
    REQUIRE(make_directories(path + "/" + (slash == std::string::npos ? "" : name.substr(0, slash))).ok());
    write_file(path + "/" + name, "x");
    CHECK(Store::create(path, {}).error().code == Errc::exists);
    CHECK(std::filesystem::exists(path + "/" + name));
    CHECK_FALSE(std::filesystem::exists(path + "/maker.lock"));
    std::filesystem::remove_all(path);
  }
}
