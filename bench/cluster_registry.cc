// Measures the registry of a cluster:
//   cluster_registry fill ENDPOINT CLUSTER VERSIONS MODELS   puts VERSIONS versions into etcd, many per transaction
//   cluster_registry mirror ENDPOINT CLUSTER STORE           makes a new store mirror the whole registry
//   cluster_registry local STORE VERSIONS MODELS             publishes as many into a single node's store, one by one
//   cluster_registry list STORE STORE N                      reads all rows of each store, N times in turn
//   cluster_registry latency ENDPOINT CLUSTER STORE STORE N  measures N times each: from a put to a watch's event; from
//                                                            a publish, and from setting a tag, to the other node's
//                                                            index
// Prints JSON; times in seconds. A published version is one file of 1 KB of new bytes.
#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include "base/text.h"
#include "os/sys.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "weft/cluster/registry.h"
#include "weft/store/cluster_store.h"
#include "weft/store/commits.h"
#include "weft/store/snapshot.h"

namespace {

using namespace weft;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPutsAtOnce = 100;
constexpr auto kPatience = 600s;
constexpr int kPatienceMs = 600'000;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
void must(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

EtcdOptions etcd_options(const std::string& endpoint, const std::string& cluster) {
  EtcdOptions options;
  options.endpoints = {endpoint};
  options.cluster = cluster;
  return options;
}

// The manifest of this bench is the extent of its only file.
VersionContent content_of(const Extent& whole) {
  VersionContent content;
  content.files.push_back({{whole}});
  content.logical_bytes = whole.id.length;
  content.tree_nodes = 8;
  return content;
}

Result<VersionContent> decode(std::span<const std::byte> manifest) {
  Extent whole;
  if (manifest.size() != sizeof whole) return Error{Errc::corrupt, "no manifest of this bench"};
  std::memcpy(static_cast<void*>(&whole), manifest.data(), sizeof whole);
  return content_of(whole);
}

// Returns a typical version record: a message, metrics, a parent.
MirroredVersion ordinary(std::mt19937_64& random, const std::string& model, std::uint64_t number) {
  MirroredVersion version;
  VersionRow& row = version.version;
  for (std::uint8_t& byte : row.manifest.bytes) byte = static_cast<std::uint8_t>(random());
  row.time_ns = now_ns();
  row.logical_bytes = 440U << 20U;
  row.message = fmt::format("fine-tuned, step {}", 1000 * number);
  row.metrics = {{"loss", fmt::format("{:.4f}", 2.0 / static_cast<double>(number))}, {"accuracy", "0.913"}};
  if (number > 1) row.parents = {{model, number - 1, true, 98, 80U << 20U, 0}};
  row.tensors = 200;
  row.tensor_bytes = 440U << 20U;
  version.tree_nodes = 1'000;
  version.packs = {random()};
  row.publisher = "8fca9f9b-7d52-4c3f-8b0a-6f5f43c1a7de";
  return version;
}

void fill(const std::string& endpoint, const std::string& cluster, std::uint64_t versions, std::uint64_t models) {
  etcd::Client client(etcd_options(endpoint, cluster));
  RegistryKeys keys("/weft", cluster);
  std::mt19937_64 random(1);
  std::uint64_t value_bytes = 0;
  etcd::Txn txn;
  auto send = [&] {
    must(client.txn(txn));
    txn = {};
  };
  for (std::uint64_t i = 0; i < versions; ++i) {
    std::string model = fmt::format("org-{}/model-{}", i % models % 10, i % models);
    std::string key = keys.version(model, 1 + i / models);
    std::vector<std::byte> value = seal(ordinary(random, model, 1 + i / models), keys.bound(key));
    value_bytes += value.size();
    txn.then.emplace_back(etcd::Put{std::move(key), std::move(value), 0});
    if (txn.then.size() == kPutsAtOnce) send();
  }
  if (!txn.then.empty()) send();
  fmt::print("{{\"versions\":{},\"value_bytes\":{}}}\n", versions, value_bytes);
}

// A node with a store and a registry, as in weftd.
class Node {
 public:
  Node(const std::string& directory, const EtcdOptions& etcd) {
    must(Store::create(directory, {}));
    OpenOptions options;
    options.decode = decode;
    store_ = must(ClusterStore::open(directory, options));
    ClusterOptions cluster;
    cluster.etcd = etcd;
    cluster.changed = [this] { tell(); };
    registry_ = must(cluster_registry(*store_, store_->mirror(), std::move(cluster)));
    wait([this] { return registry_->status().connected; });
    watch_ = must(store_->watch_commits());
  }

  Store& store() { return *store_; }
  Registry& registry() { return *registry_; }
  // Waits until `holds`. Checks again after each commit to the index, as a mount does.
  void wait_shown(const std::function<bool()>& holds) {
    while (!holds()) {
      pollfd changed{watch_->fd(), POLLIN, 0};
      if (::poll(&changed, 1, kPatienceMs) <= 0) throw std::runtime_error("it never shows");
      watch_->clear();
    }
  }
  // Waits until `holds`. Checks again after each notification by the registry.
  void wait(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    while (!holds())
      if (changed_.wait_for(lock, kPatience) == std::cv_status::timeout) throw std::runtime_error("it never shows");
  }
  bool has(const std::string& model, std::uint64_t number) {
    auto snapshot = must(store_->snapshot());
    auto row = snapshot->model(model);
    return row.ok() && row->latest >= number;
  }

 private:
  void tell() {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<ClusterStore> store_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<CommitWatch> watch_;
};

std::uint64_t list(Store& store) {
  std::uint64_t rows = 0;
  auto snapshot = must(store.snapshot());
  auto models = must(snapshot->models()).rows;
  for (const ModelRow& model : models) rows += must(snapshot->versions(model.id)).rows.size();
  return rows;
}

void mirror(const std::string& endpoint, const std::string& cluster, const std::string& directory) {
  auto begin = Clock::now();
  Node node(directory, etcd_options(endpoint, cluster));
  double seconds = seconds_since(begin);
  auto status = node.registry().status();
  struct stat index = must(stat_file(directory + "/index/data.mdb"));
  struct stat journal = must(stat_file(directory + "/journal/0000000000000001.log"));
  auto listing = Clock::now();
  std::uint64_t rows = list(node.store());
  fmt::print(
      "{{\"seconds\":{},\"changes\":{},\"refused\":{},\"index_bytes\":{},\"journal_bytes\":{},\"listing\":{},"
      "\"rows\":{}}}\n",
      seconds, status.changes, status.refused, index.st_blocks * 512, journal.st_blocks * 512, seconds_since(listing),
      rows);
}

// Publishes the versions of fill() into a local store, without content.
void publish_locally(const std::string& directory, std::uint64_t versions, std::uint64_t models) {
  must(Store::create(directory, {}));
  OpenOptions options;
  options.write = true;
  options.decode = decode;
  auto store = must(Store::open(directory, options));
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < versions; ++i) {
    const std::string model = fmt::format("org-{}/model-{}", i % models % 10, i % models);
    const VersionRow row = ordinary(random, model, 1 + i / models).version;
    PublishRequest request;
    request.model = model;
    request.manifest.resize(sizeof(ContentId));
    for (std::byte& byte : request.manifest) byte = static_cast<std::byte>(random());
    request.content.tree_nodes = 8;
    request.parents = row.parents;
    request.message = row.message;
    request.metrics = row.metrics;
    auto import = must(store->begin_import(Durability::local));
    must(import->publish(request));
  }
}

void compare_lists(const std::string& first, const std::string& second, std::uint64_t times) {
  std::vector<double> took[2];
  std::uint64_t rows[2] = {};
  const std::unique_ptr<Store> stores[2] = {must(Store::open(first, {})), must(Store::open(second, {}))};
  for (std::uint64_t i = 0; i < 2 * times; ++i) {
    auto begin = Clock::now();
    rows[i % 2] = list(*stores[i % 2]);
    took[i % 2].push_back(seconds_since(begin));
  }
  fmt::print("{{\"rows\":[{}],\"first\":[{}],\"second\":[{}]}}\n", fmt::join(rows, ","), fmt::join(took[0], ","),
             fmt::join(took[1], ","));
}

// Returns the time from before a put until the watch of another connection reports it.
double put_to_watch(etcd::Client& client, etcd::WatchStream& watch, const std::string& key) {
  etcd::Txn txn;
  txn.then.emplace_back(etcd::Put{key, std::vector<std::byte>(400), 0});  // the size of a version's record
  double seconds = 0;
  auto begin = Clock::now();
  std::thread watcher([&] {
    for (bool seen = false; !seen;) {
      auto answer = must(watch.next(Clock::now() + 60s));
      seen = answer && !answer->events.empty();
    }
    seconds = seconds_since(begin);
  });
  auto put = client.txn(txn);
  watcher.join();
  must(std::move(put));
  return seconds;
}

struct Published {
  double shown = 0;     // from before the import until the other node's index shows it
  double returned = 0;  // until the publisher's call returns
};

Published publish_to_visible(Node& from, Node& to, int fd, std::span<const std::byte> bytes) {
  must(write_exact(fd, 0, bytes, "file"));
  Published times;
  auto begin = Clock::now();
  const std::uint64_t number = [&] {
    auto snapshot = must(to.store().snapshot());
    auto row = snapshot->model("m");
    return row.ok() ? row->next_number : 1;
  }();
  std::thread watcher([&] {
    to.wait_shown([&] { return to.has("m", number); });
    times.shown = seconds_since(begin);
  });
  auto import = must(from.store().begin_import(Durability::local));
  const Range whole{0, bytes.size()};
  auto extents = must(import->add(fd, "file", {&whole, 1}, no_progress()));
  PublishRequest request;
  request.model = "m";
  request.content = content_of(extents[0]);
  request.manifest.resize(sizeof extents[0]);
  std::memcpy(request.manifest.data(), static_cast<const void*>(extents.data()), sizeof extents[0]);
  auto outcome = from.registry().publish(*import, request);
  times.returned = seconds_since(begin);
  if (!outcome.ok()) {
    fmt::print(stderr, "{}\n", outcome.error().message);
    std::_Exit(1);
  }
  watcher.join();
  return times;
}

// Returns the time from before the call until the other node's index shows the tag: registry and mirror only, no bytes.
double tag_to_visible(Node& from, Node& to, std::uint64_t number) {
  auto tagged = [&] {
    auto snapshot = must(to.store().snapshot());
    auto row = snapshot->model("m");
    if (!row.ok()) return false;
    auto tag = snapshot->tag(row->id, "best");
    return tag.ok() && tag->number == number;
  };
  double seconds = 0;
  auto begin = Clock::now();
  std::thread watcher([&] {
    to.wait_shown(tagged);
    seconds = seconds_since(begin);
  });
  Status set = from.registry().set_tag("m", "best", number);
  watcher.join();
  must(set);
  return seconds;
}

void latency(const std::string& endpoint, const std::string& cluster, const std::string& first,
             const std::string& second, std::uint64_t times) {
  EtcdOptions options = etcd_options(endpoint, cluster);
  Node a(first, options);
  Node b(second, options);
  etcd::Client client(options);
  etcd::Client watching(options);
  auto watch = must(watching.watch(etcd::prefixed("/bench/"), 0));
  Fd fd = must(open_file(first + ".file", O_RDWR | O_CREAT));
  std::mt19937_64 random(std::random_device{}());
  std::vector<double> puts, shown, returned, tags;
  for (std::uint64_t i = 0; i < times; ++i) {
    std::vector<std::byte> bytes(1'024);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    puts.push_back(put_to_watch(client, *watch, "/bench/key"));
    Published published = publish_to_visible(a, b, fd.get(), bytes);
    shown.push_back(published.shown);
    returned.push_back(published.returned);
    tags.push_back(tag_to_visible(a, b, i + 1));
  }
  fmt::print("{{\"put_to_watch\":[{}],\"publish_to_visible\":[{}],\"publish\":[{}],\"tag_to_visible\":[{}]}}\n",
             fmt::join(puts, ","), fmt::join(shown, ","), fmt::join(returned, ","), fmt::join(tags, ","));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  auto number = [&](std::size_t at) { return parse_u64(words[at]).value_or(0); };
  try {
    if (words.size() == 5 && words[0] == "fill")
      fill(words[1], words[2], number(3), number(4));
    else if (words.size() == 4 && words[0] == "mirror")
      mirror(words[1], words[2], words[3]);
    else if (words.size() == 4 && words[0] == "local")
      publish_locally(words[1], number(2), number(3));
    else if (words.size() == 4 && words[0] == "list")
      compare_lists(words[1], words[2], number(3));
    else if (words.size() == 6 && words[0] == "latency")
      latency(words[1], words[2], words[3], words[4], number(5));
    else
      throw std::runtime_error("usage: see the head of bench/cluster_registry.cc");
  } catch (const std::exception& error) {
    fmt::print(stderr, "cluster_registry: {}\n", error.what());
    return 1;
  }
  return 0;
}
