#include "origin/names.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <variant>

#include <fmt/core.h>

#include "base/text.h"
#include "weft/names.h"

namespace weft {
namespace {

using Name = OriginNames::Name;
using Identity = std::pair<std::string, Uuid>;  // model and identity: an identity alone could be forged

constexpr std::size_t kTimeDigits = 16;  // hex digits of the time in a record's name

class NameReading {
 public:
  NameReading(const OriginDir& origin, OriginNames& names) : origin_(origin), names_(names) {}

  Status run(Progress& progress) {
    WEFT_TRY(const auto records, origin_.events());
    for (const std::string& name : records) {
      WEFT_CHECK(check_cancelled(progress));
      if (name.starts_with('.')) continue;  // NFS keeps deleted open files as .nfs*
      auto record = origin_.event(name);
      if (!record.ok()) {
        unread_.emplace_back(name, std::move(record).error());
        continue;
      }
      const Status taken = take(name, std::move(record).value());
      if (!taken.ok()) names_.problems.push_back(taken.error().message);
    }
    recover_unread();
    describe();
    remove();
    give_names();
    set_tags();
    return {};
  }

 private:
  Status take(const std::string& name, CatalogRecord record) {
    const std::string path = fmt::format("{}/journal/{}", origin_.path(), printable(name));
    if (const auto* removal = std::get_if<MirroredRemoval>(&record.event)) add(*removal);  // even with a wrong name
    if (catalog_event_name(record.event, record.cluster) != name)
      return Error{Errc::corrupt, fmt::format("{}: expected a record named {}", path,
                                              catalog_event_name(record.event, record.cluster))};
    const auto& model =
        std::visit([](const auto& event) -> const std::string& { return model_of(event); }, record.event);
    if (const Status named = check_model_name(model); !named.ok())
      return Error{Errc::corrupt, fmt::format("{}: {}", path, named.error().message)};
    if (auto* row = std::get_if<VersionRow>(&record.event)) {
      add(std::move(*row));
      return {};
    }
    if (std::holds_alternative<MirroredRemoval>(record.event)) return {};
    if (const auto* renumber = std::get_if<MirroredRenumber>(&record.event)) {
      add(*renumber);
      return {};
    }
    if (const auto* undelete = std::get_if<MirroredUndelete>(&record.event)) {
      add(*undelete);
      return {};
    }
    if (auto* description = std::get_if<MirroredDescription>(&record.event)) {
      add(std::move(*description));
      return {};
    }
    const auto& tag = std::get<MirroredTag>(record.event);
    WEFT_CHECK(check_tag_name(tag.name));
    tags_[{tag.model, tag.name}].push_back(std::move(record));
    return {};
  }

  void add(const MirroredRemoval& removal) {
    removed_[{removal.model, removal.uid}].try_emplace(removal.time_ns, removal);
  }

  void add(const MirroredUndelete& undelete) {
    MirroredUndelete& last = undeleted_[{undelete.model, undelete.uid}];
    if (undelete.time_ns >= last.time_ns) last = undelete;
  }

  void add(const MirroredRenumber& renumber) {
    MirroredRenumber& last = renumbered_[{renumber.model, renumber.uid}];
    if (renumber.time_ns >= last.time_ns) last = renumber;
  }

  void add(MirroredDescription description) {
    MirroredDescription& last = described_[{description.model, description.uid}];
    if (description.time_ns > last.time_ns) last = std::move(description);
  }

  // Recovers damaged removals and undeletes. The name of such a record consists of the time and a hash of the version's
  // name and identity, so it identifies any version that is known.
  void recover_unread() {
    std::map<std::string, std::pair<const VersionRow*, bool>>
        by_name;  // record name without the time -> version; true: a removal
    if (!unread_.empty())
      for (const auto& [identity, row] : versions_) {
        const CatalogEvent events[] = {MirroredRemoval{row.model_name, row.number, 0, {}, row.uid},
                                       MirroredUndelete{row.model_name, row.number, 0, row.uid}};
        for (const CatalogEvent& event : events)
          by_name.emplace(catalog_event_name(event, {}).substr(kTimeDigits),
                          std::pair(&row, std::holds_alternative<MirroredRemoval>(event)));
      }
    for (const auto& [name, error] : unread_) {
      const auto time_ns = time_of(name);
      const auto found = time_ns ? by_name.find(name.substr(kTimeDigits)) : by_name.end();
      if (found == by_name.end()) {
        names_.problems.push_back(fmt::format("{}; {}", error.message, lost_with(name)));
        continue;
      }
      const auto& [version, removal] = found->second;
      const std::string& model = version->model_name;
      removal ? add(MirroredRemoval{model, version->number, *time_ns, {}, version->uid})
              : add(MirroredUndelete{model, version->number, *time_ns, version->uid});
      names_.mended.push_back(fmt::format("{}; its name tells that it {} {}", error.message,
                                          removal ? "removed" : "brought back", spec_of(*version)));
    }
  }

