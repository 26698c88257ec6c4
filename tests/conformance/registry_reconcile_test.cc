// Random histories of clusters whose etcd loses history, compared with a model: after a reconciliation every
// acknowledged version is there under exactly one name on all nodes, no name has two, and tags lead where the last of
// their settings says. WEFT_TEST_HISTORIES and WEFT_TEST_KILLS set how many histories and kills there are.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "../random_runs.h"
#include "../unit/store/index_support.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "registry/registry_records.h"
#include "registry_worlds.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using namespace conformance;
using testing::EtcdProcess;
using testing::must;
using testing::TempDir;
using namespace std::chrono_literals;

constexpr std::size_t kNodes = 4;
constexpr std::size_t kTogether = 16;  // histories that share an etcd, and lose history together

std::size_t count_from(const char* variable, std::size_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// The facts that were acknowledged to users.
struct Model {
  std::map<Uuid, Digest> published;
  std::set<Uuid> removed;
  std::map<Uuid, std::string> messages;
  std::map<std::string, TagOrder> tags;  // by MODEL:TAG; the last setting, whose version is zeros if it deleted the tag
};

// What a node shows.
struct Shown {
  std::map<Uuid, std::vector<std::string>> names;  // of a version, live or removed
  std::map<std::string, Uuid> by_name;             // MODEL@NUMBER
  std::map<Uuid, Digest> live;
  std::map<Uuid, std::string> messages;  // of live versions, without empty ones
  std::map<std::string, Uuid> tags;
  bool operator==(const Shown&) const = default;
  std::string text() const {
    std::string text;
    for (const auto& [name, uid] : by_name)
      text += fmt::format("{} {}\n", name, live.contains(uid) ? "live" : "removed");
    for (const auto& [uid, message] : messages) text += fmt::format("{}: {}\n", names.at(uid).front(), message);
    for (const auto& [name, uid] : tags)
      text += fmt::format("{} to {}\n", name, uid.empty() ? "none" : names.at(uid).front());
    return text;
  }
};

Shown shown_by(Store& store) {
  Shown shown;
  must(each_row(store, list_models(), [&](const ModelRow& model) -> Status {
    std::map<std::uint64_t, Uuid> numbers;
    WEFT_CHECK(each_row(store, list_versions(model.id), [&](const VersionRow& row) -> Status {
      shown.names[row.uid].push_back(spec_of(row));
      shown.by_name[spec_of(row)] = numbers[row.number] = row.uid;
      if (row.removed) return {};
      shown.live[row.uid] = row.manifest;
      if (!row.message.empty()) shown.messages[row.uid] = row.message;
      return {};
    }));
    return each_row(store, list_tags(model.id), [&](const TagRow& tag) -> Status {
      shown.tags[model.name + ":" + tag.name] = numbers[tag.number];
      return {};
    });
  }));
  return shown;
}

// One cluster. Its nodes are named by numbers.
class History {
 public:
  History(const EtcdProcess& etcd, std::uint64_t seed, std::size_t number)
      : random_(seed), options_(etcd_options(etcd, "h" + std::to_string(number))), client_(options_) {
    for (std::size_t node = 0; node < kNodes; ++node) open(node);
  }

  void open(std::size_t node) { nodes_[node] = std::make_unique<ClusterNode>(dir_ / std::to_string(node), options_); }
  void close(std::size_t node) { nodes_[node].reset(); }
  void close_all() {
    for (auto& node : nodes_) node.reset();
  }
  ClusterNode& node(std::size_t number) { return *nodes_[number]; }
  std::size_t draw(std::size_t below) { return random_() % below; }

  // Changes by the nodes `from` to `end`, which must be connected.
  void change(std::size_t count, std::size_t from, std::size_t end) {
    for (std::size_t i = 0; i < count; ++i) {
      ClusterNode& node = *nodes_[from + draw(end - from)];
      REQUIRE(node.wait_connected());
      step(node);
    }
  }
  void catch_up(std::size_t node) { REQUIRE(nodes_[node]->registry().catch_up(deadline()).ok()); }

  void check() {
    for (auto& node : nodes_) REQUIRE(node->registry().catch_up(deadline()).ok());
    const Shown first = shown_by(nodes_[0]->store());
    for (std::size_t node = 1; node < kNodes; ++node) {
      const Shown other = shown_by(nodes_[node]->store());
      CHECK_MESSAGE(other == first, "node 0 shows\n", first.text(), "and node ", node, " shows\n", other.text(),
                    refusals());
    }
    for (const auto& [uid, names] : first.names) CHECK(names.size() == 1);
    CHECK(first.by_name.size() == first.names.size());
    for (const auto& [uid, manifest] : model_.published) {
      CHECK(first.names.contains(uid));
      const auto live = first.live.find(uid);
      CHECK((live == first.live.end()) == model_.removed.contains(uid));
      if (live != first.live.end()) CHECK(live->second == manifest);
    }
    CHECK(first.names.size() == model_.published.size());
    for (const auto& [uid, message] : first.messages) CHECK(message == model_.messages[uid]);
    for (const auto& [uid, message] : model_.messages)
      if (first.live.contains(uid)) CHECK(first.messages.contains(uid));
    for (const auto& [name, uid] : first.tags) CHECK(first.live.contains(uid));
    for (const auto& [name, last] : model_.tags) {
      const auto at = first.tags.find(name);
      if (last.uid.empty()) CHECK_MESSAGE(at == first.tags.end(), name);
      if (!first.live.contains(last.uid)) continue;
      const Uuid found = at == first.tags.end() ? Uuid{} : at->second;
      CHECK_MESSAGE(found == last.uid, name, " at revision ", last.stamp.revision, " of ", last.stamp.generation, ": ",
                    first.names.at(last.uid).front(), ", found ",
                    found.empty() ? "none" : first.names.at(found).front(), "; refused: ", refusals());
    }
  }

 private:
  std::string refusals() const {
    std::string text;
    for (const auto& node : nodes_)
      for (const std::string& refusal : node->registry().status().refusals) text += refusal + "; ";
    return text;
  }
  static std::chrono::steady_clock::time_point deadline() { return std::chrono::steady_clock::now() + 60s; }

  std::optional<VersionRow> any(Store& store, const std::string& model, bool removed) {
    std::vector<VersionRow> rows;
    const auto snapshot = must(store.snapshot());
    const auto row = snapshot->model(model);
    if (!row.ok()) return {};
    for (const VersionRow& version : must(snapshot->versions(row->id)).rows)
      if (version.removed == removed) rows.push_back(version);
    return rows.empty() ? std::nullopt : std::optional(rows[draw(rows.size())]);
  }

  void record_tag(const std::string& model, const std::string& tag) {
    const std::string key = keys_.tag(model, tag);
    const auto answer = client_.range({{key, {}}, 0, 0, false, false});
    if (!answer.ok() || answer->items.empty()) return;
    const RegistryTag said = must(open_tag(answer->items[0].value, keys_.bound(key)));
    TagOrder& last = model_.tags[model + ":" + tag];
    last = std::max(last, said.order(answer->items[0].mod_revision));
  }

  // A node without the content of the version cannot undelete it.
  void restore(ClusterNode& node, const VersionRow& row) {
    if (!node.registry().undelete(row.model_name, row.number, [](const Digest&) { return false; }, {}).ok()) return;
    model_.removed.erase(row.uid);
    for (const char* name : {"ta", "tb", "tc"}) record_tag(row.model_name, name);
  }

  void step(ClusterNode& node) {
    const std::string model = std::string("m") + static_cast<char>('a' + draw(3));
    const std::string tag = std::string("t") + static_cast<char>('a' + draw(3));
    const std::size_t what = draw(14);
    if (what < 5) {
      PublishRequest request;
      if (draw(3) == 0) request.tags = {tag};
      const auto made = must(publish(node, model, {++content_}, request));
      model_.published[made.version.uid] = made.version.manifest;
      if (!request.tags.empty()) record_tag(model, tag);
      return;
    }
    const auto row = any(node.store(), model, what == 10 || what == 11);
    if (!row) return;
    if (what >= 12) {
      const std::string message = "text " + std::to_string(++content_);
      if (node.registry().describe(model, row->number, {message, {}}).ok()) model_.messages[row->uid] = message;
    } else if (what >= 10) {
      restore(node, *row);
    } else if (what < 8) {
      if (node.registry().set_tag(model, tag, draw(4) == 0 ? std::nullopt : std::optional(row->number)).ok())
        record_tag(model, tag);
    } else if (remove_version(node.registry(), model, row->number).ok()) {
      model_.removed.insert(row->uid);
      for (const char* name : {"ta", "tb", "tc"}) record_tag(model, name);
    }
  }

  std::mt19937_64 random_;
  TempDir dir_;
  const EtcdOptions options_;
  etcd::Client client_;
  const RegistryKeys keys_{options_.prefix, options_.cluster};
  std::array<std::unique_ptr<ClusterNode>, kNodes> nodes_;
  Model model_;
  unsigned content_ = 0;
};

// The nodes 0 and 1 know what etcd loses. 2 knows a part of it, and 3 nothing, so 3 goes on in the set-back etcd.
void lose(std::vector<std::unique_ptr<History>>& histories, EtcdProcess& etcd, const std::string& saved = "saved") {
  for (auto& history : histories) history->change(4 + history->draw(6), 0, kNodes);
  for (auto& history : histories) {
    history->catch_up(3);
    history->close(3);
  }
  etcd.save(saved);
  for (auto& history : histories) history->change(2 + history->draw(5), 0, 3);
  for (auto& history : histories) {
    history->catch_up(2);
    history->close(2);
    history->change(2 + history->draw(5), 0, 2);
    for (std::size_t node : {0, 1}) history->catch_up(node);
    history->close_all();
  }
  etcd.set_back(saved);
  for (auto& history : histories) {
    history->open(3);
    history->change(history->draw(8), 3, kNodes);
  }
}

// Reconciles, while one of the nodes that know more is absent.
void reconcile(History& history) {
  const std::size_t absent = history.draw(3);
  for (std::size_t node : {0, 1, 2})
    if (node != absent) history.open(node);
  const std::size_t by = (absent + 1 + history.draw(2)) % 3;
  auto report = history.node(by).registry().reconcile({});
  if (!report.ok()) FAIL(report.error().message);
  CHECK(report->problems.empty());
  CHECK(report->waits_for.empty());
  history.open(absent);
  history.check();
  history.change(3, 0, kNodes);
  history.check();
}

// Etcd loses history twice.
void check_batch(std::uint64_t seed, std::size_t first, std::size_t count) {
  EtcdProcess etcd;
  std::vector<std::unique_ptr<History>> histories;
  for (std::size_t i = 0; i < count; ++i)
    histories.push_back(std::make_unique<History>(etcd, seed + first + i, first + i));
  for (const std::string loss : {"first", "second"}) {
    CAPTURE(seed);
    CAPTURE(first);
    CAPTURE(loss);
    lose(histories, etcd, loss);
    for (auto& history : histories) reconcile(*history);
  }
}

}  // namespace

TEST_CASE("reconcile: random histories, each compared with a model") {
  const std::size_t count = count_from("WEFT_TEST_HISTORIES", 16);
  const std::uint64_t seed = testing::test_seed();
  for (std::size_t first = 0; first < count; first += kTogether)
    check_batch(seed, first, std::min(kTogether, count - first));
}

TEST_CASE("reconcile: a node that is killed at any point goes on when it is started again") {
  const std::size_t kills = count_from("WEFT_TEST_KILLS", 12);
  const std::uint64_t seed = testing::test_seed();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  EtcdProcess etcd;
  std::vector<std::unique_ptr<History>> histories;
  histories.push_back(std::make_unique<History>(etcd, seed, 0));
  lose(histories, etcd);
  History& history = *histories.front();
  history.close_all();
  for (std::size_t kill = 0; kill < kills; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::size_t node = kill % 3;
      history.open(node);
      static_cast<void>(history.node(node).registry().reconcile({}));
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 150));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  for (std::size_t node = 0; node < kNodes; ++node) history.open(node);
  REQUIRE(history.node(0).registry().reconcile({}).ok());
  history.check();
}

}  // namespace weft
