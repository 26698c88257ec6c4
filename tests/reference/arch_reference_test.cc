// The index of architectures compared with a scan over all graphs, which uses no ids.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/core.h>

#include "archindex/index.h"
#include "archindex/match.h"
#include "base/limits.h"
#include "blobs/arch_items.h"
#include "reference/arch_graphs.h"
#include "store_paths.h"
#include "testing.h"

namespace weft::testing {
namespace {

constexpr unsigned kRounds = 1200;

// The four tables, in a transaction that is never committed.
struct Index {
  Index() {
    must(Env::create(safe(dir.path())));
    EnvOptions options;
    options.write = true;
    options.sync = false;
    env = must(Env::open(safe(dir.path()), options));
    lock.emplace(must(env->lock_writer()));
  }
  Txn begin() { return must(env->write(*lock)); }

  TempDir dir;
  std::unique_ptr<Env> env;
  std::optional<WriterLock> lock;
};

std::string rows(Txn& txn) {
  std::string text;
  for (Table table : {Table::architectures, Table::arch_of, Table::arch_versions, Table::arch_items})
    must(each_entry(txn, table, "", [&](const Entry& entry) -> Status {
      text += fmt::format("{} {} {} {} {}\n", table_name(table), entry.key.size(), entry.key, entry.value.size(),
                          entry.value);
      return {};
    }));
  return text;
}

struct Stored {
  VersionRow row;
  ArchGraph graph;
};

std::vector<ArchItem> items(const ArchGraph& graph) {
  return items_of(graph, vertex_ids(graph));
}

void publish(Txn& txn, const Stored& stored) {
  must(put(txn, Table::versions, key_of(stored.row.id), stored.row));
  must(add_architecture(txn, stored.row, items(stored.graph)));
}

// Checks that foresee_architecture() succeeds and changes no row.
void foresee(Txn& txn, const Stored& stored) {
  const std::string before = rows(txn);
  VersionRow row = stored.row;
  row.id = UINT64_MAX;
  must(foresee_architecture(txn, row, items(stored.graph)));
  CHECK(rows(txn) == before);
}

void remove(Txn& txn, const Stored& stored) {
  must(remove_architecture(txn, stored.row));
  must(txn.erase(Table::versions, key_of(stored.row.id)));
}

Stored random_version(Random& random, VersionId id, const std::vector<ArchGraph>& seeds) {
  Stored stored;
  stored.row.id = id;
  stored.row.model_name = "m";
  stored.row.number = id;
  stored.graph = seeds[random() % seeds.size()];
  if (random() % 3 != 0) stored.graph = changed_graph(stored.graph, random);
  static const char* const kValues[] = {"0.5", "-1", "0.25", "nan", "good", "1e9", "0", "-0"};
  if (random() % 4 != 0) stored.row.metrics.emplace_back("acc", kValues[random() % 8]);
  if (random() % 2 != 0) stored.row.metrics.emplace_back("loss", kValues[random() % 8]);
  return stored;
}

std::optional<double> number_of(const VersionRow& row, const std::string& metric) {
  for (const auto& [key, text] : row.metrics)
    if (key == metric && text != "good" && text != "nan") return std::strtod(text.c_str(), nullptr);
  return {};
}

std::vector<std::pair<VersionId, std::uint64_t>> scanned(const std::map<VersionId, Stored>& all, const ArchGraph& graph,
                                                         const MatchQuery& query) {
  struct Row {
    std::uint64_t shared;
    std::optional<double> value;
    VersionId id;
  };
  std::vector<Row> found;
  for (const auto& [id, stored] : all) {
    std::uint64_t shared = walked_prefix(graph, stored.graph);
    if (shared > 0 && id != query.except) found.push_back({shared, number_of(stored.row, query.metric), id});
  }
  std::ranges::sort(found, [&](const Row& a, const Row& b) {
    if (a.shared != b.shared) return a.shared > b.shared;
    if (a.value.has_value() != b.value.has_value()) return a.value.has_value();
    if (a.value && *a.value != *b.value) return query.smallest ? *a.value < *b.value : *a.value > *b.value;
    return a.id < b.id;
  });
  std::vector<std::pair<VersionId, std::uint64_t>> hits;
  for (const Row& row : found)
    if (hits.size() < query.top) hits.emplace_back(row.id, row.shared);
  return hits;
}

MatchQuery random_query(Random& random, const ArchGraph& graph, const std::map<VersionId, Stored>& all) {
  static const char* const kMetrics[] = {"", "acc", "loss", "unknown"};
  MatchQuery query{items(graph), kMetrics[random() % 4], random() % 2 == 0, 1 + random() % 6, {}};
  if (!all.empty() && random() % 3 == 0) query.except = all.begin()->first;
  return query;
}

class Round {
 public:
  Round(Txn& txn, Random& random) : txn_(txn), random_(random) {
    for (unsigned i = 0; i < 1 + random_() % 4; ++i) seeds_.push_back(random_graph(random_));
  }

