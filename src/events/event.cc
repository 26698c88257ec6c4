#include "events/event.h"

#include <algorithm>
#include <utility>

namespace weft {
namespace {

bool is_below(std::string_view model, std::string_view prefix) {
  if (prefix.ends_with('/')) return model.starts_with(prefix);
  return model.starts_with(prefix) && (model.size() == prefix.size() || model[prefix.size()] == '/');
}

// Returns an event for each version that changed tags lead to, in the order of the tags. Deleted tags share one event.
std::vector<ModelEvent> tag_events(const Commit& commit) {
  std::vector<ModelEvent> events;
  for (const Commit::Tag& tag : commit.tags) {
    auto same = std::ranges::find(events, tag.number, &ModelEvent::version);
    if (same == events.end()) {
      ModelEvent event;
      event.kind = ModelEvent::Kind::tag;
      event.version = tag.number;
      same = events.insert(events.end(), std::move(event));
    }
    same->tags.push_back(tag.name);
  }
  return events;
}

// Returns the event kind of a commit that is not of kind `tags`.
ModelEvent::Kind kind_of(const Commit& commit) {
  switch (commit.kind) {
    case Commit::Kind::description:
      return ModelEvent::Kind::note;
    case Commit::Kind::undelete:
      return ModelEvent::Kind::undelete;
    case Commit::Kind::in_memory:
      return ModelEvent::Kind::memory;
    case Commit::Kind::on_disk:
      return ModelEvent::Kind::durable;
    case Commit::Kind::removal:
      return commit.lost.empty() ? ModelEvent::Kind::remove : ModelEvent::Kind::lost;
    case Commit::Kind::rename:
      return ModelEvent::Kind::rename;
    case Commit::Kind::purge:
      return ModelEvent::Kind::purge;
    case Commit::Kind::publish:
    case Commit::Kind::tags:
      break;
  }
  return ModelEvent::Kind::publish;
}

ModelEvent version_event(const Commit& commit) {
  ModelEvent event;
  event.kind = kind_of(commit);
  event.version = commit.number;
  event.bytes = commit.bytes;
  event.why = commit.lost;
  event.to = commit.to;
  event.publisher = commit.publisher;
  for (const Commit::Tag& tag : commit.tags) event.tags.push_back(tag.name);
  return event;
}

bool has_tags(ModelEvent::Kind kind) {
  using Kind = ModelEvent::Kind;
  return kind == Kind::publish || kind == Kind::tag || kind == Kind::remove || kind == Kind::lost;
}

}  // namespace

std::string_view name_of(ModelEvent::Kind kind) {
  switch (kind) {
    case ModelEvent::Kind::publish:
      return "publish";
    case ModelEvent::Kind::tag:
      return "tag";
    case ModelEvent::Kind::remove:
      return "remove";
    case ModelEvent::Kind::undelete:
      return "undelete";
    case ModelEvent::Kind::note:
      return "note";
    case ModelEvent::Kind::memory:
      return "memory";
    case ModelEvent::Kind::durable:
      return "durable";
    case ModelEvent::Kind::lost:
      return "lost";
    case ModelEvent::Kind::rename:
      return "rename";
    case ModelEvent::Kind::purge:
      return "purge";
    case ModelEvent::Kind::restart:
      return "restart";
  }
  return "";
}

std::vector<ModelEvent> events_of(const Commit& commit, std::uint64_t before) {
  std::vector<ModelEvent> events =
      commit.kind == Commit::Kind::tags ? tag_events(commit) : std::vector{version_event(commit)};
  for (ModelEvent& event : events) {
    event.model = commit.model;
    event.time_ns = commit.time_ns;
    event.by = commit.by;
    event.position = before;
  }
  if (!events.empty()) events.back().position = commit.position;
  return events;
}

void write_event(JsonWriter& json, const ModelEvent& event) {
  json.begin_object().member("event", name_of(event.kind));
  if (event.kind != ModelEvent::Kind::restart) {
    json.member("model", event.model).key("version");
    event.version == 0 ? json.null() : json.value(event.version);
  }
  if (has_tags(event.kind)) {
    json.key("tags").begin_array();
    for (const std::string& tag : event.tags) json.value(tag);
    json.end_array();
  }
  if (has_tags(event.kind) || event.kind == ModelEvent::Kind::purge)
    json.member("user", event.by.user).member("node", event.by.node);
  if (event.kind == ModelEvent::Kind::publish) {
    json.member("publisher", event.publisher).member("bytes", event.bytes).key("new_bytes");
    event.new_bytes ? json.value(*event.new_bytes) : json.null();
  }
  if (event.kind == ModelEvent::Kind::lost) json.member("why", event.why);
  if (event.kind == ModelEvent::Kind::rename) json.member("to", event.to);
  json.member("time_ns", event.time_ns).member("position", event.position).end_object();
}

bool concerns(const ModelEvent& event, const std::vector<std::string>& prefixes) {
  if (event.kind == ModelEvent::Kind::restart || prefixes.empty()) return true;
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) {
    return is_below(event.model, prefix) || (!event.to.empty() && is_below(event.to, prefix));
  });
}

}  // namespace weft