  static std::optional<std::uint64_t> time_of(const std::string& name) {
    if (name.size() <= kTimeDigits) return {};
    std::uint64_t time_ns = 0;
    const char* const digits_end = name.data() + kTimeDigits;
    const auto [end, error] = std::from_chars(name.data(), digits_end, time_ns, 16);
    return error == std::errc{} && end == digits_end ? std::optional(time_ns) : std::nullopt;
  }

  static std::string_view lost_with(std::string_view name) {
    if (name.ends_with(".note")) return "a change of a message and metrics is lost: a version may have earlier ones";
    if (name.ends_with(".undelete")) return "it brought back no version that the origin has a record of";
    if (name.ends_with(".moved")) return "a version may have its former number";
    if (name.ends_with(".rm")) return "it removed no version that the origin has a record of";
    if (name.ends_with(".tag")) return "a change of a tag is lost: the tag may point to an earlier version";
    return "its content is lost; if it was a removal, the version is not removed";
  }

  static const std::string& model_of(const VersionRow& row) { return row.model_name; }
  static const std::string& model_of(const MirroredTag& tag) { return tag.model; }
  static const std::string& model_of(const MirroredRemoval& removal) { return removal.model; }
  static const std::string& model_of(const MirroredDescription& description) { return description.model; }
  static const std::string& model_of(const MirroredUndelete& undelete) { return undelete.model; }
  static const std::string& model_of(const MirroredRenumber& renumber) { return renumber.model; }

  // Adds a version without its ids, which are valid only in the store that wrote the record.
  void add(VersionRow row) {
    row.id = row.model = row.born = row.died = row.described = 0;
    row.removed = false;
    row.removed_ns = row.undeleted_ns = row.undeleted = 0;
    row.lost.clear();
    row.removed_tags.clear();
    Identity identity{row.model_name, row.uid};
    versions_.try_emplace(std::move(identity), std::move(row));
  }

  void describe() {
    for (auto& [identity, description] : described_) {
      const auto at = versions_.find(identity);
      if (at == versions_.end()) {
        lacks(description.model, description.number, "was given a message or metrics");
        continue;
      }
      VersionRow& row = at->second;
      if (description.time_ns <= row.described_ns) continue;
      row.message = std::move(description.message);
      row.metrics = std::move(description.metrics);
      row.described_ns = description.time_ns;
    }
  }

  // Keeps the last of the removals, unless the last undelete is later. A reconciliation that removes a purged version
  // again gives both the same time.
  void remove() {
    for (const auto& [identity, undelete] : undeleted_) {
      const auto version = versions_.find(identity);
      if (version != versions_.end())
        version->second.undeleted_ns = undelete.time_ns;
      else
        lacks(undelete.model, undelete.number, "was brought back");
    }
    for (const auto& [identity, removals] : removed_) {
      const auto undeleted = undeleted_.find(identity);
      const MirroredRemoval& removal = removals.rbegin()->second;
      if (undeleted != undeleted_.end() && removal.time_ns < undeleted->second.time_ns) continue;
      auto [at, fresh] = versions_.try_emplace(identity);
      VersionRow& row = at->second;
      if (fresh) {
        lacks(removal.model, removal.number, "was removed");
        row.model_name = removal.model;
        row.number = removal.number;
        row.time_ns = removal.time_ns;
        row.uid = removal.uid;
      }
      row.removed = true;
      row.removed_ns = removal.time_ns;
      row.lost = removal.lost;
    }
  }

  void lacks(std::string_view model, std::uint64_t number, std::string_view what) {
    names_.problems.push_back(
        fmt::format("{}: it {}, and its record is not at the origin", spec_of(model, number), what));
  }

  // A registry that lost history may have given a number to several versions. The one that was published first keeps
  // it, and the others get numbers after all others of the model.
  void give_names() {
    std::vector<VersionRow*> rows;
    std::map<std::string_view, std::uint64_t> next;
    for (auto& [identity, row] : versions_) {
      if (const auto moved = renumbered_.find(identity); moved != renumbered_.end()) row.number = moved->second.to;
      rows.push_back(&row);
      std::uint64_t& after = next[row.model_name];
      after = std::max(after, row.number + 1);
    }
    const auto key = [](const VersionRow* row) { return std::tie(row->time_ns, row->uid); };
    std::ranges::sort(rows, [&](const VersionRow* a, const VersionRow* b) { return key(a) < key(b); });
    for (VersionRow* row : rows) {
      if (names_.versions.contains({row->model_name, row->number})) {
        const std::string before = spec_of(*row);
        row->number = next[row->model_name]++;
        names_.mended.push_back(
            fmt::format("{}: two versions have this name, because a registry lost history; the later "
                        "one becomes {}",
                        before, spec_of(*row)));
      }
      names_.versions.emplace(Name{row->model_name, row->number}, *row);
    }
  }

