#include "repair/rebuild.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "catalog/apply.h"
#include "index/manifests.h"
#include "index/pages.h"

namespace weft {
namespace {

// Added to the sequence number of a rebuilt index, so that it exceeds that of the old index: gc counts its commits too,
// and they are not in the journal.
constexpr std::uint64_t kSequenceStep = 1ULL << 32U;

Error stopped() {
  return Error{Errc::cancelled, "stopped"};
}

}  // namespace

Result<std::unique_ptr<Rebuilder>> Rebuilder::begin(Env& env, const RebuildInput& input, Progress& progress,
                                                    FsckReport& report) {
  WEFT_TRY(WriterLock lock, env.lock_writer());
  WEFT_TRY(const std::optional<Counters> mark, input.journal.mark());
  return std::unique_ptr<Rebuilder>(new Rebuilder(env, std::move(lock), input, progress, report, mark));
}

Rebuilder::Rebuilder(Env& env, WriterLock lock, const RebuildInput& input, Progress& progress, FsckReport& report,
                     const std::optional<Counters>& mark)
    : env_(env),
      lock_(std::move(lock)),
      input_(input),
      progress_(progress),
      report_(report),
      mark_(mark),
      survey_(input.journal.path().str(), input.index ? input.index : mark),
      replay_(env, lock_, input, survey_, report) {}

// Reads the whole journal, and reports damage and losses.
Result<JournalState> Rebuilder::survey() {
  const std::uint64_t end = input_.index ? input_.index->journal_end : UINT64_MAX;
  WEFT_TRY(JournalState state, input_.journal.each(0, end, [this](const JournaledEvent& event) -> Status {
    if (progress_.cancelled()) return stopped();
    survey_.see(event);
    return {};
  }));
  const std::uint64_t expected = input_.index ? end : mark_ ? mark_->journal_end : state.size;
  WEFT_CHECK(survey_.plan_repair(input_.journal, expected));
  auto& lines = input_.mend ? report_.repaired : report_.problems;
  lines.insert(lines.end(), state.damage.begin(), state.damage.end());
  if (!mark_) lines.push_back(input_.journal.path().str() + ": the marks of its copy are missing or damaged");
  auto& losses = input_.accept_loss ? report_.lost : report_.problems;
  losses.insert(losses.end(), survey_.losses().begin(), survey_.losses().end());
  return state;
}

// Returns the extents that all versions need, except reaped versions.
Result<WantedExtents> Rebuilder::wanted() const {
  WantedExtents wanted;
  std::unordered_set<ContentId> here;
  std::unordered_set<ContentId> elsewhere;
  const auto add = [&](const JournaledEvent& journaled) -> Status {
    const auto* publish = std::get_if<PublishEvent>(&journaled.event);
    if (publish == nullptr || ends_reaped(input_, survey_, publish->version)) return {};
    auto content = read_content(input_, publish->version);
    if (!content.ok() && !is_damage(content.error())) return std::move(content).error();
    if (!content.ok()) return {};  // reported when the event is replayed
    const bool lacks = may_lack(input_, publish->version);
    for (const VersionContent::FileContent& file : content->files)
      for (const Extent& extent : file.extents)
        if ((lacks ? elsewhere : here).insert(extent.id).second)
          (lacks ? wanted.elsewhere : wanted.here).push_back(extent);
    return {};
  };
  auto read = input_.journal.each(0, end_, add);
  if (!read.ok()) return std::move(read).error();
  return wanted;
}

Status Rebuilder::replay_all() {
  auto read = input_.journal.each(0, end_, [this](JournaledEvent event) -> Status {
    return progress_.cancelled() ? Status{stopped()} : replay_.add(std::move(event));
  });
  if (!read.ok()) return std::move(read).error();
  if (survey_.repair() && input_.accept_loss) WEFT_CHECK(replay_.add({*survey_.repair(), end_, end_}));
  return replay_.flush();
}

// Calls change(txn, from) for each page of a table, in a transaction of its own. It returns where the next page begins.
Status Rebuilder::change_pages(const std::function<Result<std::string>(Txn&, std::string_view)>& change) {
  std::string from;
  do {
    std::string next;
    WEFT_CHECK(env_.write(lock_, [&](Txn& txn) -> Status {
      WEFT_TRY(next, change(txn, from));
      return {};
    }));
    from = std::move(next);
  } while (!from.empty());
  return {};
}

// Adds a row without a version for each number whose record is lost, so that the number is not reused.
Status Rebuilder::fill_gaps() {
  return change_pages([](Txn& txn, std::string_view from) -> Result<std::string> {
    std::vector<ModelRow> models;
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_TRY(ModelRow row, row_from<ModelRow>(txn, Table::models, entry.key, entry.value));
      models.push_back(std::move(row));
      return {};
    };
    WEFT_TRY(std::string next, visit_page(txn, Table::models, {}, from, add));
    for (const ModelRow& model : models) WEFT_CHECK(fill_numbers(txn, model));
    return next;
  });
}

