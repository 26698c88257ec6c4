// LMDB's hazards, each met on purpose.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "base/sys.h"
#include "index_support.h"
#include "store/fs_check.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A child process and a pipe each way, to take turns.
class Partner {
 public:
  explicit Partner(const std::function<bool(Partner&)>& body) {
    REQUIRE(::pipe(to_child_) == 0);
    REQUIRE(::pipe(to_parent_) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      ::close(to_parent_[1]);  // so that its death is seen
      return;
    }
    child_ = true;
    ::close(to_child_[1]);
    bool good = false;
    try {
      good = body(*this);
    } catch (const std::exception& error) {
      fmt::print(stderr, "child: {}\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  ~Partner() {
    kill();
    ::close(to_child_[0]);
    ::close(to_child_[1]);
    ::close(to_parent_[0]);
  }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;

  bool tell() {
    int fd = child_ ? to_parent_[1] : to_child_[1];
    return ::write(fd, "x", 1) == 1;
  }
  bool hear() {
    char byte = 0;
    return ::read(child_ ? to_child_[0] : to_parent_[0], &byte, 1) == 1;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  bool ends_well() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return exited(status);
  }

 private:
  int to_child_[2]{};
  int to_parent_[2]{};
  pid_t pid_ = 0;
  bool child_ = false;
};

std::uint64_t index_bytes(const std::string& store) {
  return std::filesystem::file_size(store + "/index/data.mdb");
}

Files many(unsigned first, unsigned count) {
  Files files(1);
  for (unsigned n = first; n < first + count; ++n) files[0].push_back(n);
  return files;
}

}  // namespace

TEST_CASE("the map grows under a reader of another process, and the reader follows") {
  TestStore test;
  Partner reader([&](Partner& parent) {
    OpenOptions options;
    options.map_bytes = 1U << 20U;
    auto store = Store::open(test.path, options).value();
    if (!parent.tell() || !parent.hear()) return false;
    auto snapshot = store->snapshot().value();  // the file is larger than this process's map now
    auto model = snapshot->model("m").value();
    LocalRow local = snapshot->local(snapshot->version(model.id, 1).value().id).value();
    return local.view_inos.size() == 9000 && snapshot->holders(content_id(8999)).value().size() == 1;
  });
  REQUIRE(reader.hear());
  auto store = open_store(test.path);
  must_publish(*store, "m", many(0, 9000));
  CHECK(index_bytes(test.path) > (2U << 20U));
  REQUIRE(reader.tell());
  CHECK(reader.ends_well());
}

TEST_CASE("the map grows under a snapshot of the same process") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", many(0, 10));
  auto before = store->snapshot().value();
  must_publish(*store, "m", many(0, 9000));
  ModelId model = before->model("m").value().id;
  CHECK(before->model("m").value().latest == 1);
  CHECK(before->version(model, 2).error().code == Errc::not_found);
  CHECK(store->snapshot().value()->version(model, 2).ok());
}

TEST_CASE("a writer follows a map that another writer grew") {
  TestStore test;
  auto first = open_store(test.path);
  auto second = open_store(test.path);
  must_publish(*first, "m", many(0, 9000));
  CHECK(must_publish(*second, "m", {{1}}).version.number == 2);
}

TEST_CASE("a killed reader leaves nothing behind") {
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{0}});
  Partner reader([&](Partner& parent) {
    auto theirs = Store::open(test.path, {}).value();
    auto snapshot = theirs->snapshot().value();
    parent.tell();
    return parent.hear();  // for ever
  });
  REQUIRE(reader.hear());
  reader.kill();
  for (unsigned n = 1; n < 6; ++n) CHECK(publish(*store, "m", {{n}}).ok());
}

