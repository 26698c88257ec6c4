// Runs imports, removals, gc and fsck concurrently over one index. Meant to run under TSan.
#include <atomic>
#include <random>
#include <thread>

#include "pack_fixture.h"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr int kRounds = 30;

// Draws content from a small pool, so that imports share blobs, live or dead.
Bytes pooled(std::mt19937_64& random) {
  std::uint64_t seed = random() % 40;
  return random_bytes(seed % 4 == 0 ? (1U << 20U) + 100000 * seed : 500 + 3000 * seed, seed);
}

void import_and_remove(PackStore& store, const std::string& name, std::uint64_t seed, std::atomic<int>& wrong) {
  std::mt19937_64 random(seed);
  std::vector<ContentId> mine;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Bytes> parts;
    for (std::size_t i = 1 + random() % 6; i > 0; --i) parts.push_back(pooled(random));
    parts.push_back(random_bytes(100 + random() % 2000, random()));  // of this import alone
    Fd fd = store.source(join(parts), name);
    auto import = store.begin();
    auto ids = ids_of(must(import->add(fd.get(), name, ranges_of(parts), no_progress())));
    store.commit(*import, name, ids);
    import.reset();
    if (!store.holds(ids, parts)) ++wrong;
    if (round % 3 == 2) store.index.release_for(name);
  }
}

}  // namespace

TEST_CASE("imports, removals, gc and fsck at once") {
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=" << seed);
  PackStore store;
  std::atomic<int> wrong{0};
  std::atomic<int> problems{0};
  std::atomic<bool> done{false};
  std::thread collector([&] {
    while (!done) store.gc();
  });
  std::thread checker([&] {
    while (!done) problems += static_cast<int>(store.fsck().problems.size());
  });
  std::thread other([&] { import_and_remove(store, "other", seed + 1, wrong); });
  import_and_remove(store, "one", seed, wrong);
  other.join();
  done = true;
  collector.join();
  checker.join();
  CHECK(wrong == 0);
  CHECK(problems == 0);
  store.index.release_for("one");
  store.index.release_for("other");
  store.gc();
  CHECK(store.pack_files().empty());
  CHECK(store.temporaries().empty());
}
