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
using Subject = std::pair<Name, Uuid>;  // a version by its name and identity

constexpr std::size_t kTimeDigits = 16;                             // hex digits of the time in a record's name
constexpr std::uint64_t kClocksDifferMax = 300ULL * 1'000'000'000;  // ns between the clocks of two nodes

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
    removed_[{{removal.model, removal.number}, removal.uid}].try_emplace(removal.time_ns, removal);
  }

  void add(const MirroredUndelete& undelete) {
    std::uint64_t& last_ns = undeleted_[{{undelete.model, undelete.number}, undelete.uid}];
    last_ns = std::max(last_ns, undelete.time_ns);
  }

  void add(MirroredDescription description) {
    MirroredDescription& last = described_[{{description.model, description.number}, description.uid}];
    if (description.time_ns > last.time_ns) last = std::move(description);
  }

  // Recovers damaged removals and undeletes. The name of such a record consists of the time and a hash of the version's
  // name and identity, so it identifies any version that is known.
  void recover_unread() {
    std::map<std::string, std::pair<Subject, bool>>
        by_name;  // record name without the time -> version; true: a removal
    if (!unread_.empty())
      for (const auto& [version, row] : versions_) {
        const auto& [model, number] = version.first;
        const CatalogEvent events[] = {MirroredRemoval{model, number, 0, {}, row.uid},
                                       MirroredUndelete{model, number, 0, row.uid}};
        for (const CatalogEvent& event : events)
          by_name.emplace(catalog_event_name(event, {}).substr(kTimeDigits),
                          std::pair(version, std::holds_alternative<MirroredRemoval>(event)));
      }
    for (const auto& [name, error] : unread_) {
      const auto time_ns = time_of(name);
      const auto found = time_ns ? by_name.find(name.substr(kTimeDigits)) : by_name.end();
      if (found == by_name.end()) {
        names_.problems.push_back(fmt::format("{}; {}", error.message, lost_with(name)));
        continue;
      }
      const auto& [version, removal] = found->second;
      const auto& [model, number] = version.first;
      removal ? add(MirroredRemoval{model, number, *time_ns, {}, version.second})
              : add(MirroredUndelete{model, number, *time_ns, version.second});
      names_.mended.push_back(fmt::format("{}; its name tells that it {} {}", error.message,
                                          removal ? "removed" : "brought back", spec_of(model, number)));
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
    if (name.ends_with(".rm")) return "it removed no version that the origin has a record of";
    if (name.ends_with(".tag")) return "a change of a tag is lost: the tag may point to an earlier version";
    return "its content is lost; if it was a removal, the version is not removed";
  }

  static const std::string& model_of(const VersionRow& row) { return row.model_name; }
  static const std::string& model_of(const MirroredTag& tag) { return tag.model; }
  static const std::string& model_of(const MirroredRemoval& removal) { return removal.model; }
  static const std::string& model_of(const MirroredDescription& description) { return description.model; }
  static const std::string& model_of(const MirroredUndelete& undelete) { return undelete.model; }

  // Adds a version without its ids, which are valid only in the store that wrote the record.
  void add(VersionRow row) {
    row.id = row.model = row.born = row.died = row.described = 0;
    row.removed = false;
    row.removed_ns = row.undeleted_ns = row.undeleted = 0;
    row.lost.clear();
    row.removed_tags.clear();
    row.publisher.clear();
    const Subject subject{{row.model_name, row.number}, row.uid};
    versions_.try_emplace(subject, std::move(row));
  }

  void describe() {
    for (auto& [subject, description] : described_) {
      const auto at = versions_.find(subject);
      if (at == versions_.end()) {
        lacks(subject, "was given a message or metrics");
        continue;
      }
      VersionRow& row = at->second;
      if (description.time_ns <= row.described_ns) continue;
      row.message = std::move(description.message);
      row.metrics = std::move(description.metrics);
      row.described_ns = description.time_ns;
    }
  }

  // Keeps the first of the removals after the last undelete.
  void remove() {
    for (const auto& [subject, undeleted_ns] : undeleted_) {
      const auto version = versions_.find(subject);
      if (version != versions_.end())
        version->second.undeleted_ns = undeleted_ns;
      else
        lacks(subject, "was brought back");
    }
    for (const auto& [subject, removals] : removed_) {
      const auto undeleted = undeleted_.find(subject);
      const auto first = undeleted == undeleted_.end() ? removals.begin() : removals.upper_bound(undeleted->second);
      if (first == removals.end()) continue;
      const MirroredRemoval& removal = first->second;
      auto [at, fresh] = versions_.try_emplace(subject);
      VersionRow& row = at->second;
      if (fresh) {
        lacks(subject, "was removed");
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

  void lacks(const Subject& subject, std::string_view what) {
    const auto& [model, number] = subject.first;
    names_.problems.push_back(
        fmt::format("{}: it {}, and its record is not at the origin", spec_of(model, number), what));
  }

  // The version that was published first keeps a name that two have.
  void give_names() {
    for (auto& [subject, row] : versions_) {
      auto [at, fresh] = names_.versions.try_emplace(subject.first, row);
      if (fresh) continue;
      names_.problems.push_back(
          fmt::format("{}: two versions have this name: two clusters wrote here, or one whose "
                      "registry was lost",
                      spec_of(row.model_name, row.number)));
      if (row.time_ns < at->second.time_ns) at->second = row;
    }
  }

  void set_tags() {
    for (auto& [name, records] : tags_) {
      MirroredTag last = last_of(std::move(records));
      if (last.number == 0) continue;
      const auto version = names_.versions.find({last.model, last.number});
      if (version == names_.versions.end() || version->second.uid != last.uid)
        names_.problems.push_back(fmt::format("{}: tag {} points to it, and its record is not at the origin",
                                              spec_of(last.model, last.number), last.name));
      else if (!version->second.removed)
        names_.tags.push_back(std::move(last));
    }
  }

  const OriginDir& origin_;
  OriginNames& names_;
  std::vector<std::pair<std::string, Error>> unread_;  // damaged records: name and error
  std::map<Subject, VersionRow> versions_;
  std::map<Subject, MirroredDescription> described_;                     // the latest of each version
  std::map<Subject, std::map<std::uint64_t, MirroredRemoval>> removed_;  // by version and time
  std::map<Subject, std::uint64_t> undeleted_;  // the time of the last undelete of each version
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

}  // namespace

Result<OriginNames> read_names(const OriginDir& origin, Progress& progress) {
  OriginNames names;
  progress.phase("reading the origin's journal");
  WEFT_CHECK(NameReading(origin, names).run(progress));
  return names;
}

MirroredTag last_of(std::vector<CatalogRecord> records) {
  const auto tag_of = [](const CatalogRecord& record) -> const MirroredTag& {
    return std::get<MirroredTag>(record.event);
  };
  std::ranges::sort(records, [&](const CatalogRecord& a, const CatalogRecord& b) {
    return std::pair(tag_of(a).time_ns, tag_of(a).revision) < std::pair(tag_of(b).time_ns, tag_of(b).revision);
  });
  const CatalogRecord* last = &records.front();
  for (const CatalogRecord& next : records) {
    const bool near = tag_of(next).time_ns - tag_of(*last).time_ns <= kClocksDifferMax;
    const bool earlier = next.cluster == last->cluster && tag_of(next).revision < tag_of(*last).revision;
    if (!near || !earlier) last = &next;
  }
  return tag_of(*last);
}

std::vector<const VersionRow*> in_order(const std::map<Name, VersionRow>& versions) {
  return Ordering(versions).run();
}

}  // namespace weft
