#include "fuse/announce/plan.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "events/follower.h"
#include "fuse/announce/backlog.h"
#include "weft/names.h"
#include "weft/snapshot.h"

namespace weft {
namespace {

using Kind = Announcement::Kind;
using Plan = std::vector<Announcement>;

constexpr std::string_view kLatest = "latest";

// nullopt: there was never such a model.
Result<std::optional<ModelRow>> model_of(Snapshot& snapshot, const std::string& name) {
  auto model = snapshot.model(name);
  if (model.ok()) return std::optional(std::move(*model));
  if (model.error().code == Errc::not_found) return std::optional<ModelRow>();
  return std::move(model).error();
}

// The directory of the mount that is a model's, a data set's, or that of a namespace of such.
std::string directory_of(const ModelRow& model, std::string_view path) {
  std::string directory(model.kind == VersionKind::dataset ? "datasets" : "models");
  if (!path.empty()) directory.append("/").append(path);
  return directory;
}

// Does nothing that shows in a namespace remain, of the model's kind?
Result<bool> is_gone(Snapshot& snapshot, std::string_view path, const ModelRow& model) {
  const auto [prefix, name] = split_name(path);
  const auto entry = snapshot.namespace_entry(prefix, name);
  if (!entry.ok() && entry.error().code == Errc::not_found) return true;
  if (!entry.ok()) return entry.error();
  return (model.kind == VersionKind::dataset ? entry->datasets : entry->models) == 0;
}

// Did a namespace come with the model? So it did if no older model of its kind shows there. Others that came in the
// same moment do not count: of several, exactly one is the first.
Result<bool> is_first(Snapshot& snapshot, std::string_view path, const ModelRow& model) {
  WEFT_TRY(const auto page, snapshot.models({}, std::string(path) + '/'));
  return page.next.empty() && std::ranges::none_of(page.rows, [&model](const ModelRow& other) {
           return other.kind == model.kind && other.latest != 0 && other.id < model.id;
         });
}

// The directories that came or went with the model: its own, and namespaces for which `so` holds. From the top.
Result<Plan> directories_of(Snapshot& snapshot, const ModelRow& model, Kind kind) {
  const auto so = kind == Kind::creation ? is_first : is_gone;
  Plan plan;
  for (std::string_view path = model.name; !path.empty();) {
    const auto [above, name] = split_name(path);
    plan.insert(plan.begin(), {kind, directory_of(model, above), std::string(name)});
    if (above.empty()) break;
    WEFT_TRY(const bool too, so(snapshot, above, model));
    if (!too) break;
    path = above;
  }
  return plan;
}

// Did the model's directory come with its version `first`? So it did if no older version is there.
Result<bool> came_with(Snapshot& snapshot, const ModelRow& model, std::uint64_t first) {
  if (first == 1) return true;
  WEFT_TRY(const auto page, snapshot.versions(model.id, std::to_string(first - 1)));
  const auto there = std::ranges::count(page.rows, false, &VersionRow::removed);
  return !page.next.empty() || static_cast<std::uint64_t>(there) >= model.live;
}

void append(Plan& plan, Plan more) {
  std::ranges::move(more, std::back_inserter(plan));
}

void add_tags(Plan& plan, const ModelEvent& event, Kind kind, const std::string& directory) {
  for (const std::string& tag : event.tags) plan.push_back({kind, directory, tag});
}

Status add_publish(Plan& plan, Snapshot& snapshot, const AnnouncedChange& change, const ModelRow& model) {
  const ModelEvent& event = change.event;
  WEFT_TRY(const bool came, came_with(snapshot, model, change.first));
  if (came) {
    WEFT_TRY(Plan directories, directories_of(snapshot, model, Kind::creation));
    append(plan, std::move(directories));
  }
  const std::string directory = directory_of(model, model.name);
  plan.push_back({Kind::creation, directory, std::to_string(event.version)});
  add_tags(plan, event, Kind::replacement, directory);
  plan.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

Status add_removal(Plan& plan, Snapshot& snapshot, const ModelEvent& event, const ModelRow& model) {
  if (model.live == 0) {
    WEFT_TRY(Plan directories, directories_of(snapshot, model, Kind::removal_of_dir));
    std::ranges::reverse(directories);
    for (Announcement& step : directories)
      if (std::ranges::find(plan, step) == plan.end()) plan.push_back(std::move(step));
    return {};
  }
  const std::string directory = directory_of(model, model.name);
  add_tags(plan, event, Kind::removal_of_link, directory);
  plan.push_back({Kind::removal_of_dir, directory, std::to_string(event.version)});
  if (event.version > model.latest) plan.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

Status add(Plan& plan, Snapshot& snapshot, const AnnouncedChange& change) {
  const ModelEvent& event = change.event;
  WEFT_TRY(const auto model, model_of(snapshot, event.model));
  if (!model) return {};
  switch (event.kind) {
    case ModelEvent::Kind::publish:
      return add_publish(plan, snapshot, change, *model);
    case ModelEvent::Kind::remove:
    case ModelEvent::Kind::lost:
      return add_removal(plan, snapshot, event, *model);
    case ModelEvent::Kind::tag:
      add_tags(plan, event, event.version == 0 ? Kind::removal_of_link : Kind::replacement,
               directory_of(*model, model->name));
      return {};
    case ModelEvent::Kind::memory:
    case ModelEvent::Kind::durable:
    case ModelEvent::Kind::restart:
      return {};
  }
  return {};
}

// Nothing is known of what happened before a restart: all that is there is announced.
Result<std::vector<AnnouncedChange>> all_there(Store& store, const ModelEvent& restart) {
  std::vector<AnnouncedChange> all;
  WEFT_CHECK(present_state(store, restart, [&all](ModelEvent event) -> Status {
    all.push_back({std::move(event), 1});
    return {};
  }));
  return all;
}

Result<std::vector<AnnouncedChange>> changes_of(Store& store, const std::vector<ModelEvent>& events) {
  std::vector<AnnouncedChange> changes;
  for (AnnouncedChange& change : events.size() > kAnnouncedEachMax ? last_changes_of(events) : each_change_of(events)) {
    if (change.event.kind != ModelEvent::Kind::restart) {
      changes.push_back(std::move(change));
      continue;
    }
    WEFT_TRY(auto all, all_there(store, change.event));
    std::ranges::move(all, std::back_inserter(changes));
  }
  return changes;
}

// Each model's `latest` once, behind all else: other nodes' tags may come behind their version.
void put_latest_last(Plan& plan) {
  const auto is_latest = [](const Announcement& step) {
    return step.kind == Kind::replacement && step.name == kLatest;
  };
  Plan latest;
  std::set<std::string> directories;
  for (const Announcement& step : plan)
    if (is_latest(step) && directories.insert(step.directory).second) latest.push_back(step);
  std::erase_if(plan, is_latest);
  append(plan, std::move(latest));
}

}  // namespace

Result<std::vector<Announcement>> announcements_of(Store& store, const std::vector<ModelEvent>& events) {
  Plan plan;
  WEFT_TRY(const std::vector<AnnouncedChange> changes, changes_of(store, events));
  for (const AnnouncedChange& change : changes) {
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_CHECK(add(plan, *snapshot, change));
  }
  put_latest_last(plan);
  return plan;
}

}  // namespace weft
