#include "index/version_life.h"

#include <algorithm>

#include <fmt/core.h>

#include "index/tables.h"

namespace weft {
namespace {

enum : unsigned { kI = 1, kT = 2, kR = 4, kG = 8, kS = 16, kP = 32, kM = 64 };
constexpr std::pair<std::string_view, unsigned> kNotes[] = {{kIncomplete, kI}, {kAttaching, kT}, {kUnreaped, kR},
                                                            {kReleasing, kG},  {kUnsaved, kS},   {kPinned, kP},
                                                            {kInMemory, kM}};

constexpr unsigned bit(VersionState state) {
  return 1U << static_cast<unsigned>(state);
}

struct StateRow {
  VersionState state;
  std::string_view name;
  bool local;
  unsigned notes, marks;  // notes that stand, and that may stand
  unsigned next;          // states that may follow
};
using enum VersionState;
constexpr StateRow kStates[] = {{absent, "absent", false, 0, 0, bit(attaching) | bit(bare) | bit(whole)},
                                {attaching, "attaching", false, kT, 0, bit(whole) | bit(absent)},
                                {bare, "bare", true, kI, kS | kP | kM, bit(whole) | bit(unreaped)},
                                {whole, "whole", true, 0, kS | kP | kM, bit(unreaped) | bit(releasing)},
                                {unreaped, "unreaped", true, kR, 0, bit(absent) | bit(bare) | bit(whole)},
                                {releasing, "releasing", true, kR | kG, 0, bit(absent) | bit(whole)}};

const StateRow& row_of(VersionState state) {
  return kStates[static_cast<std::size_t>(state)];
}

struct Facts {
  const StateRow* row = nullptr;
  unsigned notes = 0;
};

Result<Facts> facts_of(Txn& txn, VersionId version) {
  Facts facts;
  for (const auto& [note, mask] : kNotes) {
    WEFT_TRY(const bool there, has_note(txn, note, version));
    if (there) facts.notes |= mask;
  }
  WEFT_TRY(const std::optional<Bytes> local, txn.get(Table::locals, key_of(version)));
  const auto fits = [&](const StateRow& row) {
    return row.local == local.has_value() && (facts.notes & ~row.marks) == row.notes;
  };
  const auto found = std::ranges::find_if(kStates, fits);
  if (found == std::end(kStates))
    return damaged(txn, fmt::format("the notes of version {} contradict each other", version));
  facts.row = found;
  return facts;
}

}  // namespace

Result<VersionState> state_of(Txn& txn, VersionId version) {
  WEFT_TRY(const Facts facts, facts_of(txn, version));
  return facts.row->state;
}

Result<VersionState> enter(Txn& txn, VersionId version, VersionState state) {
  WEFT_TRY(const Facts facts, facts_of(txn, version));
  const StateRow& to = row_of(state);
  if ((facts.row->next & bit(state)) == 0)
    return damaged(txn, fmt::format("version {} is {} and cannot become {}", version, facts.row->name, to.name));
  for (const auto& [note, mask] : kNotes) {
    const bool stands = (facts.notes & mask) != 0;
    if (stands && ((to.notes | to.marks) & mask) == 0) WEFT_CHECK(erase_note(txn, note, version));
    if (!stands && (to.notes & mask) != 0) WEFT_CHECK(put_note(txn, note, version));
  }
  return facts.row->state;
}

Status set_mark(Txn& txn, VersionId version, std::string_view note) {
  WEFT_TRY(const Facts facts, facts_of(txn, version));
  const auto found = std::ranges::find(kNotes, note, [](const auto& one) { return one.first; });
  const bool is_of_version = found != std::end(kNotes);
  if (is_of_version && facts.row->state == absent) return {};
  if (!is_of_version || (facts.row->marks & found->second) == 0)
    return damaged(txn, fmt::format("version {} is {} and cannot be {}", version, facts.row->name, note));
  return put_note(txn, note, version);
}

}  // namespace weft
