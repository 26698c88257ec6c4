#include "daemon/follow.h"

#include <poll.h>

#include <array>
#include <utility>
#include <vector>

#include "base/log.h"
#include "daemon_api/changes.h"
#include "fetch/requests/version.h"
#include "weft/names.h"
#include "weft/progress.h"
#include "weft/store/walk.h"

namespace weft {

Follow::Follow(Store& store, Bytes& bytes) : store_(store), bytes_(bytes) {
  worker_.start([this] { return round(); }, [this] { changed_.ring(); });
}

bool Follow::is_followed(const ModelEvent& event) const {
  const auto config = bytes_.config.get();
  const bool appears = event.kind == ModelEvent::Kind::publish || event.kind == ModelEvent::Kind::undelete;
  return appears && !config->follow.empty() && concerns(event, config->follow);
}

// Fetches a version. After an error it does not retry: a reader fetches the version later.
void Follow::fetch(const ModelEvent& event) {
  const std::string name = spec_of(event.model, event.version);
  SilentProgress progress([this] { return worker_.ending(); });
  const auto fetched = [&]() -> Result<FetchReport> {
    WEFT_TRY(const VersionRow row, version_of(store_, name));
    return fetch_version(store_, bytes_.fetcher, row, "", progress);
  }();
  if (worker_.ending()) return;
  if (fetched.ok())
    log_info("{} is here: {} bytes moved", name, fetched->moved_bytes);
  else if (fetched.error().code != Errc::not_found)
    log_warning("following {}: {}", name, fetched.error().message);
}

Status Follow::fetch_newest() {
  return present_state(store_, {}, [this](const ModelEvent& event) -> Status {
    if (worker_.ending()) return Error{Errc::cancelled, "ending"};
    if (is_followed(event)) fetch(event);
    return {};
  });
}

void Follow::wait(int commits) const {
  std::array<pollfd, 2> fds{pollfd{changed_.fd(), POLLIN, 0}, pollfd{commits, POLLIN, 0}};
  ::poll(fds.data(), fds.size(), -1);
  if (fds[0].revents != 0) changed_.clear();
}

// Fetches new versions until no model is followed. If several versions of a model are waiting, fetches the newest one.
Status Follow::follow() {
  WEFT_TRY(EventFollower follower, EventFollower::begin(store_));
  WEFT_CHECK(fetch_newest());
  std::vector<ModelEvent> waiting;
  while (!worker_.ending() && follows()) {
    WEFT_TRY(const auto events, follower.next());
    for (const ModelEvent& event : events) {
      if (event.kind == ModelEvent::Kind::restart) WEFT_CHECK(fetch_newest());
      if (!is_followed(event)) continue;
      std::erase_if(waiting, [&event](const ModelEvent& older) { return older.model == event.model; });
      waiting.push_back(event);
    }
    if (!events.empty()) continue;
    if (!waiting.empty()) {
      const ModelEvent event = std::move(waiting.front());
      waiting.erase(waiting.begin());
      fetch(event);
      continue;
    }
    wait(follower.fd());
  }
  return {};
}

Worker::Pause Follow::round() {
  if (!follows()) {
    wait(-1);
    return Worker::Pause(0);
  }
  const Status followed = follow();
  if (followed.ok() || worker_.ending()) return Worker::Pause(0);
  log_error("follow: no version is fetched any more: {}", followed.error().message);
  return Worker::kUntilWoken;
}

}  // namespace weft
