#include "fuse/announce/plan.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "weft/listing.h"
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

// Has `directory` nothing but, perhaps, `name`?
Result<bool> has_nothing_else(Snapshot& snapshot, std::string_view directory, std::string_view name) {
  const auto entries = snapshot.namespace_entries(directory, "", 2);
  if (!entries.ok() && entries.error().code == Errc::not_found) return true;
  if (!entries.ok()) return entries.error();
  return std::ranges::all_of(entries->rows, [&](const NamespaceEntry& entry) { return entry.component == name; }) &&
         entries->next.empty();
}

// The directories that came or went with the model: its own, and namespaces that have no other model. From the top.
Result<Plan> directories_of(Snapshot& snapshot, const std::string& model, Kind kind) {
  Plan plan;
  for (std::string path = model; !path.empty();) {
    const auto [directory, name] = split_name(path);
    plan.insert(plan.begin(), {kind, std::string(directory), std::string(name)});
    WEFT_TRY(const bool alone, has_nothing_else(snapshot, directory, name));
    if (!alone || directory.empty()) break;
    path = std::string(directory);
  }
  return plan;
}

void append(Plan& plan, Plan more) {
  std::ranges::move(more, std::back_inserter(plan));
}

Status add_publish(Plan& plan, Snapshot& snapshot, const ModelEvent& event, const ModelRow& model) {
  if (event.version == 1 || model.live == 1) {
    WEFT_TRY(Plan directories, directories_of(snapshot, event.model, Kind::creation));
    append(plan, std::move(directories));
  }
  plan.push_back({Kind::creation, event.model, std::to_string(event.version)});
  for (const std::string& tag : event.tags) plan.push_back({Kind::replacement, event.model, tag});
  plan.push_back({Kind::replacement, event.model, std::string(kLatest)});
  return {};
}

Status add_removal(Plan& plan, Snapshot& snapshot, const ModelEvent& event, const ModelRow& model) {
  if (model.live == 0) {
    WEFT_TRY(Plan directories, directories_of(snapshot, event.model, Kind::removal_of_dir));
    std::ranges::reverse(directories);
    append(plan, std::move(directories));
    return {};
  }
  plan.push_back({Kind::removal_of_dir, event.model, std::to_string(event.version)});
  if (event.version > model.latest) plan.push_back({Kind::replacement, event.model, std::string(kLatest)});
  return {};
}

Status add(Plan& plan, Snapshot& snapshot, const ModelEvent& event) {
  WEFT_TRY(const auto model, model_of(snapshot, event.model));
  if (!model) return {};
  switch (event.kind) {
    case ModelEvent::Kind::publish:
      return add_publish(plan, snapshot, event, *model);
    case ModelEvent::Kind::remove:
    case ModelEvent::Kind::lost:
      return add_removal(plan, snapshot, event, *model);
    case ModelEvent::Kind::tag:
      for (const std::string& tag : event.tags)
        plan.push_back({event.version == 0 ? Kind::removal_of_link : Kind::replacement, event.model, tag});
      return {};
    case ModelEvent::Kind::memory:
    case ModelEvent::Kind::durable:
    case ModelEvent::Kind::restart:
      return {};
  }
  return {};
}

// The last publish of each model, in their order.
std::vector<ModelEvent> newest_of(const std::vector<ModelEvent>& events) {
  std::vector<ModelEvent> newest;
  std::vector<std::string> seen;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind != ModelEvent::Kind::publish) continue;
    const auto place = std::ranges::lower_bound(seen, event->model);
    if (place != seen.end() && *place == event->model) continue;
    seen.insert(place, event->model);
    newest.push_back(*event);
  }
  std::ranges::reverse(newest);
  return newest;
}

// Each model's `latest` once, behind all else: other nodes' tags may come behind their version.
void put_latest_last(Plan& plan) {
  const auto is_latest = [](const Announcement& step) {
    return step.kind == Kind::replacement && step.name == kLatest;
  };
  Plan latest;
  for (const Announcement& step : plan)
    if (is_latest(step) && std::ranges::find(latest, step) == latest.end()) latest.push_back(step);
  std::erase_if(plan, is_latest);
  append(plan, std::move(latest));
}

}  // namespace

Result<std::vector<Announcement>> announcements_of(Store& store, const std::vector<ModelEvent>& events) {
  Plan plan;
  const bool backlog = events.size() > kAnnouncedEachMax;
  for (const ModelEvent& event : backlog ? newest_of(events) : events) {
    if (event.kind == ModelEvent::Kind::restart) {
      WEFT_CHECK(each_model(store, [&plan](const ModelRow& model) -> Status {
        if (model.latest != 0) plan.push_back({Kind::replacement, model.name, std::string(kLatest)});
        return {};
      }));
      continue;
    }
    WEFT_TRY(const auto snapshot, store.snapshot());
    WEFT_CHECK(add(plan, *snapshot, event));
  }
  put_latest_last(plan);
  return plan;
}

}  // namespace weft
