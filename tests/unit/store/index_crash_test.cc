// Writers that die, truncated journals, and a damaged index.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <fmt/core.h>

#include "index_support.h"
#include "os/sys.h"

using namespace weft;
using namespace weft::testing;

namespace {

using Operation = std::function<void(StoreImpl&)>;

// Runs an operation in a child that is killed at one of the steps of the commit.
bool killed_at(const std::string& path, std::function<void()> CommitHooks::*step, const Operation& operation) {
  int status = in_child([&] {
    CommitHooks hooks;
    hooks.*step = [] { ::kill(::getpid(), SIGKILL); };
    operation(*open_store(path, write_options(), hooks));
    return true;
  });
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

void fill(StoreImpl& store) {
  must_publish(store, "m", {{1, 2}, {3}}, {{}, {"one"}});
  must_publish(store, "org/n", {{2, 4}}, {{{"m", 1}}, {}});
}

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"publish",
       [](StoreImpl& store) {
         must_publish(store, "org/new", {{4, 5}, {6}}, {{{"org/n", 1}}, {"t"}});
       }},
      {"tag", [](StoreImpl& store) { CHECK(store.set_tag("m", "two", 1).ok()); }},
      {"rename", [](StoreImpl& store) { CHECK(store.rename_model("m", "org/m").ok()); }},
      {"remove", [](StoreImpl& store) { CHECK(store.remove_version("m", 1).ok()); }}};
  return all;
}

// Applies the journal to the index, as any write does.
void catch_up(const std::string& path) {
  CHECK(open_store(path)->parts().index.lock().ok());
}

std::string rebuilt_dump(const std::string& path) {
  REQUIRE(Store::rebuild(path, decode, no_progress()).value().problems.empty());
  return dump(*Store::open(path, {}).value(), false);
}

}  // namespace

TEST_CASE("a writer that dies before the journal has done nothing") {
  for (const auto& named : operations()) {
    CAPTURE(named.first);
    const Operation& operation = named.second;
    TestStore test;
    fill(*open_store(test.path));
    std::string before = dump(*open_store(test.path));
    REQUIRE(killed_at(test.path, &CommitHooks::before_journal, operation));
    catch_up(test.path);
    CHECK(dump(*open_store(test.path)) == before);
    operation(*open_store(test.path));
    CHECK(dump(*open_store(test.path)) != before);
  }
}

TEST_CASE("the next writer replays the journal of a dead writer") {
  for (const auto& named : operations()) {
    CAPTURE(named.first);
    const Operation& operation = named.second;
    TestStore test;
    fill(*open_store(test.path));
    std::string before = dump(*open_store(test.path));
    REQUIRE(killed_at(test.path, &CommitHooks::after_journal, operation));
    CHECK(dump(*Store::open(test.path, {}).value()) == before);
    catch_up(test.path);
    CHECK(dump(*open_store(test.path)) != before);
    std::string after = dump(*open_store(test.path), false);
    CHECK(rebuilt_dump(test.path) == after);
  }
}

TEST_CASE("a commit is durable and reported although its writer died") {
  for (const auto& named : operations()) {
    CAPTURE(named.first);
    const Operation& operation = named.second;
    TestStore test;
    fill(*open_store(test.path));
    auto reader = Store::open(test.path, {}).value();
    std::string before = dump(*reader);
    const auto watch = reader->watch_commits().value();
    REQUIRE(killed_at(test.path, &CommitHooks::after_commit, operation));
    CHECK(readable(*watch));
    CHECK(dump(*reader) != before);
    std::string after = dump(*Store::open(test.path, {}).value());
    CHECK(after != before);
    catch_up(test.path);
    CHECK(dump(*open_store(test.path)) == after);
  }
}

