#include "repair/rebuild.h"

#include "catalog/giving_back.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "repair/survey.h"

namespace weft {
namespace {

// A rebuilt index counts on from where the old one cannot have been: commits of gc are not in the journal.
constexpr std::uint64_t kSequenceStep = 1ULL << 32U;

class Rebuilder {
 public:
  Rebuilder(Env& env, const WriterLock& lock, const RebuildInput& input, const JournalTail& journal,
            const JournalSurvey& survey, FsckReport& report)
      : env_(env), lock_(lock), input_(input), journal_(journal), survey_(survey), report_(report) {}

  Status run(const std::optional<Counters>& mark, Progress& progress);
  FoundPacks take_packs() { return std::move(packs_); }
  std::uint64_t missing() const { return missing_; }

 private:
  Result<WantedExtents> wanted();
  Status replay(const PublishEvent& event);
  Status replay(TagsEvent event);
  Status replay(const RemovalEvent& event);
  Status replay(const RepairEvent& event);
  Status replay(const AdoptionEvent& event);
  Status replay(const PinEvent& event);
  bool is_reaped(const VersionRow& version) const {
    return survey_.is_removed(version.model_name, version.number) && !(input_.unreaped && input_.unreaped(version.id));
  }
  bool is_own(const VersionRow& version) const { return !input_.node.empty() && version.publisher == input_.node; }
  // A version of another node may lack extents here: they are fetched when they are read.
  bool may_lack(const VersionRow& version) const { return !version.publisher.empty() && !is_own(version); }
  Status try_publish(const PublishEvent& event, const VersionContent* content, bool reaped);
  Status try_adoption(const AdoptionEvent& event, const VersionContent* content);
  Result<VersionContent> read_content(const VersionRow& version);
  Result<std::optional<VersionContent>> content_of(const VersionRow& version);
  Status fill_gaps();
  Status finish(const std::optional<Counters>& mark);

