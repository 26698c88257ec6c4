// Imports that take over files and turn them into packs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "unit/packs/pack_fixture.h"

namespace weft {
namespace {

using namespace testing;

constexpr std::size_t kMiB = 1U << 20U;

std::vector<Bytes> model() {
  std::vector<Bytes> parts;
  for (const std::size_t bytes : {3001UL, 700'000UL, 17UL, 3 * kMiB + 5, kMiB, 5 * kMiB})
    parts.push_back(random_bytes(bytes, parts.size()));
  return parts;
}

std::vector<ContentId> add_given(Importer& import, const Fd& fd, const std::vector<Bytes>& parts) {
  return ids_of(must(import.add(fd.get(), "given", ranges_of(parts), no_progress(), Take::move)));
}

std::uint64_t links(const Fd& fd) {
  return must(stat_fd(fd.get(), "given")).st_nlink;
}

TEST_CASE("a file of which nothing is known becomes the pack") {
  PackStore store;
  const auto parts = model();
  const Fd fd = store.source(join(parts));
  auto import = store.begin();
  const auto ids = add_given(*import, fd, parts);
  CHECK(links(fd) == 2);
  store.commit(*import, "", ids);
  CHECK(store.holds(ids, parts));
  const auto packs = must(store.packs->list());
  REQUIRE(packs.size() == 1);
  CHECK(must(stat_file(pack_path(store.path, packs[0]))).st_ino == must(stat_fd(fd.get(), "given")).st_ino);
}

TEST_CASE("a given file with known content is copied in part and left unchanged") {
  PackStore store;
  auto parts = model();
  store.publish(parts);
  const auto before = store.pack_files().size();
  parts[3] = random_bytes(parts[3].size(), 99);
  const Fd fd = store.source(join(parts), "derived");
  auto import = store.begin();
  const auto ids = add_given(*import, fd, parts);
  CHECK(links(fd) == 1);
  store.commit(*import, "", ids);
  CHECK(store.holds(ids, parts));
  CHECK(store.pack_files().size() == before + 2);  // a .pack and a .toc
  Bytes left(join(parts).size());
  must(read_exact(fd.get(), 0, left, "given"));
  CHECK(left == join(parts));
}

TEST_CASE("an import that fails gives the file back") {
  PackStore store;
  const auto parts = model();
  const Fd fd = store.source(join(parts));
  {
    auto import = store.begin();
    add_given(*import, fd, parts);
  }
  CHECK(links(fd) == 1);
  CHECK(store.temporaries().empty());
}

TEST_CASE("a given file with a writer or a second name is copied") {
  PackStore store;
  const auto parts = model();
  const Fd fd = store.source(join(parts));
  SUBCASE("open for writing") {
    const Fd writer = must(open_file(store.dir / "source", O_WRONLY));
    auto import = store.begin();
    add_given(*import, fd, parts);
    CHECK(links(fd) == 1);
  }
  SUBCASE("another name") {
    REQUIRE(::link((store.dir / "source").c_str(), (store.dir / "other").c_str()) == 0);
    auto import = store.begin();
    add_given(*import, fd, parts);
    CHECK(links(fd) == 2);
  }
}

TEST_CASE("a file that somebody has opened for writing since it was taken becomes no pack") {
  PackStore store;
  const auto parts = model();
  const Fd fd = store.source(join(parts));
  {
    auto import = store.begin();
    const auto ids = add_given(*import, fd, parts);
    must(import->seal());
    CHECK(::open((store.dir / "source").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC) < 0);
    CHECK(errno == EWOULDBLOCK);
    CHECK(import->place().error().code == Errc::busy);
  }
  CHECK(must(store.packs->list()).empty());
  CHECK(links(fd) == 1);
  CHECK(must(open_file(store.dir / "source", O_WRONLY)).valid());
}

TEST_CASE("a file may keep one other name") {
  PackStore store;
  const auto parts = model();
  const Fd fd = store.source(join(parts));
  REQUIRE(::link((store.dir / "source").c_str(), (store.dir / "other").c_str()) == 0);
  const nlink_t links_then = 3;  // three names, whether the pack is one of them or not
  SUBCASE("one") {}
  SUBCASE("and not two") {
    REQUIRE(::link((store.dir / "source").c_str(), (store.dir / "third").c_str()) == 0);
  }
  auto import = store.begin();
  must(import->add(fd.get(), "given", ranges_of(parts), no_progress(), Take::share));
  CHECK(links(fd) == links_then);
}

}  // namespace
}  // namespace weft
