// gc reads only the packs that the index has queued. It scans all packs only after a process may have died.
#include <doctest/doctest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "diskformat/pack_names.h"
#include "index_support.h"
#include "os/sys.h"
#include "store_paths.h"

using namespace weft;
using namespace weft::testing;

namespace {

namespace fs = std::filesystem;

// Counts opens of files in these directories.
class OpenCount {
 public:
  explicit OpenCount(const std::string& store) : fd_(::inotify_init1(IN_NONBLOCK)) {
    for (const char* name : {"/packs", "/manifests"})
      REQUIRE(::inotify_add_watch(fd_.get(), (store + name).c_str(), IN_OPEN) >= 0);
  }
  std::size_t files() {
    std::size_t count = 0;
    alignas(inotify_event) std::array<char, 1U << 16U> buffer{};
    for (;;) {
      const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
      if (got <= 0) return count;
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        if (event->len != 0) ++count;  // not the directory itself
        at += static_cast<ssize_t>(sizeof *event) + event->len;
      }
    }
  }

 private:
  Fd fd_;
};

struct SettledStore {
  explicit SettledStore(unsigned versions) {
    for (unsigned n = 0; n < versions; ++n) must_publish(*store, "m", {{2 * n, 2 * n + 1}});
    for (int i = 0; i < 3; ++i) gc();
  }
  GcReport gc(const GcOptions& options = {}) { return must(store->gc(options, no_progress())); }
  std::size_t files_of_idle_gc() {
    OpenCount opened(test.path);
    gc();
    return opened.files();
  }
  std::size_t packs() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(test.path + "/packs"), {}));
  }
  // Places a copy of a pack that the index does not name, as a dead process may leave it.
  void leave_pack() const {
    for (const auto& entry : fs::directory_iterator(test.path + "/packs")) {
      const auto pack = pack_of_name(entry.path().filename().string(), ".toc");
      if (!pack || kind_of_pack(*pack) == PackKind::manifests) continue;
      PackToc toc = must(read_toc_of(safe(test.path), *pack));
      const PackId other = new_pack_id(PackKind::blobs);
      fs::copy(pack_path(safe(test.path), *pack).str(), pack_path(safe(test.path), other).str());
      toc.pack = other;
      must(write_toc(toc_path(safe(test.path), other), toc));
      return;
    }
  }

  TestStore test;
  std::unique_ptr<StoreImpl> store = open_store(test.path);
};

}  // namespace

TEST_CASE("a gc with nothing to do opens as few files, however many versions there are") {
  SettledStore few(40);
  SettledStore many(160);
  const std::size_t opened = few.files_of_idle_gc();
  CHECK(opened <= 8);
  CHECK(many.files_of_idle_gc() == opened);
}

TEST_CASE("an idle gc makes no commit") {
  SettledStore of(40);
  const IndexState before = must(of.store->state());
  of.gc();
  CHECK(must(of.store->state()) == before);
}

TEST_CASE("a removal leads gc to the packs that it leaves dead bytes in") {
  SettledStore of(40);
  must_publish(*of.store, "big", {{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}});
  must_publish(*of.store, "small", {{101, 102, 103, 104, 105, 106, 107, 108, 109}});
  for (int i = 0; i < 3; ++i) of.gc();
  must(of.store->remove_version("big", 1));
  const GcReport first = of.gc();
  CHECK(first.versions_reaped == 1);
  CHECK(first.dead_bytes == content_id(100).length);
  CHECK(of.gc().dead_bytes == first.dead_bytes);  // reported without reading a file
  CHECK(of.gc({.all = true}).dead_bytes == 0);
  CHECK(of.gc().dead_bytes == 0);
  must(of.store->remove_version("small", 1));
  of.gc();
  CHECK(of.gc().dead_bytes == 0);
}

TEST_CASE("gc looks at all packs after a process died, and if told to") {
  SettledStore of(40);
  const std::size_t packs = of.packs();
  of.leave_pack();
  CHECK(of.packs() == packs + 2);
  SUBCASE("a process died") {
    fs::create_directories(of.test.path + "/tmp/0123456789abcdef");
  }
  SUBCASE("it is told to") {
    of.gc();
    CHECK(of.packs() == packs + 2);
    of.gc({.all = true});
  }
  of.gc();
  CHECK(of.packs() == packs);
  CHECK(must(of.store->fsck({}, decode, no_progress())).clean());
}
