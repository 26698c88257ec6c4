#include "upstream/upstream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/stepped_time.h"
#include "testing.h"

namespace weft {
namespace {

using namespace std::chrono_literals;
using What = UpstreamState::What;
using Until = Upstream::Until;

const std::string kCommit(40, 'a');
const auto kNever = [] { return false; };

// A hub whose questions and pulls end when the test says so.
class TestHub final : public UpstreamHub {
 public:
  Result<std::optional<UpstreamCommit>> ask(const HubSource& source) override {
    const std::string key = source.repository.name + "@" + source.revision;
    UniqueLock lock(mutex_);
    asked_.push_back(key);
    changed_.notify_all();
    changed_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return answers_ || stopped_; });
    if (stopped_) return Error{Errc::cancelled, "stopped"};
    if (source.repository.name == "org/none") return Error{Errc::not_found, "no such model"};
    if (source.repository.name == "org/broken") return Error{Errc::unreachable, "no answer"};
    if (source.revision == "none") return std::optional<UpstreamCommit>();
    return std::optional(UpstreamCommit{kCommit, {{"a.txt", 3, std::string(40, 'b'), {}}}});
  }
  Status pull(const HubSource& source, const std::string& /*commit*/) override {
    UniqueLock lock(mutex_);
    pulled_.push_back(source.repository.name + "@" + source.revision);
    most_ = std::max(most_, ++running_);
    changed_.notify_all();
    changed_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return ended_ || stopped_; });
    --running_;
    if (stopped_) return Error{Errc::cancelled, "stopped"};
    return source.revision == "failing" ? Status{Error{Errc::io, "the pull failed"}} : Status{};
  }
  void stop() override { set(stopped_); }

  void answer(bool value = true) { set(answers_, value); }
  void end_pulls() { set(ended_); }
  std::vector<std::string> asked() { return copy(asked_); }
  std::vector<std::string> pulled() { return copy(pulled_); }
  int most_at_once() { return copy(most_); }
  void wait_for_pulls(std::size_t count) {
    UniqueLock lock(mutex_);
    changed_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return pulled_.size() >= count; });
  }

 private:
  void set(bool& flag, bool value = true) {
    const MutexLock lock(mutex_);
    flag = value;
    changed_.notify_all();
  }
  template <class T>
  T copy(const T& value) {
    const MutexLock lock(mutex_);
    return value;
  }
  Mutex mutex_;
  Condition changed_;
  std::vector<std::string> asked_, pulled_;
  bool answers_ = true, ended_ = false, stopped_ = false;
  int running_ = 0, most_ = 0;
};

HubSource source(const std::string& name, const std::string& revision = "main") {
  return {{name, VersionKind::model}, revision};
}

struct Pulls {
  testing::SteppedTime time;
  TestHub* hub = nullptr;
  std::unique_ptr<Upstream> upstream;

  explicit Pulls(Upstream::Options options = {}) {
    auto made = std::make_unique<TestHub>();
    hub = made.get();
    upstream = std::make_unique<Upstream>(std::move(made), options, time);
  }
  // Waits for the end of a question or a pull as long as it takes.
  UpstreamState obtain(const HubSource& what, Until until) const {
    return upstream->obtain(what, until, Deadline::max(), kNever);
  }
  UpstreamState now(const HubSource& what) const { return upstream->obtain(what, Until::listed, time.now(), kNever); }
};

TEST_CASE("many requests for a revision cause one question and one pull") {
  Pulls pulls;
  std::vector<std::thread> clients;
  std::atomic<int> stored = 0;
  for (int i = 0; i < 10; ++i)
    clients.emplace_back([&] { stored += pulls.obtain(source("org/m"), Until::stored).what == What::stored; });
  pulls.hub->wait_for_pulls(1);
  const UpstreamState listed = pulls.obtain(source("org/m"), Until::listed);
  CHECK(listed.what == What::pulling);
  CHECK(listed.commit->commit == kCommit);
  CHECK(listed.commit->files.size() == 1);
  CHECK(pulls.now(source("org/m", kCommit)).what == What::pulling);  // the same pull
  pulls.hub->end_pulls();
  for (std::thread& client : clients) client.join();
  CHECK(stored == 10);
  CHECK(pulls.now(source("org/m", kCommit)).what == What::stored);
  CHECK(pulls.hub->asked() == std::vector<std::string>{"org/m@main"});
  CHECK(pulls.hub->pulled() == std::vector<std::string>{"org/m@main"});
  const Upstream::Counts counts = pulls.upstream->counts();
  CHECK(counts.begun == 1);
  CHECK(counts.failed == 0);
  CHECK(counts.running == 0);
  CHECK(counts.asked == 1);
}