  void run() {
    for (unsigned step = 0; step < 24; ++step) {
      if (random_() % 4 != 0 || all_.empty())
        add();
      else
        take();
      if (random_() % 2 == 0) ask();
    }
  }

  // Checks that the rows are those of the present versions, independent of earlier changes.
  void check_rows(Txn& fresh) const {
    for (const auto& [id, stored] : all_) publish(fresh, stored);
    CHECK(rows(txn_) == rows(fresh));
  }

  void take_all() {
    while (!all_.empty()) take();
    CHECK(rows(txn_).empty());
  }

 private:
  void add() {
    Stored stored = random_version(random_, next_++, seeds_);
    if (random_() % 4 == 0) foresee(txn_, stored);
    publish(txn_, stored);
    all_.emplace(stored.row.id, std::move(stored));
  }

  void take() {
    auto at = std::next(all_.begin(), static_cast<std::ptrdiff_t>(random_() % all_.size()));
    remove(txn_, at->second);
    all_.erase(at);
  }

  void ask() {
    ArchGraph graph = seeds_[random_() % seeds_.size()];
    if (random_() % 2 == 0) graph = changed_graph(graph, random_);
    MatchQuery query = random_query(random_, graph, all_);
    std::vector<std::pair<VersionId, std::uint64_t>> got;
    auto wanted = scanned(all_, graph, query);
    for (std::uint64_t steps_max : {limits::kMatchStepsMax, random_() % 4}) {
      got.clear();
      for (const MatchHit& hit : must(match_architectures(txn_, query, steps_max)))
        got.emplace_back(hit.version, hit.shared);
      CHECK(got == wanted);
    }
  }