// Erases the manifests that packs list and no version needs.
Status Rebuilder::drop_unneeded_manifests() {
  return change_pages([](Txn& txn, std::string_view from) -> Result<std::string> {
    std::vector<std::pair<Digest, ManifestRow>> unneeded;
    const auto add = [&](const Entry& entry) -> Status {
      WEFT_TRY(const auto row, row_from<ManifestRow>(txn, Table::manifests, entry.key, entry.value));
      if (row.versions == 0) unneeded.emplace_back(digest_of(entry.key), row);
      return {};
    };
    WEFT_TRY(std::string next, visit_page(txn, Table::manifests, {}, from, add));
    for (const auto& [digest, row] : unneeded) WEFT_CHECK(erase_manifest(txn, digest, row));
    return next;
  });
}

// Completes the index and sets its counters. The journal's mark raises them above all numbers that lost records may
// have used, so that no number is used twice.
Status Rebuilder::finish() {
  WEFT_CHECK(fill_gaps());
  WEFT_CHECK(drop_unneeded_manifests());
  return env_.write(lock_, [&](Txn& txn) -> Status {
    if (input_.mend && mark_) WEFT_CHECK(raise_counters(txn, *mark_));
    WEFT_TRY(Counters counters, get_counters(txn));
    counters.journal_end = end_;
    counters.sequence += kSequenceStep;
    return put_counters(txn, counters);
  });
}

Result<RebuildOutcome> Rebuilder::fill() {
  WEFT_CHECK(env_.write(lock_, [](Txn& txn) { return put_counters(txn, Counters{}); }));
  WEFT_TRY(const JournalState journal, survey());
  end_ = journal.end;
  WEFT_TRY(FoundPacks packs, index_packs(
                                 env_, lock_, input_, [this] { return wanted(); }, progress_, report_));
  WEFT_CHECK(replay_all());
  WEFT_CHECK(finish());
  return RebuildOutcome{end_, survey_.repair(), std::move(packs), replay_.missing()};
}

Status Rebuilder::follow(std::uint64_t journal_end) {
  if (journal_end <= end_) return {};
  replay_.expect_packs();
  WEFT_TRY(const JournalState journal, input_.journal.each(end_, journal_end, [this](JournaledEvent event) -> Status {
    if (progress_.cancelled()) return stopped();
    survey_.see(event);
    return replay_.add(std::move(event));
  }));
  report_.problems.insert(report_.problems.end(), journal.damage.begin(), journal.damage.end());
  if (!journal.gaps.empty() || journal.end < journal_end)
    report_.problems.push_back(
        fmt::format("{}: damaged behind {}, which was its end when fsck began", input_.journal.path(), end_));
  end_ = journal_end;
  return replay_.flush();
}

}  // namespace weft
