#include "fuse/state/open_files.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "fakes/memory_vfs.h"
#include "fuse/process/shared_state.h"
#include "testing.h"

namespace weft {
namespace {

// The state of one mount, and its successive servers.
struct Mounted {
  Mounted() : state(SharedState::make().value()) {
    tree.add_file("a", "text");
    tree.add_counter("status");
    tree.add_streamed_file("coming", "from elsewhere");
    coming = tree.lookup(kRootIno, "coming").value().ino;
    file = tree.lookup(kRootIno, "a").value().ino;
    status = tree.lookup(kRootIno, "status").value().ino;
  }
  SharedState state;
  testing::MemoryVfs tree;
  Ino file = 0;
  Ino status = 0;
  Ino coming = 0;

  void agree_on_maps() {
    state.head().init.reply.flags2 = kernel::kDirectMapsFlag2;
    state.head().init.answered = 1;
  }
};

struct OneServer {
  explicit OneServer(Mounted& mounted)
      : table(mounted.state.head().opens, mounted.state.slots()),
        files(mounted.tree, nullptr, passthrough, table, mounted.state.head().init) {}
  Passthrough passthrough;
  OpenTable table;
  OpenFiles files;
};

// This process may have few files open.
class FewFiles {
 public:
  explicit FewFiles(rlim_t count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{count, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

bool is_open(OpenFiles& files, Ino ino) {
  const auto found = files.find(ino);
  return found.ok() && *found != nullptr;
}

}  // namespace

TEST_CASE("an inode is open until each of its handles is closed, in any order") {
  Mounted mounted;
  OneServer server(mounted);
  CHECK(server.files.open(mounted.file, 2)->way == ReadWay::cached);
  REQUIRE(server.files.open(mounted.file, 4).ok());
  server.files.close(mounted.file, 2);
  CHECK(is_open(server.files, mounted.file));
  CHECK(server.files.attr(mounted.file)->size == 4);
  server.files.close(mounted.file, 4);
  CHECK_FALSE(is_open(server.files, mounted.file));
  CHECK_FALSE(server.files.attr(mounted.file).has_value());
}

TEST_CASE("two nodes lead to one inode, and are opened apart") {
  Mounted mounted;
  OneServer server(mounted);
  const NodeId second = second_node(mounted.file);
  CHECK(ino_of(second) == mounted.file);
  CHECK_FALSE(server.files.is_served(mounted.file));
  const auto first_answer = server.files.open(mounted.file, 2);
  REQUIRE(first_answer.ok());
  CHECK_FALSE(first_answer->joined);
  CHECK(server.files.open(mounted.file, 4)->joined);
  CHECK(server.files.is_served(mounted.file));
  CHECK_FALSE(server.files.is_served(second));
  REQUIRE(server.files.open(second, 6).ok());
  CHECK(server.files.attr(second)->ino == mounted.file);
  server.files.close(mounted.file, 2);
  server.files.close(mounted.file, 4);
  CHECK_FALSE(server.files.is_served(mounted.file));
  CHECK(is_open(server.files, second));
}

TEST_CASE("a remote file is read uncached if the kernel can map such files, else cached") {
  Mounted mounted;
  OneServer server(mounted);
  CHECK(server.files.open(mounted.coming, 2)->way == ReadWay::cached);
  server.files.close(mounted.coming, 2);
  mounted.agree_on_maps();
  CHECK(server.files.open(mounted.coming, 4)->way == ReadWay::straight);
  CHECK(server.files.is_served(mounted.coming));
  CHECK(server.files.open(mounted.coming, 6)->way == ReadWay::straight);
  CHECK(server.files.open(mounted.file, 8)->way == ReadWay::cached);
  CHECK(server.files.open(mounted.status, 10)->way == ReadWay::direct);
  CHECK_FALSE(server.files.is_served(mounted.status));
}

TEST_CASE("an open of a mapped streamed file is cached until all have closed it; earlier opens stay") {
  Mounted mounted;
  mounted.agree_on_maps();
  OneServer server(mounted);
  REQUIRE(server.files.open(mounted.coming, 2)->way == ReadWay::straight);
  server.files.mapped(mounted.coming);
  server.files.mapped(mounted.file);  // not open
  CHECK(server.files.open(mounted.coming, 4)->way == ReadWay::cached);
  CHECK(server.files.open(mounted.coming, 2)->way == ReadWay::straight);
  server.files.close(mounted.coming, 2);
  CHECK(server.files.open(mounted.coming, 6)->way == ReadWay::cached);
  server.files.close(mounted.coming, 4);
  server.files.close(mounted.coming, 6);
  CHECK(server.files.open(mounted.coming, 8)->way == ReadWay::straight);
  CHECK(server.files.open(mounted.file, 10)->way == ReadWay::cached);
}

TEST_CASE("a new server goes on with what is read straight") {
  Mounted mounted;
  mounted.agree_on_maps();
  {
    OneServer first(mounted);
    REQUIRE(first.files.open(mounted.coming, 2)->way == ReadWay::straight);
    first.files.mapped(mounted.coming);
    REQUIRE(first.files.open(mounted.coming, 4)->way == ReadWay::cached);
  }
  OneServer second(mounted);
  CHECK(second.files.open(mounted.coming, 2)->way == ReadWay::straight);
  CHECK(second.files.open(mounted.coming, 4)->way == ReadWay::cached);
  CHECK(second.files.is_served(mounted.coming));
  CHECK((*second.files.find(mounted.coming))->mode() == ReadMode::streamed);
  second.files.close(mounted.coming, 2);
  second.files.close(mounted.coming, 4);
  CHECK(second.table.size() == 0);
}

TEST_CASE("requests that come twice count once") {
  Mounted mounted;
  OneServer server(mounted);
  REQUIRE(server.files.open(mounted.file, 2).ok());
  REQUIRE(server.files.open(mounted.file, 2).ok());
  REQUIRE(server.files.open(mounted.file, 4).ok());
  server.files.close(mounted.file, 4);
  server.files.close(mounted.file, 4);
  CHECK(is_open(server.files, mounted.file));
  server.files.close(mounted.file, 2);
  CHECK_FALSE(is_open(server.files, mounted.file));
  CHECK(server.table.size() == 0);
}

TEST_CASE("a new server goes on with what was open") {
  Mounted mounted;
  {
    OneServer first(mounted);
    REQUIRE(first.files.open(mounted.file, 2).ok());
    CHECK(first.files.open(mounted.status, 4)->way == ReadWay::direct);
  }
  OneServer second(mounted);
  second.files.reopen();
  CHECK(second.files.attr(mounted.file)->size == 4);
  CHECK((*second.files.find(mounted.file))->size() == 4);
  CHECK(second.files.open(mounted.status, 4)->way == ReadWay::direct);
  second.files.close(mounted.file, 2);
  second.files.close(mounted.status, 4);
  CHECK(second.table.size() == 0);
}

TEST_CASE("a new server keeps the way of reading, and the backing id, that the kernel was told") {
  Mounted mounted;
  const OneServer seed(mounted);
  OpenTable table(mounted.state.head().opens, mounted.state.slots());
  REQUIRE(table.add({8, mounted.file, ReadWay::passthrough, 5, {}}));
  OneServer server(mounted);
  const auto answer = server.files.open(mounted.file, 10);
  REQUIRE(answer.ok());
  CHECK(answer->way == ReadWay::passthrough);
  CHECK(answer->backing_id == 5);
}

TEST_CASE("of the files that the kernel reads without the server, those used last are kept") {
  Mounted mounted;
  constexpr std::size_t kFiles = kOpenFilesKept + 10;
  std::vector<Ino> inos;
  {
    OpenTable table(mounted.state.head().opens, mounted.state.slots());
    for (std::size_t i = 0; i < kFiles; ++i) {
      const std::string name = "shard-" + std::to_string(i);
      mounted.tree.add_file(name, name);
      inos.push_back(mounted.tree.lookup(kRootIno, name).value().ino);
      REQUIRE(table.add({2 + 2 * i, inos.back(), ReadWay::passthrough, static_cast<std::int32_t>(i + 1), {}}));
    }
    REQUIRE(table.add({3, mounted.file, ReadWay::cached, 0, {}}));
  }
  OneServer server(mounted);
  const std::weak_ptr<OpenFile> cached = server.files.find(mounted.file).value();
  std::vector<std::weak_ptr<OpenFile>> files;
  for (const Ino ino : inos) files.push_back(server.files.find(ino).value());
  CHECK(std::ranges::count_if(files, [](const auto& file) { return file.expired(); }) == 10);
  CHECK(files[9].expired());
  CHECK_FALSE(files[10].expired());
  CHECK_FALSE(cached.expired());
  CHECK(server.files.attr(inos[0])->size == 7);
  CHECK(server.files.open(inos[0], 7001)->backing_id == 1);
  CHECK((*server.files.find(inos[0]))->size() == 7);
  CHECK(files[10].expired());
  server.files.close(inos[0], 7001);
  for (std::size_t i = 0; i < kFiles; ++i) server.files.close(inos[i], 2 + 2 * i);
  CHECK(std::ranges::all_of(files, [](const auto& file) { return file.expired(); }));
  CHECK(server.table.size() == 1);
}

TEST_CASE("a failed open is not counted") {
  Mounted mounted;
  OneServer server(mounted);
  CHECK_FALSE(server.files.open(12345, 2).ok());
  CHECK(server.table.size() == 0);
  CHECK_FALSE(is_open(server.files, 12345));
}

TEST_CASE("a user's open drafts leave descriptors to others, also in a new server") {
  constexpr uid_t kOne = 64001, kOther = 64002;
  const FewFiles few(80);  // 60 for drafts, of which one user may have 30
  const auto draft = [](std::uint64_t number) { return kNewIno | (100U + number); };
  Mounted mounted;
  {
    OpenTable table(mounted.state.head().opens, mounted.state.slots());
    for (std::uint64_t handle = 1; handle <= 10; ++handle)
      REQUIRE(table.add({handle, draft(handle), ReadWay::direct, 0, {}, kOne}));
  }
  OneServer server(mounted);
  CHECK(server.files.opener(3) == kOne);
  CHECK(server.files.opener(99) == 0);
  std::vector<OpenShare> shares;
  for (std::uint64_t handle = 20; handle < 25; ++handle) {
    auto share = server.files.share_for_draft(kOne, handle, draft(handle));
    REQUIRE(share.ok());
    shares.push_back(std::move(share).value());
  }
  CHECK(server.files.share_for_draft(kOne, 25, draft(25)).error().os_error == EMFILE);
  CHECK(server.files.share_for_draft(kOne, 25, {}).error().os_error == EMFILE);
  CHECK(server.files.share_for_draft(kOne, 3, draft(3)).ok());   // the handle is open
  CHECK(server.files.share_for_draft(kOne, 25, draft(3)).ok());  // the draft is open
  CHECK(server.files.share_for_draft(kOther, 26, draft(26)).ok());
  CHECK(server.files.share_for_draft(0, 27, draft(27)).ok());
  server.files.close(draft(3), 3);
  CHECK(server.files.share_for_draft(kOne, 28, draft(28)).ok());
}

TEST_CASE("the handles of a user for one draft hold one share until the last is closed") {
  constexpr uid_t kOne = 64001, kOther = 64002;
  constexpr Ino kDraft = kNewIno | 5U;
  const FewFiles few(40);  // 30 for drafts, of which one user may have 15: seven drafts
  Mounted mounted;
  {
    OpenTable table(mounted.state.head().opens, mounted.state.slots());
    for (std::uint64_t handle = 1; handle <= 20; ++handle)
      REQUIRE(table.add({handle, kDraft, ReadWay::direct, 0, {}, kOne}));
  }
  OneServer server(mounted);
  std::vector<OpenShare> shares;
  const auto opens_more = [&](uid_t user, std::size_t drafts) {
    shares.clear();
    for (std::uint64_t handle = 100; handle < 200; ++handle)
      if (auto share = server.files.share_for_draft(user, handle, {}); share.ok())
        shares.push_back(std::move(share).value());
    return shares.size() == drafts;
  };
  CHECK(opens_more(kOne, 6));
  CHECK(server.files.share_for_draft(kOne, 21, kDraft).ok());
  shares.clear();
  for (std::uint64_t handle = 2; handle <= 20; ++handle) server.files.close(kDraft, handle);
  CHECK(opens_more(kOne, 6));
  shares.clear();
  server.files.close(kDraft, 1);
  CHECK(opens_more(kOne, 7));
  CHECK(opens_more(kOther, 7));
}

TEST_CASE("threads open and close one inode") {
  Mounted mounted;
  OneServer server(mounted);
  std::atomic<std::uint64_t> handles{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        const std::uint64_t handle = handles += 2;
        if (!server.files.open(mounted.file, handle).ok()) return;
        if (!is_open(server.files, mounted.file)) return;
        server.files.close(mounted.file, handle);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(handles == 4000);
  CHECK(server.table.size() == 0);
}

}  // namespace weft