TEST_CASE("the commit of a revision that the store has no tag for counts longer") {
  Pulls pulls;
  pulls.hub->end_pulls();
  const auto is_stored = [&](const char* revision) {
    return pulls.obtain(source("org/m", revision), Until::stored).what == What::stored;
  };
  CHECK(is_stored("refs/pr/1"));
  CHECK(is_stored("v1"));
  pulls.time.pass(31s);
  CHECK(is_stored("refs/pr/1"));
  CHECK(pulls.hub->asked().size() == 2);
  CHECK(is_stored("v1"));
  CHECK(pulls.hub->asked().size() == 3);
  pulls.time.pass(600s);
  CHECK(is_stored("refs/pr/1"));
  CHECK(pulls.hub->asked().size() == 4);
}

TEST_CASE("an answer counts for a while, and then the hub is asked again") {
  Pulls pulls;
  pulls.hub->end_pulls();
  for (int i = 0; i < 3; ++i) {
    const UpstreamState none = pulls.obtain(source("org/none"), Until::listed);
    CHECK(none.what == What::failed);
    CHECK(none.error.code == Errc::not_found);
    CHECK(none.again <= 30s);
    CHECK(none.again >= 1s);
    CHECK(pulls.obtain(source("org/m", "none"), Until::listed).what == What::no_revision);
    CHECK(pulls.obtain(source("org/broken"), Until::stored).error.code == Errc::unreachable);
    const UpstreamState failed = pulls.obtain(source("org/m", "failing"), Until::stored);
    CHECK(failed.what == What::failed);
    CHECK(failed.error.message == "the pull failed");
  }
  CHECK(pulls.hub->asked().size() == 4);
  CHECK(pulls.upstream->counts().failed == 1);
  pulls.time.pass(31s);
  CHECK(pulls.obtain(source("org/none"), Until::listed).what == What::failed);
  CHECK(pulls.hub->asked().size() == 5);
}

TEST_CASE("names that are none of a hub or of a store are not asked for") {
  Pulls pulls;
  for (const std::string& name :
       {std::string(), std::string("../etc"), std::string("a/b/c"), std::string("-x"), std::string("org/.git"),
        std::string("org/a b"), std::string("org/$(id)"), std::string("org/m@x"),
        std::string("org/") + std::string(200, 'a'), std::string("org/m\n--name"), std::string("datasets/a/b")}) {
    CAPTURE(name);
    const UpstreamState state = pulls.now(source(name));
    CHECK(state.what == What::failed);
    CHECK(state.error.code == Errc::not_found);
  }
  for (const std::string& revision : {std::string(), std::string("a..b"), std::string("a b"), std::string("a:b"),
                                      std::string("a\n"), std::string("\xff"), std::string(1000, 'a')}) {
    CAPTURE(revision);
    CHECK(pulls.now(source("org/m", revision)).error.code == Errc::not_found);
  }
  CHECK(pulls.hub->asked().empty());
}

