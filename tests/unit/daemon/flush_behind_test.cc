// Versions in memory reach the disk, however they came into the index.
#include "daemon/background/flush_behind.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "fakes/stepped_time.h"
#include "os/sys.h"
#include "unit/store/index_support.h"

namespace weft::testing {
namespace {

void publish_in_memory(StoreImpl& store, unsigned content) {
  const auto import = must(store.begin_import(Durability::memory));
  TempDir dir;
  write_file(dir / "source", as_text(content_bytes(content)));
  const Fd fd = must(open_file(dir / "source", O_RDONLY));
  const Range all{0, content_id(content).length};
  must(import->add(fd.get(), "source", std::span(&all, 1), no_progress()));
  PublishRequest request;
  request.model = "m";
  request.manifest = manifest_of({{content}});
  request.content = make_content({{content}});
  must(import->publish(request));
}

std::size_t in_memory(Store& store) {
  return must(must(store.snapshot())->in_memory(0, 100)).size();
}

// Leaves a version in memory that is in the journal and not in the index.
void die_behind_the_journal(const std::string& path) {
  REQUIRE(exited(in_child([&] {
                   CommitHooks hooks;
                   hooks.after_journal = [] { ::_exit(9); };
                   publish_in_memory(*open_store(path, write_options(), hooks), 1);
                   return false;
                 }),
                 9));
}

}  // namespace

TEST_CASE("a daemon's first look sees a version that was journaled and not indexed") {
  TestStore test;
  die_behind_the_journal(test.path);
  CHECK(in_memory(*open_store(test.path)) == 0);
  const auto store = must(StoreImpl::open_as_daemon(test.path, write_options(), {}));
  CHECK(in_memory(*store) == 1);
}

TEST_CASE("a version in memory that a later writer shows is flushed without a publish") {
  TestStore test;
  die_behind_the_journal(test.path);
  const auto store = open_store(test.path);
  const auto registry = local_registry(*store, store->memory());
  SteppedTime time;
  FlushBehind memory(*store, store->memory(), *registry, "", 1U << 30U, time);
  CHECK(memory.status().versions == 0);
  const auto pause = time.next_pause();  // the first round has ended
  must_publish(*store, "other", {{7}});  // replays the journal
  REQUIRE(must(must(store->snapshot())->model("m")).latest == 1);
  CHECK(in_memory(*store) == 1);
  time.pass(pause);
  static_cast<void>(time.next_pause());  // the second round has ended
  CHECK(in_memory(*store) == 0);
  CHECK(memory.status().kept == 1);
}

}  // namespace weft::testing