TEST_CASE("a record that is not whole is cut off") {
  TestStore test;
  fill(*open_store(test.path));
  std::string journal = test.path + "/journal/0000000000000001.log";
  std::string whole = read_text(journal);
  std::string before = dump(*open_store(test.path));
  must_publish(*open_store(test.path), "m", {{7}});
  std::string longer = read_text(journal);
  // Acts as if the machine had stopped during the write of the last record: the old index, and a part of the record.
  for (std::size_t length : {whole.size() + 1, whole.size() + 20, longer.size() - 1}) {
    TestStore other;
    fill(*open_store(other.path));
    std::string theirs = read_text(other.path + "/journal/0000000000000001.log");
    write_file(other.path + "/journal/0000000000000001.log",
               theirs + longer.substr(whole.size(), length - whole.size()));
    catch_up(other.path);
    CHECK(read_text(other.path + "/journal/0000000000000001.log") == theirs);
  }
}

TEST_CASE("a journal that lost records is no base to write on") {
  TestStore test;
  fill(*open_store(test.path));
  std::string journal = test.path + "/journal/0000000000000001.log";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 1);
  auto store = open_store(test.path);
  CHECK(publish(*store, "m", {{9}}).error().code == Errc::corrupt);
  CHECK(store->snapshot().value()->model("m").ok());
}

TEST_CASE("two writing processes take turns, and nothing is lost") {
  TestStore test;
  must_publish(*open_store(test.path), "m", {{0}});
  auto writer = [&](unsigned first) {
    auto store = open_store(test.path);
    for (unsigned n = first; n < first + 20; ++n)
      if (!publish(*store, "m", {{n}}).ok()) return false;
    return store->set_tag("m", fmt::format("t{}", first), 1).ok();
  };
  CHECK(exited(in_child([&] {
    pid_t other = ::fork();
    if (other == 0) ::_exit(writer(100) ? 0 : 1);
    bool good = writer(10);
    int status = 0;
    ::waitpid(other, &status, 0);
    return good && exited(status);
  })));
  auto snapshot = Store::open(test.path, {}).value()->snapshot().value();
  ModelRow model = snapshot->model("m").value();
  CHECK(model.latest == 41);
  auto versions = snapshot->versions(model.id).value().rows;
  std::set<Digest> manifests;
  for (const VersionRow& version : versions) manifests.insert(version.manifest);
  CHECK(manifests.size() == 41);
  CHECK(snapshot->tags(model.id).value().rows.size() == 2);
}

namespace {

// All answers of an undamaged index, one line each, by question.
using Answers = std::map<std::string, std::string>;

template <class Rows, class Line>
void ask_each(Answers& answers, const std::string& what, const Rows& rows, const Line& line) {
  if (!rows.ok()) return;
  for (const auto& row : rows->rows) answers.emplace(what + " " + line(row), "");
}

Answers ask(Snapshot& snapshot) {
  Answers answers;
  auto model_line = [](const ModelRow& row) {
    return fmt::format("{} {} {} {} {} {}", row.id, row.name, row.next_number, row.latest, row.ino, row.created_ns);
  };
  ask_each(answers, "models", snapshot.models(), model_line);
  auto name_line = [](const NamespaceEntry& entry) {
    return fmt::format("{} {} {}", entry.component, entry.is_model, entry.ino);
  };
  ask_each(answers, "names", snapshot.namespace_entries(""), name_line);
  auto version_line = [](const VersionRow& row) {
    return fmt::format("{} {} {} {} {} {}", row.id, row.model_name, row.number, to_hex(row.manifest), row.time_ns,
                       row.removed);
  };
  for (ModelId model = 1; model <= 40; ++model) {
    std::string of = fmt::format("versions of {}", model);
    ask_each(answers, of, snapshot.versions(model), version_line);
    ask_each(answers, "tags of", snapshot.tags(model),
             [&](const TagRow& tag) { return fmt::format("{} {}", model, tag.number); });
    if (auto row = snapshot.model(fmt::format("m{}", model)); row.ok())
      answers.emplace("model " + model_line(*row), "");
  }
  for (Ino ino = kFirstStoredIno; ino < kFirstStoredIno + 300; ++ino)
    if (auto inode = snapshot.inode(ino); inode.ok())
      answers.emplace(fmt::format("inode {} {} {} {} {} {}", ino, static_cast<int>(inode->kind), inode->base,
                                  inode->view.content.length, inode->view_links, inode->name),
                      "");
  for (unsigned n = 0; n < 120; ++n) {
    if (auto place = snapshot.find_blob(content_id(n)); place.ok())
      answers.emplace(fmt::format("blob {} {} {}", n, place->pack, place->offset), "");
    if (auto holders = snapshot.some_holders(content_id(n), 1000); holders.ok())
      for (auto [version, file] : *holders) answers.emplace(fmt::format("holder {} {} {}", n, version, file), "");
  }
  return answers;
}

// True if a damaged index gives no answer that was never true. Damage may redirect a pointer to a page of an older
// state. Its rows verify, since LMDB stores no proof of their age.
bool tells_no_lies(const std::string& path, const Answers& truth) {
  // Takes these signals from sanitizers. The fault guard handles SIGSEGV and SIGBUS.
  for (int number : {SIGABRT, SIGFPE, SIGILL}) ::signal(number, SIG_DFL);
  rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::alarm(20);
  auto store = Store::open(path, {});
  if (!store.ok()) return true;
  auto snapshot = (*store)->snapshot();
  if (!snapshot.ok()) return true;
  for (const auto& [answer, unused] : ask(**snapshot))
    if (truth.count(answer) == 0) {
      fmt::print(stderr, "a lie: {}\n", answer);
      return false;
    }
  return true;
}

void damage(std::string& bytes, std::mt19937_64& random) {
  std::size_t at = random() % bytes.size();
  switch (random() % 4) {
    case 0:
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
      break;
    case 2:  // one page over another, as a lost or misdirected write leaves it
      bytes.replace(at / 4096 * 4096, 4096, bytes.substr(random() % (bytes.size() / 4096) * 4096, 4096));
      break;
    default:
      for (std::size_t i = at; i < std::min(bytes.size(), at + 64); ++i) bytes[i] = static_cast<char>(random());
  }
}

}  // namespace

