#include "upstream/upstream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "weft/names.h"

namespace weft {
namespace {

using What = UpstreamState::What;
using namespace std::chrono_literals;

constexpr auto kClientPause = 200ms;      // between two looks whether the client has left
constexpr std::chrono::seconds kSoon{5};  // pause of a client before it repeats a request
constexpr std::chrono::seconds kLongestPause{300};

std::string key_of(const HubName& repository, std::string_view revision) {
  return fmt::format("{}@{}", text_of(repository), revision);
}

// The text of the source is an argument of `weft pull`, which has to parse it to the same source.
Status check_source(const HubSource& source) {
  WEFT_CHECK(check_hub_name(source.repository.name));
  WEFT_CHECK(check_model_name(source.repository.name));
  WEFT_CHECK(check_hub_revision(source.revision));
  const auto parsed = parse_hub_source(key_of(source.repository, source.revision));
  if (parsed.ok() && *parsed == source) return {};
  return Error{Errc::invalid, fmt::format("{}: not a name of a hub", printable(source.repository.name))};
}

bool is_final(What what) {
  return what != What::asking && what != What::pulling;
}

std::chrono::seconds seconds_between(Deadline begin, Deadline end) {
  return std::chrono::ceil<std::chrono::seconds>(end - begin);
}

}  // namespace

struct Upstream::Entry {
  HubSource source;
  What what = What::asking;
  std::shared_ptr<const UpstreamCommit> commit;
  Error error;
  Deadline begun;
  Deadline forgotten = Deadline::max();  // once it is final
};

Upstream::Upstream(std::unique_ptr<UpstreamHub> hub, Options options, const TimeSource& time)
    : hub_(std::move(hub)),
      options_(options),
      time_(time),
      pulls_(options.pulls_max),
      questions_(options.questions_max) {}

Upstream::~Upstream() {
  end();
}

void Upstream::end() {
  hub_->stop();
  const MutexLock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
}

Upstream::Counts Upstream::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

UpstreamState Upstream::obtain(const HubSource& source, Until until, Deadline deadline,
                               const std::function<bool()>& cancelled) {
  if (const Status named = check_source(source); !named.ok())
    return {What::failed, nullptr, Error{Errc::not_found, named.error().message}, options_.remembered};
  const std::shared_ptr<Entry> entry = begin(source);
  if (!entry)
    return {What::failed, nullptr, Error{Errc::busy, "too many revisions are pulled: try again later"}, kSoon};
  UniqueLock lock(mutex_);
  const auto suffices = [&]() WEFT_REQUIRES(mutex_) {
    return is_final(entry->what) || (until == Until::listed && entry->what == What::pulling);
  };
  if (suffices() || waiting_ >= options_.waiting_max) return state_of(*entry);
  ++waiting_;
  while (!suffices() && !ending_ && time_.now() < deadline && !cancelled())
    time_.wait(changed_, lock, std::min(deadline, time_.now() + kClientPause));
  --waiting_;
  return state_of(*entry);
}

// Returns the entry of a revision, which it begins if there is none; null if too many run. Without any thread a pool
// runs a job at once, so none is submitted under the mutex, here and in ask().
std::shared_ptr<Upstream::Entry> Upstream::begin(const HubSource& source) {
  std::shared_ptr<Entry> begun;
  {
    const MutexLock lock(mutex_);
    forget();
    auto& known = entries_[key_of(source.repository, source.revision)];
    if (known) return known;
    if (ending_ || counts_.running >= options_.begun_max) {
      entries_.erase(key_of(source.repository, source.revision));
      return nullptr;
    }
    begun = known = std::make_shared<Entry>(Entry{source, What::asking, nullptr, {}, time_.now()});
    ++counts_.running;
    ++counts_.asked;
  }
  questions_.submit([this, begun] { ask(begun); });
  return begun;
}

// Drops what no longer counts, and of too many answers those that would be dropped first.
void Upstream::forget() {
  const Deadline now = time_.now();
  std::erase_if(entries_, [now](const auto& entry) { return entry.second->forgotten <= now; });
  while (entries_.size() >= options_.remembered_max) {
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second->forgotten; });
    if (!is_final(oldest->second->what)) return;
    entries_.erase(oldest);
  }
}

UpstreamState Upstream::state_of(const Entry& entry) const {
  UpstreamState state{entry.what, entry.commit, entry.error, kSoon};
  const Deadline now = time_.now();
  if (entry.what == What::pulling) state.again = std::clamp(seconds_between(entry.begun, now), kSoon, kLongestPause);
  if (is_final(entry.what)) state.again = std::max(seconds_between(now, entry.forgotten), 1s);
  return state;
}

void Upstream::finish(Entry& entry, What what, const Error& error) {
  entry.what = what;
  entry.error = error;
  const bool is_nameless = what == What::stored && !tag_of_revision(entry.source.revision);
  entry.forgotten = time_.now() + (is_nameless ? options_.nameless_remembered : options_.remembered);
  --counts_.running;
  changed_.notify_all();
  if (what == What::failed && error.code != Errc::not_found && error.code != Errc::cancelled &&
      rare_.due(error.message))
    log_warning("hub.upstream: {}", printable(error.message));
}

void Upstream::ask(const std::shared_ptr<Entry>& entry) {
  auto answer = hub_->ask(entry->source);
  {
    const MutexLock lock(mutex_);
    if (!answer.ok()) return finish(*entry, What::failed, answer.error());
    if (!*answer) return finish(*entry, What::no_revision, {});
    entry->commit = std::make_shared<const UpstreamCommit>(**std::move(answer));
    entry->what = What::pulling;
    // Requests that name the commit from now on wait for the same pull.
    auto& by_commit = entries_[key_of(entry->source.repository, entry->commit->commit)];
    if (!by_commit || is_final(by_commit->what)) by_commit = entry;
    ++counts_.begun;
    changed_.notify_all();
  }
  pulls_.submit([this, entry] { pull(entry); });
}

void Upstream::pull(const std::shared_ptr<Entry>& entry) {
  const std::string commit = entry->commit->commit;
  const Status done = hub_->pull(entry->source, commit);
  const MutexLock lock(mutex_);
  // A listing may have megabytes, and only requests during the pull need it.
  entry->commit = std::make_shared<const UpstreamCommit>(UpstreamCommit{commit, {}});
  if (!done.ok() && done.error().code != Errc::cancelled) ++counts_.failed;
  finish(*entry, done.ok() ? What::stored : What::failed, done.ok() ? Error{} : done.error());
}

}  // namespace weft
