// Waiting for others: every wait can be ended, and leaves the store as it was.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "base/file_lock.h"
#include "base/sys.h"
#include "index_support.h"
#include "store/pack_file.h"

using namespace weft;
using namespace weft::testing;

namespace {

// Gives up as soon as it is asked whether it does.
OpenOptions impatient() {
  OpenOptions options = write_options();
  options.patience.cancelled = [] { return true; };
  return options;
}

Fd locked(const std::string& path) {
  Fd fd = open_file(path, O_RDONLY).value();
  REQUIRE(lock_fd(fd.get(), LockKind::exclusive, LockWait::no, path).ok());
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

TEST_CASE("who holds a lock is told to who gives up") {
  TempDir dir;
  write_file(dir / "lock", "");
  Fd held = locked(dir / "lock");
  Fd waiting = open_file(dir / "lock", O_RDONLY).value();
  Patience patience;
  patience.cancelled = [] { return true; };
  Status status = wait_for_lock(waiting.get(), LockKind::shared, patience, "the lock");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == Errc::cancelled);
  CHECK(status.error().message.find("the lock") != std::string::npos);
  // Where the file system gives its files' devices as /proc/locks does.
  std::string holder = lock_holder(waiting.get());
  CHECK((holder.empty() || holder.find(fmt::format("process {}", ::getpid())) == 0));
  held.reset();
  CHECK(wait_for_lock(waiting.get(), LockKind::shared, patience, "the lock").ok());
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
  Fd waiting = open_file(dir / "lock", O_RDONLY).value();
  CHECK(wait_for_lock(waiting.get(), LockKind::exclusive, patience, "the lock").ok());
  other.join();
  CHECK(told == 1);
}

TEST_CASE("a publish, a tag, a removal, gc, fsck and a rebuild give up waiting for the writer") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  auto store = open_store(test.path, impatient());
  auto import = store->begin_import().value();
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
  CHECK(files_of(test.path).find(".pack") == files_of(test.path).rfind(".pack"));  // that of m@1 alone
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

TEST_CASE("an import gives up waiting for a collector that is at a pack it needs") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{1}});
  auto store = open_store(test.path, impatient());
  PackId pack = store->snapshot().value()->find_blob(content_id(1)).value().pack;
  Fd collector = locked(pack_path(test.path, pack));
  CHECK(store->lock_blob(content_id(1)).error().code == Errc::cancelled);
  write_file(test.dir / "source", as_text(content_bytes(1)));
  Fd fd = open_file(test.dir / "source", O_RDONLY).value();
  const Range all{0, content_id(1).length};
  auto import = store->begin_import().value();
  CHECK(import->add(fd.get(), "source", std::span(&all, 1), no_progress()).error().code == Errc::cancelled);
}

TEST_CASE("who makes a store gives up waiting for another who does, and finds it made") {
  TempDir dir;
  std::string path = dir / "store";
  REQUIRE(make_directory(path).ok());
  CreateOptions options;
  options.patience.cancelled = [] { return true; };
  {
    Fd maker = locked(path);
    CHECK(Store::create(path, options).error().code == Errc::cancelled);
  }
  CHECK(Store::create(path, options).ok());
  CHECK(Store::create(path, options).error().code == Errc::exists);
}

TEST_CASE("a store that nothing was published to can be taken away, and by nobody else's leave") {
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