  Env& env_;
  const WriterLock& lock_;
  const RebuildInput& input_;
  const JournalTail& journal_;
  const JournalSurvey& survey_;
  FsckReport& report_;
  FoundPacks packs_;
  std::uint64_t missing_ = 0;
};

std::string label(const VersionRow& version) {
  return fmt::format("{}@{}", version.model_name, version.number);
}

Result<VersionContent> Rebuilder::read_content(const VersionRow& version) {
  WEFT_TRY(std::shared_ptr<const ManifestReader> manifest, input_.manifests.open(version.manifest));
  return input_.decode(manifest->bytes());
}

// Nothing if the manifest is damaged or gone.
Result<std::optional<VersionContent>> Rebuilder::content_of(const VersionRow& version) {
  auto content = read_content(version);
  if (content.ok()) return std::optional(std::move(*content));
  if (!is_damage(content.error())) return std::move(content).error();
  report_.problems.push_back(
      fmt::format("{}: its content cannot be read: {}", label(version), content.error().message));
  return std::optional<VersionContent>();
}

// All content that live versions need.
Result<WantedExtents> Rebuilder::wanted() {
  WantedExtents wanted;
  for (const PublishEvent* publish : survey_.publishes()) {
    if (is_reaped(publish->version)) continue;
    auto content = read_content(publish->version);
    if (!content.ok() && !is_damage(content.error())) return std::move(content).error();
    if (!content.ok()) continue;  // reported when the event is replayed
    std::vector<Extent>& extents = may_lack(publish->version) ? wanted.elsewhere : wanted.here;
    for (const VersionContent::FileContent& file : content->files)
      extents.insert(extents.end(), file.extents.begin(), file.extents.end());
  }
  return wanted;
}

Status Rebuilder::try_publish(const PublishEvent& event, const VersionContent* content, bool reaped) {
  std::uint64_t missing = 0;
  Status status = env_.write(lock_, [&](Txn& txn) -> Status {
    missing = 0;
    PublishInput input;
    input.content = content;
    input.reaped = reaped;
    input.first_views = &survey_.first_views();
    input.missing_extents = &missing;
    input.absent = true;
    input.own = is_own(event.version);
    WEFT_CHECK(apply_publish(txn, event, input));
    return {};
  });
  if (may_lack(event.version)) return status;
  missing_ += missing;
  if (missing != 0 && event.version.publisher.empty())
    report_.problems.push_back(fmt::format("{}: {} of its extents are in no pack", label(event.version), missing));
  return status;
}

Status Rebuilder::replay(const PublishEvent& event) {
  const VersionRow& version = event.version;
  bool removed = survey_.is_removed(version.model_name, version.number);
  if (is_reaped(version)) return try_publish(event, nullptr, true);
  if (!removed) ++report_.versions;
  if (event.bare) return try_publish(event, nullptr, false);
  WEFT_TRY(std::optional<VersionContent> content, content_of(version));
  if (!content) return try_publish(event, nullptr, false);
  Status status = try_publish(event, &*content, false);
  if (status.ok() || status.error().code != Errc::corrupt) return status;
  WEFT_CHECK(tell(report_, std::move(status), label(version)));
  return try_publish(event, nullptr, false);
}

// Of a version that went again and is reaped, nothing is left to adopt.
Status Rebuilder::replay(const AdoptionEvent& event) {
  std::optional<VersionRow> version;
  {
    WEFT_TRY(Txn txn, env_.read());
    WEFT_TRY(version, find_row<VersionRow>(txn, Table::versions, key_of(event.version)));
    WEFT_TRY(bool incomplete, is_incomplete(txn, event.version));
    if (!incomplete) version.reset();
  }
  std::optional<VersionContent> content;
  if (version) {
    WEFT_TRY(content, content_of(*version));
  }
  Status status = try_adoption(event, content ? &*content : nullptr);
  if (status.ok() || status.error().code != Errc::corrupt || !content) return status;
  WEFT_CHECK(tell(report_, std::move(status), label(*version)));
  return try_adoption(event, nullptr);
}

Status Rebuilder::try_adoption(const AdoptionEvent& event, const VersionContent* content) {
  return env_.write(lock_, [&](Txn& txn) {
    PublishInput input;
    input.content = content;
    input.first_views = &survey_.first_views();
    input.absent = true;
    return apply_adoption(txn, event, input);
  });
}

Status Rebuilder::replay(const RemovalEvent& event) {
  if (survey_.is_lost(event.model, event.number)) return {};
  std::optional<VersionContent> content;
  std::uint64_t given_back = kAllHeld;
  {
    WEFT_TRY(Txn txn, env_.read());
    WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
    if (!model) return Error{Errc::corrupt, fmt::format("removal of {}@{}: no such model", event.model, event.number)};
    WEFT_TRY(std::optional<VersionRow> version, find_version(txn, model->id, event.number));
    WEFT_TRY(bool incomplete, version ? is_incomplete(txn, version->id) : Result<bool>(false));
    if (version && !incomplete && input_.unreaped && input_.unreaped(version->id)) {
      WEFT_TRY(content, content_of(*version));
      if (input_.given_back) given_back = input_.given_back(version->id);
    }
  }
  return env_.write(lock_,
                    [&](Txn& txn) { return apply_removal(txn, event, content ? &*content : nullptr, given_back); });
}

// A tag that was set to a lost version is where it was set to after that, or nowhere.
Status Rebuilder::replay(TagsEvent event) {
  for (TagChange& change : event.changes)
    if (change.number != 0 && survey_.is_lost(event.model, change.number)) change.number = 0;
  return env_.write(lock_, [&](Txn& txn) -> Status {
    WEFT_TRY(std::optional<ModelRow> model, find_model(txn, event.model));
    if (!model && survey_.is_lost(event.model, 1)) return {};
    return apply_tags(txn, event);
  });
}

Status Rebuilder::replay(const RepairEvent& event) {
  return env_.write(lock_, [&](Txn& txn) { return apply_repair(txn, event); });
}

Status Rebuilder::replay(const PinEvent& event) {
  return env_.write(lock_, [&](Txn& txn) { return apply_pin(txn, event); });
}

// A number whose record was lost is never given again, and says so by naming no version.
Status Rebuilder::fill_gaps() {
  return env_.write(lock_, [](Txn& txn) -> Status {
    std::vector<ModelRow> models;
    WEFT_CHECK(each_entry(txn, Table::models, {}, [&](const Entry& entry) -> Status {
      WEFT_TRY(ModelRow row, row_from<ModelRow>(txn, Table::models, entry.key, entry.value));
      models.push_back(std::move(row));
      return {};
    }));
    for (const ModelRow& model : models) WEFT_CHECK(fill_numbers(txn, model));
    return {};
  });
}

// What was given before by a journal that says no more of it is not given again.
Status Rebuilder::finish(const std::optional<Counters>& mark) {
  WEFT_CHECK(fill_gaps());
  return env_.write(lock_, [&](Txn& txn) -> Status {
    if (mark) WEFT_CHECK(raise_counters(txn, *mark));
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.journal_end = journal_.end;
    counters.sequence += kSequenceStep;
    return put_counters(txn, counters);
  });
}

Status Rebuilder::run(const std::optional<Counters>& mark, Progress& progress) {
  WEFT_CHECK(env_.write(lock_, [](Txn& txn) { return put_counters(txn, Counters{}); }));
  WEFT_TRY(packs_, index_packs(
                       env_, lock_, input_, [this] { return wanted(); }, progress, report_));
  for (const JournaledEvent& journaled : journal_.events) {
    if (progress.cancelled()) return Error{Errc::cancelled, "stopped"};
    WEFT_CHECK(tell(report_, std::visit([this](const auto& event) { return replay(event); }, journaled.event),
                    fmt::format("{}: the record at {}", input_.journal.path(), journaled.begin)));
  }
  if (survey_.repair() && input_.accept_loss) WEFT_CHECK(replay(*survey_.repair()));
  return finish(mark);
}

}  // namespace

bool is_damage(const Error& error) {
  return error.code == Errc::corrupt || error.code == Errc::not_found;
}

Status tell(FsckReport& report, Status status, const std::string& what) {
  if (status.ok() || !is_damage(status.error())) return status;
  report.problems.push_back(fmt::format("{}: {}", what, status.error().message));
  return {};
}

Result<RebuildOutcome> fill_index(Env& env, const RebuildInput& input, Progress& progress, FsckReport& report) {
  WEFT_TRY(WriterLock lock, env.lock_writer());
  WEFT_TRY(JournalTail journal, input.journal.read(0, input.journal_end));
  WEFT_TRY(std::optional<Counters> mark, input.journal.mark());
  std::uint64_t expected = mark ? mark->journal_end : journal.size;
  if (input.journal_end != UINT64_MAX) expected = input.journal_end;
  JournalSurvey survey(journal, mark, expected, input.journal.path().str());
  auto& lines = input.mend ? report.repaired : report.problems;
  lines.insert(lines.end(), journal.damage.begin(), journal.damage.end());
  if (!mark) lines.push_back(input.journal.path().str() + ": the marks of its copy are missing or damaged");
  auto& losses = input.accept_loss ? report.lost : report.problems;
  losses.insert(losses.end(), survey.losses().begin(), survey.losses().end());
  Rebuilder rebuilder(env, lock, input, journal, survey, report);
  WEFT_CHECK(rebuilder.run(input.mend ? mark : std::nullopt, progress));
  return RebuildOutcome{journal.end, survey.repair(), rebuilder.take_packs(), rebuilder.missing()};
}

}  // namespace weft