TEST_CASE("a reader that does not end makes commits fail rather than the index grow") {
  TestStore test;
  OpenOptions options = write_options();
  options.reader_wait_ms = 50;
  auto store = open_store(test.path, options);
  must_publish(*store, "m", {{0}});
  Partner reader([&](Partner& parent) {
    auto theirs = Store::open(test.path, {}).value();
    auto snapshot = theirs->snapshot().value();
    parent.tell();
    return parent.hear() && snapshot->model("m").value().latest == 1;
  });
  REQUIRE(reader.hear());
  CHECK(publish(*store, "m", {{1}}).ok());  // the state before may be read while one is written
  std::uint64_t bytes = index_bytes(test.path);
  std::string before = dump(*store);
  for (unsigned n = 2; n < 5; ++n) {
    auto outcome = publish(*store, "m", {{n}});
    REQUIRE_FALSE(outcome.ok());
    CHECK(outcome.error().code == Errc::busy);
  }
  CHECK(index_bytes(test.path) == bytes);
  CHECK(dump(*store) == before);
  REQUIRE(reader.tell());
  CHECK(reader.ends_well());
  CHECK(publish(*store, "m", {{9}}).ok());
}

TEST_CASE("readers that follow one another never stop a writer") {
  TestStore test;
  OpenOptions options = write_options();
  options.reader_wait_ms = 5'000;
  auto store = open_store(test.path, options);
  must_publish(*store, "m", {{0}});
  std::atomic<bool> done = false;
  auto read = [&] {
    auto theirs = Store::open(test.path, {}).value();
    auto held = theirs->snapshot().value();
    while (!done) held = theirs->snapshot().value();  // the next before the last is let go
  };
  std::thread one(read);
  std::thread two(read);
  for (unsigned n = 1; n < 30; ++n) CHECK(publish(*store, "m", {{n}}).ok());
  done = true;
  one.join();
  two.join();
}

TEST_CASE("two containers read and write one store at once") {
  if (::getuid() != 0) return;  // pid namespaces need root
  TestStore test;
  {
    auto store = open_store(test.path);
    must_publish(*store, "m", {{0}});
  }
  // Each child is process 1 of its own namespace, as in a container.
  auto container = [&](const std::function<bool()>& body) {
    return in_child(
        [&] { return ::unshare(CLONE_NEWPID) == 0 && exited(in_child([&] { return ::getpid() == 1 && body(); })); });
  };
  Partner other([&](Partner& parent) {
    return exited(container([&] {
      auto store = Store::open(test.path, {}).value();
      auto snapshot = store->snapshot().value();
      return parent.tell() && parent.hear() && snapshot->model("m").value().latest == 1;
    }));
  });
  REQUIRE(other.hear());
  CHECK(exited(container([&] {
    auto store = open_store(test.path);
    auto snapshot = store->snapshot().value();
    bool read = snapshot->model("m").value().latest == 1;
    snapshot.reset();
    return read && publish(*store, "m", {{1}}).ok();
  })));
  REQUIRE(other.tell());
  CHECK(other.ends_well());
}

TEST_CASE("a user who may only read opens and reads") {
  if (::getuid() != 0) return;
  TestStore test;
  auto store = open_store(test.path);
  must_publish(*store, "m", {{0}});
  std::filesystem::permissions(test.dir.path(), std::filesystem::perms(0755));
  CHECK(exited(in_child([&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return false;
    auto theirs = Store::open(test.path, {}).value();
    bool read = theirs->snapshot().value()->model("m").value().latest == 1;
    auto writer = StoreImpl::open(test.path, write_options());
    return read && !writer.ok() && writer.error().code == Errc::permission;
  })));
}

TEST_CASE("a full disk refuses a publish and leaves the store as it was") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    if (!mount_tmpfs(dir.path(), 1U << 20U)) return false;
    std::string path = dir / "store";
    if (!Store::create(path, {}).ok()) return false;
    auto store = open_store(path);
    must_publish(*store, "m", {{0}});
    std::string before = dump(*store);
    for (unsigned at = 0;; at += 4096) {
      auto fill = write_exact(open_file(dir / "fill", O_WRONLY | O_CREAT).value().get(), at,
                              std::vector<std::byte>(4096), "fill");
      if (!fill.ok()) break;
    }
    PublishRequest request;
    request.model = "m";
    request.manifest = manifest_of({{0}, {0}});
    request.content = make_content({{0}, {0}});
    auto outcome = store->publish(request, {});
    if (outcome.ok() || outcome.error().code != Errc::no_space || dump(*store) != before) return false;
    auto again = open_store(path);
    if (dump(*again) != before) return false;
    std::filesystem::remove(dir / "fill");
    return again->publish(request, {}).ok() && again->snapshot().value()->model("m").value().latest == 2;
  })));
}

