// Measures match against EvoStore's baseline:
//
//   lineage_match fill STORE LAYERS seq|skip COUNT
//     fills the index of a store with samples 0 to COUNT - 1; resumes an interrupted fill
//   lineage_match query STORE LAYERS seq|skip CLIENTS N W
//     each client sends N queries, after W queries that are not measured
//   lineage_match work STORE LAYERS seq|skip N
//     rows that the same N queries of one client read, and the least of three times of each
//   lineage_match add STORE LAYERS seq|skip N
//     publishes N more samples, one by one
//   lineage_match redis-fill SOCKET LAYERS seq|skip COUNT
//   lineage_match redis-query SOCKET LAYERS seq|skip CLIENTS N lock|free
//
// With --cpu before the command, times are CPU times of the thread, for a machine with other load. Index and baseline
// get the same queries, all for samples that are not stored. Prints JSON; times in microseconds.
//
// fill only writes the index, with the code of a publish, many versions per transaction and synced once: no manifests,
// no packs.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <future>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "arch_space.h"
#include "archindex/index.h"
#include "archindex/match.h"
#include "base/text.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "redis_baseline.h"
#include "store/store_impl.h"

namespace {

using namespace weft;
using namespace weft::bench;

// The monotonic clock, or with --cpu the CPU clock of the thread.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  [[maybe_unused]] static constexpr bool is_steady = true;
  static inline clockid_t id = CLOCK_MONOTONIC;
  static time_point now() {
    timespec at{};
    clock_gettime(id, &at);
    return time_point(std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec));
  }
};

constexpr std::uint64_t kFirstQuery = 1ULL << 40U;  // first sample of queries; never stored
constexpr std::uint64_t kFirstWarm = 1ULL << 41U;   // first sample of unmeasured queries
constexpr std::uint64_t kBatch = 500;               // versions per transaction
constexpr std::uint64_t kMapBytes = 1ULL << 36U;    // map size for a fill; larger than it needs

template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

