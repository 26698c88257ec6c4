#include "fuse/announce/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "events/follower.h"
#include "fuse/announce/backlog.h"
#include "weft/names.h"
#include "weft/store/snapshot.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

using Kind = Announcement::Kind;
using Plan = std::vector<Announcement>;

constexpr std::string_view kLatest = "latest";

// Returns the row of a model, or nullopt if no model ever had this name.
Result<std::optional<ModelRow>> model_of(Snapshot& snapshot, const std::string& name) {
  auto model = snapshot.model(name);
  if (model.ok()) return std::optional(std::move(*model));
  if (model.error().code == Errc::not_found) return std::optional<ModelRow>();
  return std::move(model).error();
}

// Returns the directory in the mount of a model, of a data set, or of a namespace at `path`.
std::string directory_of(const ModelRow& model, std::string_view path) {
  std::string directory(model.kind == VersionKind::dataset ? "datasets" : "models");
  if (!path.empty()) directory.append("/").append(path);
  return directory;
}

// True if the model's directory appeared with version `first`, that is, if no older version is live.
Result<bool> came_with(Snapshot& snapshot, const ModelRow& model, std::uint64_t first) {
  if (first == 1) return true;
  WEFT_TRY(const auto page, snapshot.versions(model.id, std::to_string(first - 1)));
  const auto there = std::ranges::count(page.rows, false, &VersionRow::removed);
  return !page.next.empty() || static_cast<std::uint64_t>(there) >= model.live;
}

void append(Plan& plan, Plan more) {
  std::ranges::move(more, std::back_inserter(plan));
}

// Moves each model's `latest` to the end, once. Tags set by other nodes may arrive after their version.
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

// Finds out which model a namespace appeared with. Rows are read once for all models in question, and only until the
// answer is known.
class NamespaceWalk {
 public:
  NamespaceWalk(std::string_view path, VersionKind kind) : prefix_(std::string(path) + '/'), kind_(kind) {}

  // True if no older model of this kind is visible in the namespace. So of several models that appear at the same
  // moment, exactly one is the first.
  Result<bool> is_first(Renewed& renewed, ModelId model) {
    while (!ended_ && oldest_ >= model) WEFT_CHECK(read_page(renewed));
    return oldest_ >= model;
  }

 private:
  Status read_page(Renewed& renewed) {
    WEFT_TRY(Snapshot * now, renewed.get(kAnnouncedPageRows));
    WEFT_TRY(Page<ModelRow> page, now->models(from_, prefix_, kAnnouncedPageRows));
    for (const ModelRow& model : page.rows)
      if (model.kind == kind_ && model.latest != 0) oldest_ = std::min(oldest_, model.id);
    from_ = std::move(page.next);
    ended_ = from_.empty();
    return {};
  }

  const std::string prefix_;
  const VersionKind kind_;
  std::string from_;
  ModelId oldest_ = std::numeric_limits<ModelId>::max();  // smallest id of the visible models read so far
  bool ended_ = false;
};

class Planner {
 public:
  explicit Planner(Store& store) : store_(store), renewed_(store) {}

  Status add(const AnnouncedChange& change);
  Plan take() && {
    put_latest_last(plan_);
    return std::move(plan_);
  }

 private:
  struct Facts {
    ModelRow model;
    bool came = false;  // true if the model's directory appears with the version that the change publishes
  };
  Result<std::optional<Facts>> facts_of(const AnnouncedChange& change);
  Status add_publish(const ModelEvent& event, const Facts& facts);
  Status add_undelete(const ModelEvent& event, const ModelRow& model);
  Status add_removal(const ModelEvent& event, const ModelRow& model);
  Status add_rename(const ModelEvent& event);
  Status add_gone(const ModelRow& model);
  void add_tags(const ModelEvent& event, Kind kind, const std::string& directory);
  using Condition = Result<bool> (Planner::*)(std::string_view path, const ModelRow& model);
  Result<std::uint64_t> shown(std::string_view path, const ModelRow& model);
  Result<bool> is_gone(std::string_view path, const ModelRow& model);
  Result<bool> is_alone(std::string_view path, const ModelRow& model);
  Result<bool> is_first(std::string_view path, const ModelRow& model);
  Result<Plan> directories_of(const ModelRow& model, Kind kind, Condition too);

  Store& store_;
  Renewed renewed_;
  Plan plan_;
  std::set<std::pair<std::string, std::string>> gone_;  // directories and names whose removal is planned
  std::map<std::string, NamespaceWalk> walks_;          // by directory in the mount
};

// Returns the number of visible models of the model's kind at or below the path.
Result<std::uint64_t> Planner::shown(std::string_view path, const ModelRow& model) {
  const auto [prefix, name] = split_name(path);
  WEFT_TRY(Snapshot * now, renewed_.get());
  const auto entry = now->namespace_entry(prefix, name);
  if (!entry.ok() && entry.error().code == Errc::not_found) return std::uint64_t{0};
  if (!entry.ok()) return entry.error();
  return model.kind == VersionKind::dataset ? entry->datasets : entry->models;
}

// True if nothing of the model's kind is visible in the namespace.
Result<bool> Planner::is_gone(std::string_view path, const ModelRow& model) {
  WEFT_TRY(const std::uint64_t count, shown(path, model));
  return count == 0;
}

// True if the namespace has one visible model of this kind: a rename moved it there, or an undelete brought it back.
Result<bool> Planner::is_alone(std::string_view path, const ModelRow& model) {
  WEFT_TRY(const std::uint64_t count, shown(path, model));
  return count == 1;
}

