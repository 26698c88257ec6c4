// Provokes LMDB's hazards one by one.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/core.h>

#include "index_support.h"
#include "os/sys.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A child process and a pipe in each direction, to take turns.
class Partner {
 public:
  explicit Partner(const std::function<bool(Partner&)>& body) {
    REQUIRE(::pipe(to_child_) == 0);
    REQUIRE(::pipe(to_parent_) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      ::close(to_parent_[1]);  // so that the death of the child is noticed
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

// A store with m@1 on a small disk that only this process sees. For a child process of root.
class SmallDisk {
 public:
  SmallDisk(const TempDir& dir, std::uint64_t bytes, const Files& content)
      : path(dir / "store"), filler_(dir / "fill") {
    if (!mount_tmpfs(dir.path(), bytes)) throw std::runtime_error("tmpfs");
    must(Store::create(path, {}));
    store = open_store(path);
    must_publish(*store, "m", content);
  }
  // Fills the disk up to `room` free bytes, or fewer if it has fewer.
  void fill(std::uint64_t room) {
    clear();
    const std::uint64_t free = std::filesystem::space(path).available;
    if (free <= room) return;
    const Fd fd = must(open_file(filler_, O_WRONLY | O_CREAT));
    must(write_exact(fd.get(), 0, std::vector<std::byte>(free - room), filler_));
  }
  void clear() { std::filesystem::remove(filler_); }

  const std::string path;
  std::unique_ptr<StoreImpl> store;

 private:
  const std::string filler_;
};

// Publishes on a full disk. True if the publish failed and left no trace, false if there was space.
bool refused_without_trace(SmallDisk& disk, const Files& files) {
  const std::string before = dump(*disk.store);
  const auto outcome = publish(*disk.store, "m", files);
  if (outcome.ok()) return false;
  if (outcome.error().code != Errc::no_space) throw std::runtime_error(outcome.error().message);
  if (dump(*disk.store) != before || dump(*open_store(disk.path)) != before) throw std::runtime_error("a trace");
  return true;
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
    auto snapshot = store->snapshot().value();  // the file outgrew this process's map
    auto model = snapshot->model("m").value();
    LocalRow local = snapshot->local(snapshot->version(model.id, 1).value().id).value();
    return local.view_inos.size() == 9000 && snapshot->some_holders(content_id(8999), 1000).value().size() == 1;
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
  OpenOptions options = write_options();
  options.map_bytes = 512U << 10U;
  auto store = open_store(test.path, options);
  must_publish(*store, "m", many(0, 10));
  auto before = store->snapshot().value();
  must_publish(*store, "m", many(0, 2000));  // in one commit
  CHECK(index_bytes(test.path) > options.map_bytes);
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
    return parent.hear();  // waits for ever
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
  CHECK(publish(*store, "m", {{1}}).ok());  // a reader may hold the previous state during one write
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
    while (!done) held = theirs->snapshot().value();  // gets the next snapshot before it releases the last one
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
  // Each child is process 1 of its own pid namespace, as in a container.
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

TEST_CASE("a user of the store's group opens and reads, another one does not open") {
  if (::getuid() != 0) return;
  TempDir dir;
  const std::string path = dir / "store";
  must(Store::create(path, {.group = "nogroup"}));
  auto store = open_store(path);
  must_publish(*store, "m", {{0}});
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  CHECK(exited(in_child([&] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(12345) != 0 || ::setuid(65534) != 0) return false;
    return Store::open(path, {}).error().code == Errc::permission;
  })));
  CHECK(exited(in_child([&] {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return false;
    auto theirs = Store::open(path, {}).value();
    bool read = theirs->snapshot().value()->model("m").value().latest == 1;
    auto writer = StoreImpl::open(path, write_options());
    return read && !writer.ok() && writer.error().code == Errc::permission;
  })));
  CHECK(Store::create(dir / "other", {.group = "no such group"}).error().code == Errc::invalid);
  CHECK_FALSE(std::filesystem::exists(dir / "other"));
}

TEST_CASE("a full disk refuses a publish and leaves the store as it was") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    SmallDisk disk(dir, 1U << 20U, {{0}});
    disk.fill(0);
    if (!refused_without_trace(disk, {{0}, {0}})) return false;
    disk.clear();
    return must_publish(*open_store(disk.path), "m", {{0}, {0}}).version.number == 2;
  })));
}

TEST_CASE("every step of a commit meets a full disk") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    SmallDisk disk(dir, 4U << 20U, many(0, 100));
    // From no space to enough. The manifest, the journal and the pages of the index run out of space in turn.
    for (unsigned room = 0; room < 120; ++room) {
      disk.fill(room * 4096ULL);
      Files files = many(0, 100);
      files.push_back({room % 100});
      if (!refused_without_trace(disk, files)) return room > 0;
    }
    return false;
  })));
}

TEST_CASE("a process continues after a failed commit") {
  if (::getuid() != 0) return;
  TempDir dir;
  CHECK(exited(in_child([&] {
    SmallDisk disk(dir, 4U << 20U, many(0, 100));
    disk.fill(0);
    // A commit without a journal record, like those of gc and of a replay.
    auto write = [&] {
      WriterLock lock = must(disk.store->parts().index.lock());
      return disk.store->parts().index.write(lock, [](Txn& txn) -> Status {
        for (std::uint64_t n = 0; n < 5000; ++n) WEFT_CHECK(put(txn, Table::dead, key_of(n, n), NumberRow{n}));
        return {};
      });
    };
    const Status full = write();
    if (full.ok() || full.error().code != Errc::no_space) return false;
    if (must(disk.store->snapshot())->model("m").value().latest != 1) return false;
    disk.clear();
    return write().ok() && must_publish(*disk.store, "m", {{1}}).version.number == 2;
  })));
}
