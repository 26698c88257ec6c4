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

// The directory of the mount that is a model's, a data set's, or that of a namespace of such.
std::string directory_of(const ModelRow& model, std::string_view path) {
  std::string directory(model.kind == VersionKind::dataset ? "datasets" : "models");
  if (!path.empty()) directory.append("/").append(path);
  return directory;
}

// Has a namespace nothing of the model's kind but, perhaps, the model?
Result<bool> has_nothing_else(Snapshot& snapshot, std::string_view path, const ModelRow& model) {
  const auto [prefix, name] = split_name(path);
  const auto entry = snapshot.namespace_entry(prefix, name);
  if (!entry.ok() && entry.error().code == Errc::not_found) return true;
  if (!entry.ok()) return entry.error();
  const std::uint64_t shown = model.kind == VersionKind::dataset ? entry->datasets : entry->models;
  return shown <= (model.latest != 0 ? 1U : 0U);
}

// The directories that came or went with the model: its own, and namespaces that have no other model. From the top.
Result<Plan> directories_of(Snapshot& snapshot, const ModelRow& model, Kind kind) {
  Plan plan;
  for (std::string_view path = model.name; !path.empty();) {
    const auto [above, name] = split_name(path);
    plan.insert(plan.begin(), {kind, directory_of(model, above), std::string(name)});
    if (above.empty()) break;
    WEFT_TRY(const bool alone, has_nothing_else(snapshot, above, model));
    if (!alone) break;
    path = above;
  }
  return plan;
}

void append(Plan& plan, Plan more) {
  std::ranges::move(more, std::back_inserter(plan));
}

Status add_publish(Plan& plan, Snapshot& snapshot, const ModelEvent& event, const ModelRow& model) {
  if (event.version == 1 || model.live == 1) {
    WEFT_TRY(Plan directories, directories_of(snapshot, model, Kind::creation));
    append(plan, std::move(directories));
  }
  const std::string directory = directory_of(model, model.name);
  plan.push_back({Kind::creation, directory, std::to_string(event.version)});
  for (const std::string& tag : event.tags) plan.push_back({Kind::replacement, directory, tag});
  plan.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

Status add_removal(Plan& plan, Snapshot& snapshot, const ModelEvent& event, const ModelRow& model) {
  if (model.live == 0) {
    WEFT_TRY(Plan directories, directories_of(snapshot, model, Kind::removal_of_dir));
    std::ranges::reverse(directories);
    append(plan, std::move(directories));
    return {};
  }
  const std::string directory = directory_of(model, model.name);
  plan.push_back({Kind::removal_of_dir, directory, std::to_string(event.version)});
  if (event.version > model.latest) plan.push_back({Kind::replacement, directory, std::string(kLatest)});
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
        plan.push_back(
            {event.version == 0 ? Kind::removal_of_link : Kind::replacement, directory_of(*model, model->name), tag});
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
        if (model.latest != 0)
          plan.push_back({Kind::replacement, directory_of(model, model.name), std::string(kLatest)});
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