// True if the namespace appeared with this model.
Result<bool> Planner::is_first(std::string_view path, const ModelRow& model) {
  NamespaceWalk& walk = walks_.try_emplace(directory_of(model, path), path, model.kind).first->second;
  return walk.is_first(renewed_, model.id);
}

// Returns the directories that appear or vanish with the model, outermost first: its own, and its namespaces for which
// the condition is true.
Result<Plan> Planner::directories_of(const ModelRow& model, Kind kind, Condition too) {
  Plan plan;
  for (std::string_view path = model.name; !path.empty();) {
    const auto [above, name] = split_name(path);
    plan.insert(plan.begin(), {kind, directory_of(model, above), std::string(name)});
    if (above.empty()) break;
    WEFT_TRY(const bool so, (this->*too)(above, model));
    if (!so) break;
    path = above;
  }
  return plan;
}

void Planner::add_tags(const ModelEvent& event, Kind kind, const std::string& directory) {
  for (const std::string& tag : event.tags) plan_.push_back({kind, directory, tag});
}

Status Planner::add_publish(const ModelEvent& event, const Facts& facts) {
  if (facts.came) {
    WEFT_TRY(Plan directories, directories_of(facts.model, Kind::creation, &Planner::is_first));
    append(plan_, std::move(directories));
  }
  const std::string directory = directory_of(facts.model, facts.model.name);
  plan_.push_back({Kind::creation, directory, std::to_string(event.version)});
  add_tags(event, Kind::replacement, directory);
  plan_.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

Status Planner::add_undelete(const ModelEvent& event, const ModelRow& model) {
  if (model.live == 1) {
    WEFT_TRY(Plan directories, directories_of(model, Kind::creation, &Planner::is_alone));
    append(plan_, std::move(directories));
  }
  const std::string directory = directory_of(model, model.name);
  plan_.push_back({Kind::creation, directory, std::to_string(event.version)});
  if (event.version >= model.latest) plan_.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

// Adds the removal of the model's directory, and of namespaces that it leaves empty.
Status Planner::add_gone(const ModelRow& model) {
  WEFT_TRY(Plan directories, directories_of(model, Kind::removal_of_dir, &Planner::is_gone));
  std::ranges::reverse(directories);
  for (Announcement& step : directories)
    if (gone_.emplace(step.directory, step.name).second) plan_.push_back(std::move(step));
  return {};
}

// The former name may have another model by now, and the model another name.
Status Planner::add_rename(const ModelEvent& event) {
  WEFT_TRY(Snapshot * now, renewed_.get());
  WEFT_TRY(const std::optional<ModelRow> model, now->renamed(event.model));
  if (!model) return {};
  ModelRow before = *model;
  before.name = event.model;
  WEFT_TRY(const bool gone, is_gone(before.name, before));
  if (gone) WEFT_CHECK(add_gone(before));
  if (model->live == 0 || model->name != event.to) return {};
  WEFT_TRY(Plan directories, directories_of(*model, Kind::creation, &Planner::is_alone));
  append(plan_, std::move(directories));
  return {};
}

Status Planner::add_removal(const ModelEvent& event, const ModelRow& model) {
  if (model.live == 0) return add_gone(model);
  const std::string directory = directory_of(model, model.name);
  add_tags(event, Kind::removal_of_link, directory);
  plan_.push_back({Kind::removal_of_dir, directory, std::to_string(event.version)});
  if (event.version > model.latest) plan_.push_back({Kind::replacement, directory, std::string(kLatest)});
  return {};
}

// Returns nullopt if no model ever had this name.
Result<std::optional<Planner::Facts>> Planner::facts_of(const AnnouncedChange& change) {
  renewed_.end();  // one snapshot at a time
  WEFT_TRY(const auto snapshot, store_.snapshot());
  WEFT_TRY(auto model, model_of(*snapshot, change.event.model));
  if (!model) return std::optional<Facts>();
  Facts facts{std::move(*model)};
  if (change.event.kind == ModelEvent::Kind::publish) {
    WEFT_TRY(facts.came, came_with(*snapshot, facts.model, change.first));
  }
  return std::optional(std::move(facts));
}

Status Planner::add(const AnnouncedChange& change) {
  const ModelEvent& event = change.event;
  if (event.kind == ModelEvent::Kind::rename) return add_rename(event);
  WEFT_TRY(const auto facts, facts_of(change));
  if (!facts) return {};
  switch (event.kind) {
    case ModelEvent::Kind::publish:
      return add_publish(event, *facts);
    case ModelEvent::Kind::undelete:
      return add_undelete(event, facts->model);
    case ModelEvent::Kind::remove:
    case ModelEvent::Kind::lost:
      return add_removal(event, facts->model);
    case ModelEvent::Kind::tag:
      add_tags(event, event.version == 0 ? Kind::removal_of_link : Kind::replacement,
               directory_of(facts->model, facts->model.name));
      return {};
    case ModelEvent::Kind::note:
    case ModelEvent::Kind::memory:
    case ModelEvent::Kind::durable:
    case ModelEvent::Kind::purge:
    case ModelEvent::Kind::rename:
    case ModelEvent::Kind::restart:
      return {};
  }
  return {};
}

// Returns the present state as publish events. Used after a `restart` event: the journal does not say what came before.
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

}  // namespace

Result<std::vector<Announcement>> announcements_of(Store& store, const std::vector<ModelEvent>& events) {
  WEFT_TRY(const std::vector<AnnouncedChange> changes, changes_of(store, events));
  Planner planner(store);
  for (const AnnouncedChange& change : changes) WEFT_CHECK(planner.add(change));
  return std::move(planner).take();
}

}  // namespace weft