  // A tag leads to the version that it was set to, whatever number that has now.
  void set_tags() {
    for (auto& [name, records] : tags_) {
      MirroredTag last = last_of(records);
      if (last.number == 0) continue;
      const auto version = versions_.find({last.model, last.uid});
      if (version == versions_.end())
        names_.problems.push_back(fmt::format("{}: tag {} points to it, and its record is not at the origin",
                                              spec_of(last.model, last.number), last.name));
      if (version == versions_.end() || version->second.removed) continue;
      last.number = version->second.number;
      names_.tags.push_back(std::move(last));
    }
  }

  const OriginDir& origin_;
  OriginNames& names_;
  std::vector<std::pair<std::string, Error>> unread_;                               // damaged records: name and error
  std::map<Identity, VersionRow> versions_;                                         // as the next four
  std::map<Identity, MirroredDescription> described_;                               // the latest of each version
  std::map<Identity, std::map<std::uint64_t, MirroredRemoval>> removed_;            // by version and time
  std::map<Identity, MirroredUndelete> undeleted_;                                  // the last of each version
  std::map<Identity, MirroredRenumber> renumbered_;                                 // the last of each version
  std::map<std::pair<std::string, std::string>, std::vector<CatalogRecord>> tags_;  // by model and tag
};

// Sorts topologically, depth first. Without recursion: a chain of parents may contain all versions.
class Ordering {
 public:
  explicit Ordering(const std::map<Name, VersionRow>& versions) : versions_(versions) {}

  std::vector<const VersionRow*> run() {
    std::vector<const VersionRow*> by_time;
    for (const auto& [name, row] : versions_) by_time.push_back(&row);
    const auto key = [](const VersionRow* row) { return std::tie(row->time_ns, row->model_name, row->number); };
    std::ranges::sort(by_time, [&](const VersionRow* a, const VersionRow* b) { return key(a) < key(b); });
    for (const VersionRow* row : by_time) visit(row);
    return std::move(out_);
  }

 private:
  struct Visit {
    const VersionRow* row;
    std::vector<const VersionRow*> before;
  };

  void begin(const VersionRow* row) {
    if (row == nullptr || !seen_.try_emplace(row).second) return;  // visited, or its own ancestor
    Visit visit{row, {}};
    for (const ParentRef& parent : row->parents) visit.before.push_back(find({parent.model, parent.number}));
    const auto at = versions_.find({row->model_name, row->number});
    if (at != versions_.begin() && std::prev(at)->first.first == row->model_name)
      visit.before.push_back(&std::prev(at)->second);
    stack_.push_back(std::move(visit));
  }

  void visit(const VersionRow* row) {
    begin(row);
    while (!stack_.empty()) {
      Visit& top = stack_.back();
      if (top.before.empty()) {
        out_.push_back(top.row);
        stack_.pop_back();
        continue;
      }
      const VersionRow* next = top.before.back();
      top.before.pop_back();
      begin(next);
    }
  }

  const VersionRow* find(const Name& name) const {
    const auto at = versions_.find(name);
    return at == versions_.end() ? nullptr : &at->second;
  }

  const std::map<Name, VersionRow>& versions_;
  std::map<const VersionRow*, bool> seen_;
  std::vector<Visit> stack_;
  std::vector<const VersionRow*> out_;
};

const MirroredTag& tag_of(const CatalogRecord& record) {
  return std::get<MirroredTag>(record.event);
}

// Returns true if another registry was filled with this state of a tag: the records of that registry are then later,
// whatever its clocks say.
bool goes_on_elsewhere(const CatalogRecord& last, const std::vector<CatalogRecord>& records) {
  return std::ranges::any_of(records, [&](const CatalogRecord& record) {
    const MirroredTag &one = tag_of(record), &other = tag_of(last);
    return record.cluster != last.cluster && one.time_ns == other.time_ns && one.uid == other.uid;
  });
}

}  // namespace

Result<OriginNames> read_names(const OriginDir& origin, Progress& progress) {
  OriginNames names;
  progress.phase("reading the origin's journal");
  WEFT_CHECK(NameReading(origin, names).run(progress));
  return names;
}

MirroredTag last_of(const std::vector<CatalogRecord>& records) {
  std::map<std::string_view, const CatalogRecord*> lasts;  // by cluster
  for (const CatalogRecord& record : records) {
    const CatalogRecord*& last = lasts[record.cluster];
    if (last == nullptr || tag_of(*last).order() < tag_of(record).order()) last = &record;
  }
  const auto time = [](const CatalogRecord* one) { return std::tuple(tag_of(*one).time_ns, tag_of(*one).uid); };
  const CatalogRecord* found = nullptr;
  for (const auto& [cluster, last] : lasts)
    if (!goes_on_elsewhere(*last, records) && (found == nullptr || time(found) < time(last))) found = last;
  return tag_of(found == nullptr ? *lasts.begin()->second : *found);
}

std::vector<const VersionRow*> in_order(const std::map<Name, VersionRow>& versions) {
  return Ordering(versions).run();
}

}  // namespace weft