TEST_CASE("a request waits no longer than its deadline, and not for a client that has left") {
  Pulls pulls;
  pulls.hub->answer(false);
  CHECK(pulls.now(source("org/m")).what == What::asking);
  auto waiting = std::async(std::launch::async, [&, deadline = pulls.time.now() + 8s] {
    return pulls.upstream->obtain(source("org/m"), Until::listed, deadline, kNever);
  });
  while (waiting.wait_for(1ms) != std::future_status::ready) pulls.time.pass(1s);
  const UpstreamState late = waiting.get();
  CHECK(late.what == What::asking);
  CHECK(late.again == 5s);
  CHECK(pulls.upstream->obtain(source("org/m"), Until::stored, Deadline::max(), [] { return true; }).what ==
        What::asking);
  pulls.hub->answer();
  pulls.hub->wait_for_pulls(1);
  pulls.time.pass(100s);
  const UpstreamState long_pull = pulls.now(source("org/m"));
  CHECK(long_pull.what == What::pulling);
  CHECK(long_pull.again >= 100s);  // as long as the pull has taken
  pulls.time.pass(10'000s);
  CHECK(pulls.now(source("org/m")).again == 300s);
}

TEST_CASE("few pulls run at once, and further revisions are refused") {
  Pulls pulls({.questions_max = 4, .pulls_max = 2, .begun_max = 5});
  for (int i = 0; i < 5; ++i)
    CHECK(pulls.obtain(source("org/m" + std::to_string(i)), Until::listed).what == What::pulling);
  const UpstreamState refused = pulls.now(source("org/m5"));
  CHECK(refused.what == What::failed);
  CHECK(refused.error.code == Errc::busy);
  pulls.hub->wait_for_pulls(2);
  pulls.hub->end_pulls();
  for (int i = 0; i < 5; ++i)
    CHECK(pulls.obtain(source("org/m" + std::to_string(i)), Until::stored).what == What::stored);
  CHECK(pulls.hub->most_at_once() == 2);
  CHECK(pulls.obtain(source("org/m5"), Until::stored).what == What::stored);  // a refusal is not remembered
}

TEST_CASE("few requests wait at once, and further ones get the state at once") {
  Pulls pulls({.waiting_max = 2});
  pulls.hub->answer(false);
  std::atomic<int> waiting = 0, over = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i)
    clients.emplace_back([&] {
      bool first = true;
      static_cast<void>(pulls.upstream->obtain(source("org/m"), Until::stored, Deadline::max(), [&] {
        waiting += std::exchange(first, false) ? 1 : 0;
        return false;
      }));
      ++over;
    });
  while (waiting < 2) std::this_thread::yield();
  CHECK(pulls.upstream->obtain(source("org/m"), Until::listed, Deadline::max(), kNever).what == What::asking);
  CHECK(pulls.upstream->obtain(source("org/other"), Until::listed, Deadline::max(), kNever).what == What::asking);
  CHECK(over == 0);
  pulls.hub->answer();
  pulls.hub->end_pulls();
  for (std::thread& client : clients) client.join();
  CHECK(pulls.obtain(source("org/other"), Until::stored).what == What::stored);
}

TEST_CASE("the listing of a commit is kept while its pull runs") {
  Pulls pulls;
  CHECK(pulls.obtain(source("org/m"), Until::listed).commit->files.size() == 1);
  pulls.hub->end_pulls();
  const UpstreamState stored = pulls.obtain(source("org/m"), Until::stored);
  CHECK(stored.commit->commit == kCommit);
  CHECK(stored.commit->files.empty());
}

TEST_CASE("of many answers the oldest are forgotten") {
  Pulls pulls({.remembered_max = 10});
  for (int i = 0; i < 30; ++i) {
    CHECK(pulls.obtain(source("org/m" + std::to_string(i), "none"), Until::listed).what == What::no_revision);
    pulls.time.pass(1ms);
  }
  CHECK(pulls.hub->asked().size() == 30);
  CHECK(pulls.obtain(source("org/m29", "none"), Until::listed).what == What::no_revision);
  CHECK(pulls.hub->asked().size() == 30);
  CHECK(pulls.obtain(source("org/m0", "none"), Until::listed).what == What::no_revision);
  CHECK(pulls.hub->asked().size() == 31);
}

TEST_CASE("the end stops pulls and questions, and begins no others") {
  Pulls pulls;
  CHECK(pulls.obtain(source("org/m"), Until::listed).what == What::pulling);
  pulls.hub->wait_for_pulls(1);
  pulls.upstream->end();
  CHECK(pulls.obtain(source("org/m"), Until::stored).what != What::stored);
  CHECK(pulls.now(source("org/other")).what == What::failed);
  pulls.upstream.reset();
}

}  // namespace
}  // namespace weft