TEST_CASE("every step of a commit meets a full disk") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    if (!mount_tmpfs(dir.path(), 4U << 20U)) return false;
    std::string path = dir / "store";
    if (!Store::create(path, {}).ok()) return false;
    auto store = open_store(path);
    must_publish(*store, "m", many(0, 100));
    bool failed = false;
    // From no room at all to enough: the manifest, the journal, and the pages of the index run out in turn.
    for (unsigned room = 0; room < 120; ++room) {
      std::filesystem::remove(dir / "fill");
      std::uint64_t free = std::filesystem::space(dir.path()).available;
      if (free > room * 4096ULL) {
        Fd fd = open_file(dir / "fill", O_WRONLY | O_CREAT).value();
        std::uint64_t size = free - room * 4096ULL;
        if (!write_exact(fd.get(), 0, std::vector<std::byte>(size), "fill").ok()) return false;
      }
      std::string before = dump(*store);
      Files files = many(0, 100);
      files.push_back({room % 100});
      PublishRequest request;
      request.model = "m";
      request.manifest = manifest_of(files);
      request.content = make_content(files);
      auto outcome = store->publish(request, {});
      if (outcome.ok()) return failed;
      if (outcome.error().code != Errc::no_space)
        throw std::runtime_error(fmt::format("room {}: {}", room, outcome.error().message));
      if (dump(*store) != before) throw std::runtime_error("differs");
      if (dump(*open_store(path)) != before) return false;
      failed = true;
    }
    return false;
  })));
}

TEST_CASE("network file systems are refused by name") {
  CHECK(unsuitable_file_system(0x6969) == "nfs");
  CHECK(unsuitable_file_system(0xFF534D42) == "cifs");
  CHECK(unsuitable_file_system(0xFFFFFFFFFF534D42) == "cifs");  // sign-extended, as statfs gives it
  CHECK(unsuitable_file_system(0x0BD00BD0) == "lustre");
  CHECK(unsuitable_file_system(0x65735546) == "fuse");
  for (unsigned long local :
       {0xEF53UL, 0x58465342UL, 0x9123683EUL, 0x01021994UL, 0x794C7630UL, 0x2FC12FC1UL, 0xF2F52010UL})
    CHECK_FALSE(unsuitable_file_system(local));
  CHECK(check_file_system("/proc").ok());
  CHECK(check_file_system("/nothing/here").error().code == Errc::not_found);
}

TEST_CASE("after a commit that failed the same process goes on") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    if (!mount_tmpfs(dir.path(), 4U << 20U)) return false;
    std::string path = dir / "store";
    if (!Store::create(path, {}).ok()) return false;
    auto store = open_store(path);
    must_publish(*store, "m", many(0, 100));
    std::uint64_t free = std::filesystem::space(dir.path()).available;
    if (!write_exact(open_file(dir / "fill", O_WRONLY | O_CREAT).value().get(), 0, std::vector<std::byte>(free), "fill")
             .ok())
      return false;
    // A commit that has no journal: as gc and the replay of a record make them.
    auto write = [&] {
      WriterLock lock = store->lock_writer().value();
      return store->env().write(lock, [](Txn& txn) -> Status {
        for (std::uint64_t n = 0; n < 5000; ++n) WEFT_CHECK(put(txn, Table::dead, key_of(n, n), NumberRow{n}));
        return {};
      });
    };
    Status full = write();
    if (full.ok() || full.error().code != Errc::no_space) return false;
    if (store->snapshot().value()->model("m").value().latest != 1) return false;
    std::filesystem::remove(dir / "fill");
    return write().ok() && must_publish(*store, "m", {{1}}).version.number == 2;
  })));
}
