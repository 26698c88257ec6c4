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

constexpr unsigned kMarks = kS | kP | kM;

// Returns the bit of a note; 0 if it is none about versions.
unsigned note_bit(std::string_view note) {
  const auto found = std::ranges::find(kNotes, note, [](const auto& one) { return one.first; });
  return found == std::end(kNotes) ? 0 : found->second;
}

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
                                {bare, "bare", true, kI, kMarks, bit(whole) | bit(unreaped)},
                                {whole, "whole", true, 0, kMarks, bit(unreaped) | bit(releasing)},
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
  const unsigned mask = note_bit(note);
  if (mask != 0 && facts.row->state == absent) return {};
  if ((facts.row->marks & mask) == 0)
    return damaged(txn, fmt::format("version {} is {} and cannot be {}", version, facts.row->name, note));
  return put_note(txn, note, version);
}

Status set_purged(Txn& txn, VersionId version, std::uint64_t time_ns) {
  return put_note(txn, kPurged, version, time_ns);
}

Status clear_purged(Txn& txn, VersionId version) {
  return erase_note(txn, kPurged, version);
}

Status clear_mark(Txn& txn, VersionId version, std::string_view note) {
  WEFT_TRY(const Facts facts, facts_of(txn, version));
  const unsigned mask = note_bit(note);
  if ((kMarks & mask) == 0) return damaged(txn, fmt::format("version {} cannot lose the note {}", version, note));
  return (facts.notes & mask) == 0 ? Status{} : erase_note(txn, note, version);
}

Status set_steps(Txn& txn, VersionId version, VersionState state, std::uint64_t steps) {
  WEFT_TRY(const Facts facts, facts_of(txn, version));
  if (facts.row->state != state || (state != attaching && state != releasing))
    return damaged(
        txn, fmt::format("version {} is {} and takes no step of {}", version, facts.row->name, row_of(state).name));
  return put_note(txn, state == attaching ? kAttaching : kReleasing, version, steps);
}

}  // namespace weft
