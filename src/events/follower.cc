#include "events/follower.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "os/sys.h"
#include "os/unix_socket.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

Result<std::uint64_t> journal_end(Store& store) {
  WEFT_TRY(const auto snapshot, store.snapshot());
  return snapshot->journal_end();
}

Result<EventBatch> restarted(Store& store) {
  WEFT_TRY(const std::uint64_t end, journal_end(store));
  ModelEvent event;
  event.kind = ModelEvent::Kind::restart;
  event.time_ns = now_ns();
  event.position = end;
  return EventBatch{{std::move(event)}, end};
}

Result<std::uint64_t> owned_bytes_of(Store& store, const ModelEvent& event) {
  Renewed renewed(store);
  WEFT_TRY(Snapshot * now, renewed.get());
  WEFT_TRY(const ModelRow model, now->model(event.model));
  WEFT_TRY(const VersionRow version, now->version(model.id, event.version));
  WEFT_TRY(const bool bare, now->is_bare(version.id));
  if (bare || version.removed) return Error{Errc::not_found, "its content is not here"};
  return owned_bytes(renewed, version.id);
}

// Visits the newest version of a model, then its other tagged versions.
Status tell_model(Store& store, const ModelRow& model, std::uint64_t position,
                  const std::function<Status(ModelEvent)>& visit) {
  if (model.latest == 0) return {};
  std::vector<ModelEvent> events(1);
  {
    WEFT_TRY(const auto snapshot, store.snapshot());
    auto row = snapshot->version(model.id, model.latest);
    if (!row.ok()) return row.error().code == Errc::not_found ? Status() : Status(std::move(row).error());
    events[0].bytes = row->logical_bytes;
    events[0].time_ns = row->time_ns;
    events[0].version = model.latest;
  }
  WEFT_CHECK(each_row(store, list_tags(model.id), [&](const TagRow& tag) -> Status {
    auto same = std::ranges::find(events, tag.number, &ModelEvent::version);
    if (same == events.end()) {
      same = events.insert(events.end(), ModelEvent());
      same->kind = ModelEvent::Kind::tag;
      same->version = tag.number;
      same->time_ns = tag.time_ns;
    }
    same->tags.push_back(tag.name);
    return {};
  }));
  for (ModelEvent& event : events) {
    event.model = model.name;
    event.position = position;
    WEFT_CHECK(visit(std::move(event)));
  }
  return {};
}

}  // namespace

Result<EventBatch> events_since(Store& store, std::uint64_t position) {
  auto batch = store.commits(position);
  if (!batch.ok() && batch.error().code == Errc::invalid) return restarted(store);
  if (!batch.ok()) return std::move(batch).error();
  EventBatch out{{}, batch->next};
  for (const Commit& commit : batch->commits) {
    std::vector<ModelEvent> events = events_of(commit, position);
    std::ranges::move(events, std::back_inserter(out.events));
    position = commit.position;
  }
  return out;
}

void add_new_bytes(Store& store, ModelEvent& event) {
  if (event.kind != ModelEvent::Kind::publish) return;
  if (const auto bytes = owned_bytes_of(store, event); bytes.ok()) event.new_bytes = *bytes;
}

Status present_state(Store& store, const ModelEvent& restart, const std::function<Status(ModelEvent)>& visit) {
  return each_row(store, list_models(),
                  [&](const ModelRow& model) { return tell_model(store, model, restart.position, visit); });
}

Result<EventFollower> EventFollower::begin(Store& store, std::optional<std::uint64_t> since) {
  WEFT_TRY(auto watch, store.watch_commits());  // before the position, or a commit between would be missed
  if (!since) {
    WEFT_TRY(since, journal_end(store));
  }
  return EventFollower(store, std::move(watch), *since);
}

Result<std::vector<ModelEvent>> EventFollower::next() {
  watch_->clear();
  for (;;) {
    WEFT_TRY(EventBatch batch, events_since(*store_, position_));
    if (batch.next == position_ || !batch.events.empty()) {
      position_ = batch.next;
      return std::move(batch.events);
    }
    position_ = batch.next;
  }
}

void EventFollower::wait(std::chrono::milliseconds time) const {
  wait_for(watch_->fd(), POLLIN, time);
}

}  // namespace weft