  Txn& txn_;
  Random& random_;
  std::vector<ArchGraph> seeds_;
  std::map<VersionId, Stored> all_;
  VersionId next_ = 1;
};

}  // namespace

TEST_CASE("ids agree with a walk over both graphs") {
  std::uint64_t seed = test_seed();
  for (unsigned round = 0; round < kRounds; ++round) {
    INFO("WEFT_TEST_SEED=", seed, " round ", round);
    Random random(seed + round);
    ArchGraph a = random_graph(random);
    ArchGraph b = random() % 4 == 0 ? random_graph(random) : changed_graph(a, random);
    CHECK(common_prefix(vertex_ids(a), vertex_ids(b)).size() == walked_prefix(a, b));
  }
}

// Graphs that differ late share many vertices. Skips make that so even after the first difference.
TEST_CASE("ids of deep graphs with long skips agree with a walk, and the index with a scan") {
  std::uint64_t seed = test_seed();
  Index index;
  std::uint64_t longest = 0;
  for (unsigned round = 0; round < 12; ++round) {
    INFO("WEFT_TEST_SEED=", seed, " round ", round);
    Random random(seed + round);
    const ArchGraph base = long_graph(random);
    Txn txn = index.begin();
    std::map<VersionId, Stored> all;
    for (VersionId id = 1; id <= 12; ++id) {
      Stored stored = random_version(random, id, {base});
      stored.graph = changed_graph(base, random);
      const auto shared = common_prefix(vertex_ids(base), vertex_ids(stored.graph)).size();
      CHECK(shared == walked_prefix(base, stored.graph));
      longest = std::max<std::uint64_t>(longest, shared);
      publish(txn, stored);
      all.emplace(id, std::move(stored));
    }
    const MatchQuery query{items(base), "acc", false, 5, {}};
    std::vector<std::pair<VersionId, std::uint64_t>> got;
    for (const MatchHit& hit : must(match_architectures(txn, query))) got.emplace_back(hit.version, hit.shared);
    CHECK(got == scanned(all, base, query));
  }
  CHECK(longest > 40);
}

TEST_CASE("the index answers as a scan does, and its rows are those of what is stored") {
  std::uint64_t seed = test_seed();
  Index index;
  Index other;
  for (unsigned round = 0; round < kRounds; ++round) {
    INFO("WEFT_TEST_SEED=", seed, " round ", round);
    Random random(seed + round);
    Txn txn = index.begin();
    Txn fresh = other.begin();
    Round life(txn, random);
    life.run();
    if (round % 10 == 0) life.check_rows(fresh);
    if (round % 10 == 5) life.take_all();
  }
}

// Each item belongs to many classes, some without the metric. Its list is read in several parts and in two orders.
TEST_CASE("match lists the best classes first among many that share branches, for each metric") {
  constexpr std::uint64_t kBranches = 12;
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  ArchGraph whole{"branches", {{"input", "", {}, {}, {}, false}}};
  for (std::uint64_t i = 0; i < kBranches; ++i)
    whole.vertices.push_back({"linear", "", {{"branch", std::to_string(i)}}, {}, {0}, false});
  Index index;
  Txn txn = index.begin();
  std::map<VersionId, Stored> all;
  for (VersionId id = 1; id <= 250; ++id) {
    Stored stored = random_version(random, id, {whole});
    stored.graph = whole;
    std::shuffle(stored.graph.vertices.begin() + 1, stored.graph.vertices.end(), random);
    stored.graph.vertices.resize(2 + random() % 5);
    publish(txn, stored);
    all.emplace(id, std::move(stored));
  }
  for (unsigned round = 0; round < 100; ++round) {
    INFO("round ", round);
    ArchGraph graph = whole;
    std::shuffle(graph.vertices.begin() + 1, graph.vertices.end(), random);
    graph.vertices.resize(2 + random() % kBranches);
    MatchQuery query = random_query(random, graph, all);
    query.top = 1 + random() % 60;
    std::vector<std::pair<VersionId, std::uint64_t>> got;
    for (const MatchHit& hit : must(match_architectures(txn, query))) got.emplace_back(hit.version, hit.shared);
    CHECK(got == scanned(all, graph, query));
  }
}

// Lists take many pages, and marks of 40 items have few zero bits, so possible items of a class are looked up.
TEST_CASE("match lists the best classes first in long lists with deep branches, after publishes and removals") {
  constexpr std::uint64_t kBranches = 14;
  constexpr std::uint64_t kVersions = 900;
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  auto branches = [&] {
    ArchGraph graph{"deep branches", {{"input", "", {}, {}, {}, false}}};
    for (std::uint64_t branch = 0; branch < kBranches; ++branch) {
      std::uint32_t at = 0;
      for (std::uint64_t depth = random() % 5; depth > 1; --depth) {
        graph.vertices.push_back({"linear", "", {{"branch", std::to_string(branch)}}, {}, {at}, false});
        at = static_cast<std::uint32_t>(graph.vertices.size() - 1);
      }
    }
    return graph;
  };
  Index index;
  Txn txn = index.begin();
  std::map<VersionId, Stored> all;
  for (VersionId id = 1; id <= kVersions; ++id) {
    Stored stored = random_version(random, id, {branches()});
    stored.graph = branches();
    publish(txn, stored);
    all.emplace(id, std::move(stored));
  }
  std::uint64_t asked = 0;
  for (unsigned round = 0; round < 60; ++round) {
    INFO("round ", round);
    for (unsigned i = 0; i < 5; ++i) {
      auto at = std::next(all.begin(), static_cast<std::ptrdiff_t>(random() % all.size()));
      remove(txn, at->second);
      all.erase(at);
    }
    const ArchGraph graph = branches();
    MatchQuery query = random_query(random, graph, all);
    query.top = round % 4 == 0 ? 1 + random() % 300 : 1 + random() % 10;
    const auto wanted = scanned(all, graph, query);
    for (std::uint64_t steps_max : {std::uint64_t{1} << 40U, 50 + random() % 200}) {
      std::vector<std::pair<VersionId, std::uint64_t>> got;
      MatchWork work;
      for (const MatchHit& hit : must(match_architectures(txn, query, steps_max, &work)))
        got.emplace_back(hit.version, hit.shared);
      CHECK(got == wanted);
      asked += work.asked;
    }
  }
  CHECK(asked > 0);
}

// A class has several rows in the index. A match reads rows of a class only as far as items are shared. One class
// shares far more items than the others.
TEST_CASE("deep classes of several parts are compared as far as they are the same") {
  constexpr std::uint64_t kDepth = 400;
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  ArchGraph whole{"deep", {{"input", "", {}, {}, {}, false}}};
  for (std::uint32_t i = 0; i < kDepth; ++i) {
    whole.vertices.push_back({"linear", "", {{"layer", std::to_string(i)}}, {}, {i == 0 ? 0 : 2 * i - 1}, false});
    whole.vertices.push_back({"skip", "", {{"layer", std::to_string(i)}}, {}, {i == 0 ? 0 : 2 * i - 1}, false});
  }
  Index index;
  Txn txn = index.begin();
  std::map<VersionId, Stored> all;
  for (VersionId id = 1; id <= 40; ++id) {
    Stored stored = random_version(random, id, {whole});
    stored.graph = whole;
    for (unsigned changes = 0; changes < 2; ++changes)
      stored.graph.vertices[1 + random() % (2 * kDepth)].params[0].second += fmt::format(" of {}", random() % 8);
    publish(txn, stored);
    all.emplace(id, std::move(stored));
  }
  for (unsigned round = 0; round < 20; ++round) {
    INFO("round ", round);
    ArchGraph graph = round % 2 == 0 ? whole : all.at(1 + random() % 40).graph;
    if (round % 4 == 0) graph.vertices[1 + random() % (2 * kDepth)].params[0].second += " else";
    MatchQuery query = random_query(random, graph, all);
    std::vector<std::pair<VersionId, std::uint64_t>> got;
    for (const MatchHit& hit : must(match_architectures(txn, query))) got.emplace_back(hit.version, hit.shared);
    CHECK(got == scanned(all, graph, query));
  }
  while (!all.empty()) {
    remove(txn, all.begin()->second);
    all.erase(all.begin());
  }
  CHECK(rows(txn).empty());
}

// There are far too many sets of branches common to several classes to examine each set.
TEST_CASE("architectures with many rarely joined branches are matched") {
  constexpr std::uint64_t kBranches = 60;
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  Random random(seed);
  ArchGraph whole{"branches", {}};
  for (std::uint64_t i = 0; i < kBranches; ++i)
    whole.vertices.push_back({"linear", "", {{"branch", std::to_string(i)}}, {}, {}, false});
  Index index;
  Txn txn = index.begin();
  std::map<VersionId, Stored> all;
  for (VersionId id = 1; id <= 40; ++id) {
    Stored stored = random_version(random, id, {whole});
    stored.graph = whole;
    std::ranges::shuffle(stored.graph.vertices, random);
    stored.graph.vertices.resize(kBranches / 2);
    publish(txn, stored);
    all.emplace(id, std::move(stored));
  }
  MatchQuery query{items(whole), "acc", false, 5, {}};
  std::vector<std::pair<VersionId, std::uint64_t>> got;
  for (const MatchHit& hit : must(match_architectures(txn, query))) got.emplace_back(hit.version, hit.shared);
  CHECK(got == scanned(all, whole, query));
}

}  // namespace weft::testing