TEST_CASE("a damaged index gives an error or a true answer") {
  TestStore test;
  Answers truth;
  {
    auto store = open_store(test.path);
    auto remember = [&] { truth.merge(ask(*store->snapshot().value())); };
    for (unsigned n = 0; n < 30; ++n) {
      must_publish(*store, fmt::format("m{}", n % 10), {{n, n + 1}, {n + 40, n + 2}}, {{}, {fmt::format("t{}", n)}});
      remember();
    }
    REQUIRE(store->remove_version("m3", 2).ok());
    remember();
  }
  REQUIRE(truth.size() > 300);
  std::string whole = read_text(test.path + "/index/data.mdb");
  std::uint64_t seed = test_seed();
  INFO("WEFT_TEST_SEED=", seed);
  std::mt19937_64 random(seed);
  int lies = 0;
  int died = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    damage(bytes, random);
    std::filesystem::remove(test.path + "/index/data.mdb");
    write_file(test.path + "/index/data.mdb", bytes);
    int status = in_child([&] { return tells_no_lies(test.path, truth); });
    if (WIFSIGNALED(status)) ++died;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ++lies;
  }
  CHECK(lies == 0);
  CHECK(died == 0);
  // A rebuild recovers everything.
  REQUIRE(Store::rebuild(test.path, decode, no_progress()).value().problems.empty());
  CHECK(Store::open(test.path, {}).value()->snapshot().value()->models().value().rows.size() == 10);
}

TEST_CASE("the error of an invalid index names the command that rebuilds it") {
  TestStore test;
  fill(*open_store(test.path));
  std::string data = test.path + "/index/data.mdb";
  for (const std::string& bytes : {std::string(), std::string(8192, '\0'), std::string(100, 'x')}) {
    std::filesystem::remove(data);
    write_file(data, bytes);
    auto store = Store::open(test.path, {});
    REQUIRE_FALSE(store.ok());
    CHECK(store.error().code == Errc::corrupt);
    CHECK(store.error().message.find("weft fsck --rebuild") != std::string::npos);
  }
  std::filesystem::remove(data);
  CHECK(Store::open(test.path, {}).error().code == Errc::corrupt);
}