double micros(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

double quantile(std::vector<double> all, double part) {
  std::ranges::sort(all);
  return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
}

std::unique_ptr<StoreImpl> open(const std::string& path, bool write) {
  OpenOptions options;
  options.write = write;
  return must(StoreImpl::open(path, options));
}

VersionRow version_row(std::uint64_t number) {
  VersionRow row;
  row.id = number + 1;
  row.model_name = "sample";
  row.number = number + 1;
  row.metrics = {{"accuracy", fmt::format("0.{:06}", number * 7'919 % 1'000'000)}};
  return row;
}

// Returns the bytes of keys and values of the four tables, without LMDB's overhead.
std::uint64_t row_bytes(Env& env) {
  Txn txn = must(env.read());
  std::uint64_t bytes = 0;
  for (Table table : {Table::architectures, Table::arch_of, Table::arch_versions, Table::arch_items})
    must(each_entry(txn, table, "", [&](const Entry& entry) -> Status {
      bytes += entry.key.size() + entry.value.size();
      return {};
    }));
  return bytes;
}

std::uint64_t versions_in(Env& env) {
  Txn txn = must(env.read());
  return must(txn.count(Table::versions));
}

bool exists(const std::string& path) {
  return stat_file(path + "/index/data.mdb").ok();
}

std::vector<std::vector<ArchItem>> samples_of(Space space, std::uint64_t begin, std::uint64_t end) {
  std::vector<std::vector<ArchItem>> samples;
  for (std::uint64_t i = begin; i < end; ++i) samples.push_back(items_of_sample(space, i));
  return samples;
}

void fill(const std::string& path, const Space& space, std::uint64_t count) {
  if (!exists(path)) must(Store::create(path, {}));
  EnvOptions options;
  options.write = true;
  options.sync = false;
  options.map_bytes = kMapBytes;
  auto env = must(Env::open(must(SafePath::open_owned(path + "/index")), options));
  WriterLock lock = must(env->lock_writer());
  auto begin = Clock::now();
  const std::uint64_t filled = versions_in(*env);
  auto samples = std::async(std::launch::async, samples_of, space, filled, std::min(count, filled + kBatch));
  for (std::uint64_t first = filled; first < count; first += kBatch) {
    auto batch = samples.get();
    std::uint64_t next = std::min(count, first + kBatch);
    samples = std::async(std::launch::async, samples_of, space, next, std::min(count, next + kBatch));
    must(env->write(lock, [&](Txn& txn) -> Status {
      for (std::uint64_t i = 0; i < batch.size(); ++i) {
        VersionRow row = version_row(first + i);
        WEFT_CHECK(put(txn, Table::versions, key_of(row.id), row));
        WEFT_CHECK(add_architecture(txn, row, batch[i]));
      }
      return {};
    }));
  }
  must(env->sync());
  double seconds = micros(begin) / 1e6;
  double file = static_cast<double>(must(stat_file(path + "/index/data.mdb")).st_blocks) * 512;
  auto each = [&](double bytes) { return bytes / static_cast<double>(count); };
  fmt::print(
      "{{\"versions\": {}, \"seconds\": {:.1f}, \"row_bytes_per_version\": {:.0f}, \"file_bytes_per_version\": "
      "{:.0f}}}\n",
      count, seconds, each(static_cast<double>(row_bytes(*env))), each(file));
}

// Answers a query: maps a sample's number to the number of items shared by the best match, and the time it took.
struct Answer {
  std::uint64_t shared = 0;
  double us = 0;
};
using Ask = std::function<Answer(std::uint64_t number)>;

void ask_all(unsigned clients, std::uint64_t each, std::uint64_t warm, const std::function<Ask()>& make_client) {
  std::vector<std::vector<Answer>> answers(clients);
  std::vector<std::thread> threads;
  std::barrier ready(clients + 1);
  for (unsigned client = 0; client < clients; ++client)
    threads.emplace_back([&, client] {
      Ask ask = make_client();
      for (std::uint64_t i = 0; i < warm; ++i) ask(kFirstWarm + client * warm + i);
      ready.arrive_and_wait();
      for (std::uint64_t i = 0; i < each; ++i) answers[client].push_back(ask(kFirstQuery + client * each + i));
    });
  ready.arrive_and_wait();
  auto begin = Clock::now();
  for (std::thread& thread : threads) thread.join();
  double seconds = micros(begin) / 1e6;
  std::vector<double> times;
  std::vector<std::uint64_t> shared;
  for (const auto& one : answers)
    for (const Answer& answer : one) {
      times.push_back(answer.us);
      shared.push_back(answer.shared);
    }
  fmt::print(
      "{{\"queries\": {}, \"p50_us\": {:.1f}, \"mean_us\": {:.1f}, \"p99_us\": {:.1f}, \"per_second\": {:.1f}, "
      "\"shared\": [{}]}}\n",
      times.size(), quantile(times, 0.5), mean(times), quantile(times, 0.99),
      static_cast<double>(times.size()) / seconds, fmt::join(shared, ", "));
}

MatchQuery query_of(const Space& space, std::uint64_t number) {
  MatchQuery query;
  query.items = items_of_sample(space, number);
  query.metric = "accuracy";
  query.top = 1;
  return query;
}

// Locks the index in memory, so that disk reads are not measured: some machines swap out what was not used lately.
void keep_in_memory() {
  if (::mlockall(MCL_CURRENT) == 0) return;
  std::fprintf(stderr, "lineage_match: the index cannot be locked in memory: %s\n", std::strerror(errno));
  std::exit(1);
}

// Measures from the snapshot to the best version. The ids of the query are computed before, like the baseline's names.
void query(const std::string& path, const Space& space, unsigned clients, std::uint64_t each, std::uint64_t warm) {
  ask_all(clients, each, warm, [&]() -> Ask {
    std::shared_ptr<StoreImpl> store = open(path, false);
    keep_in_memory();
    return [store, space](std::uint64_t number) {
      MatchQuery query = query_of(space, number);
      auto begin = Clock::now();
      auto hits = must(must(store->snapshot())->match(query));
      return Answer{hits.empty() ? 0 : hits[0].shared, micros(begin)};
    };
  });
}

// Returns the page faults of this thread that needed the disk.
long disk_faults() {
  rusage use{};
  getrusage(RUSAGE_THREAD, &use);
  return use.ru_majflt;
}

// Touches index pages as a publish does before it waits for the writer lock.
Status foresee(StoreImpl& store, VersionRow row, std::span<const ArchItem> items) {
  WEFT_TRY(Txn txn, store.parts().index.read());
  row.id = UINT64_MAX;
  return foresee_architecture(txn, row, items);
}

// Publishes versions without files. Measures the architecture's part, before and inside of the transaction, and the
// commit.
void add(const std::string& path, const Space& space, std::uint64_t count) {
  auto store = open(path, true);
  const std::uint64_t from = versions_in(store->parts().index.env());
  std::vector<double> before;
  std::vector<double> inside;
  std::vector<double> faults;
  std::vector<double> commits;
  for (std::uint64_t i = from; i < from + count; ++i) {
    std::vector<ArchItem> items = items_of_sample(space, i);
    VersionRow row = version_row(i);
    Clock::time_point begin = Clock::now();
    must(foresee(*store, row, items));
    before.push_back(micros(begin));
    WriterLock lock = must(store->parts().index.lock());
    Clock::time_point added;
    must(store->parts().index.write(lock, [&](Txn& txn) -> Status {
      WEFT_CHECK(put(txn, Table::versions, key_of(row.id), row));
      const long faults_before = disk_faults();
      begin = Clock::now();
      WEFT_CHECK(add_architecture(txn, row, items));
      added = Clock::now();
      faults.push_back(static_cast<double>(disk_faults() - faults_before));
      return {};
    }));
    commits.push_back(micros(added));
    inside.push_back(std::chrono::duration<double, std::micro>(added - begin).count());
  }
  fmt::print(
      "{{\"added\": {}, \"before_p50_us\": {:.1f}, \"before_p99_us\": {:.1f}, \"before_max_us\": {:.1f}, "
      "\"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"max_us\": {:.1f}, \"disk_faults_max\": {:.0f}, "
      "\"commit_p50_us\": {:.1f}, \"commit_p99_us\": {:.1f}}}\n",
      count, quantile(before, 0.5), quantile(before, 0.99), quantile(before, 1), quantile(inside, 0.5),
      quantile(inside, 0.99), quantile(inside, 1), quantile(faults, 1), quantile(commits, 0.5),
      quantile(commits, 0.99));
}

// Counts the index rows read: items, places of classes, lookups of possible items, classes. Runs all queries three
// times in turn; the least time of a query excludes chance delays.
void work(const std::string& path, const Space& space, std::uint64_t count) {
  constexpr unsigned kTimes = 3;
  auto store = open(path, false);
  keep_in_memory();
  Txn txn = must(store->parts().index.read());
  std::vector<double> rows(count);
  std::vector<double> least(count, 1e12);
  MatchWork sum;
  for (std::uint64_t i = 0; i < kTimes * count; ++i) {
    const MatchQuery query = query_of(space, kFirstQuery + i % count);
    MatchWork one;
    const auto begin = Clock::now();
    must(match_architectures(txn, query, limits::kMatchStepsMax, &one));
    least[i % count] = std::min(least[i % count], micros(begin));
    rows[i % count] = static_cast<double>(one.items + one.places + one.asked + one.classes);
    sum.items += one.items;
    sum.places += one.places;
    sum.asked += one.asked;
    sum.classes += one.classes;
  }
  auto each = [&](std::uint64_t all) { return static_cast<double>(all) / static_cast<double>(kTimes * count); };
  fmt::print(
      "{{\"p50\": {:.0f}, \"mean\": {:.1f}, \"p99\": {:.0f}, \"max\": {:.0f}, \"items\": {:.1f}, \"places\": {:.1f}, "
      "\"asked\": {:.1f}, \"classes\": {:.1f}, \"least_p50_us\": {:.1f}, \"least_p99_us\": {:.1f}, "
      "\"least_p999_us\": {:.1f}, \"least_max_us\": {:.1f}}}\n",
      quantile(rows, 0.5), mean(rows), quantile(rows, 0.99), quantile(rows, 1), each(sum.items), each(sum.places),
      each(sum.asked), each(sum.classes), quantile(least, 0.5), quantile(least, 0.99), quantile(least, 0.999),
      quantile(least, 1));
}

std::vector<std::string> names_of(const Space& space, std::uint64_t number) {
  std::vector<std::string> names;
  for (const ArchItem& item : items_of_sample(space, number)) names.push_back(to_hex(item.id));
  return names;
}

void redis_fill(const std::string& socket, const Space& space, std::uint64_t count) {
  RedisBaseline redis(socket);
  for (std::uint64_t i = 0; i < count; ++i) redis.store(fmt::format("{}", i + 1), names_of(space, i));
  redis.flush();
}

void redis_query(const std::string& socket, const Space& space, unsigned clients, std::uint64_t each, bool locked) {
  ask_all(clients, each, 0, [&]() -> Ask {
    auto redis = std::make_shared<RedisBaseline>(socket);
    return [redis, space, locked](std::uint64_t number) {
      std::vector<std::string> names = names_of(space, number);
      auto begin = Clock::now();
      std::uint64_t shared = redis->best_match(names, locked);
      return Answer{shared, micros(begin)};
    };
  });
}

int run(const std::vector<std::string>& args) {
  auto number = [&](std::size_t i) { return i < args.size() ? parse_u64(args[i]).value_or(0) : 0; };
  if (args.size() < 5) return 2;
  Space space{static_cast<unsigned>(number(2)), args[3] == "skip"};
  auto clients = static_cast<unsigned>(number(4));
  if (args[0] == "fill") {
    fill(args[1], space, number(4));
  } else if (args[0] == "query" && args.size() == 7) {
    query(args[1], space, clients, number(5), number(6));
  } else if (args[0] == "work") {
    work(args[1], space, number(4));
  } else if (args[0] == "add") {
    add(args[1], space, number(4));
  } else if (args[0] == "redis-fill") {
    redis_fill(args[1], space, number(4));
  } else if (args[0] == "redis-query" && args.size() == 7) {
    redis_query(args[1], space, clients, number(5), args[6] == "lock");
  } else {
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool cpu = argc > 1 && std::string_view(argv[1]) == "--cpu";
    if (cpu) Clock::id = CLOCK_THREAD_CPUTIME_ID;
    int code = run({argv + (cpu ? 2 : 1), argv + argc});
    if (code != 0)
      std::fprintf(stderr, "usage: lineage_match [--cpu] fill|query|work|add|redis-fill|redis-query ...\n");
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lineage_match: %s\n", error.what());
    return 1;
  }
}
