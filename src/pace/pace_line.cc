#include "pace/pace_line.h"

#include <algorithm>

namespace weft {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Seconds kCostMax{3'600};
constexpr std::array kRates{PaceRate::staging, PaceRate::total, PaceRate::origin};

std::size_t index_of(PaceRate rate) {
  return static_cast<std::size_t>(rate);
}

Deadline::duration cost(std::uint64_t bytes, std::uint64_t rate) {
  const Seconds seconds(static_cast<double>(bytes) / static_cast<double>(rate));
  return std::chrono::duration_cast<Deadline::duration>(std::min(seconds, kCostMax));
}

}  // namespace

bool PaceLine::counts(PaceRate rate, Traffic traffic, PaceEnd end) {
  if (rate == PaceRate::staging) return traffic == Traffic::staging;
  return rate == PaceRate::total || end == PaceEnd::origin;
}

bool PaceLine::holds(PaceRate rate, Traffic traffic, PaceEnd end) {
  return counts(rate, traffic, end) && (traffic != Traffic::foreground || rate == PaceRate::total);
}

void PaceLine::set(const PaceRates& rates) {
  rates_ = rates;
  const std::array numbers{rates.staging, rates.total, rates.origin};
  for (const PaceRate rate : kRates)
    if (Account& account = accounts_.at(index_of(rate)); account.rate != numbers.at(index_of(rate)))
      account = {numbers.at(index_of(rate)), {}, account.waited_for};
}

bool PaceLine::holds(Traffic traffic, PaceEnd end) const {
  return std::ranges::any_of(
      kRates, [&](PaceRate rate) { return accounts_.at(index_of(rate)).rate != 0 && holds(rate, traffic, end); });
}

// Returns the rate that is free last of those that hold back the read; null: none is set.
const PaceLine::Account* PaceLine::latest(const PacedRead& read) const {
  const Account* latest = nullptr;
  for (const PaceRate rate : kRates) {
    const Account& one = accounts_.at(index_of(rate));
    if (one.rate == 0 || !holds(rate, read.traffic, read.end)) continue;
    if (latest == nullptr || one.free_at > latest->free_at) latest = &one;
  }
  return latest;
}

// Returns a rate that holds back both reads.
std::optional<PaceRate> PaceLine::shared(const PacedRead& one, const PacedRead& other) const {
  const auto is_shared = [&](PaceRate rate) {
    return accounts_.at(index_of(rate)).rate != 0 && holds(rate, one.traffic, one.end) &&
           holds(rate, other.traffic, other.end);
  };
  const auto* const found = std::ranges::find_if(kRates, is_shared);
  return found == kRates.end() ? std::nullopt : std::optional(*found);
}

Deadline PaceLine::aged_at(const PacedRead& read) const {
  return std::max(read.since, passed_.at(static_cast<std::size_t>(read.traffic))) + kAgedMax;
}

bool PaceLine::goes_before(const PacedRead& one, const PacedRead& other, Deadline now) const {
  const bool one_aged = aged_at(one) <= now;
  const bool other_aged = aged_at(other) <= now;
  if (one_aged != other_aged) return one_aged;
  if (one.traffic != other.traffic) return one.traffic < other.traffic;
  return one.number < other.number;
}

std::optional<PaceLine::Held> PaceLine::held(const PacedRead& read, Deadline now) const {
  const Account* last = latest(read);
  if (last == nullptr) return {};
  const auto rate = static_cast<PaceRate>(last - accounts_.data());
  if (last->free_at > now) return Held{rate, last->free_at};
  const Deadline aged = aged_at(read);
  if (aged <= now) return {};
  if (read.traffic == Traffic::staging && reader_waited_ + kAfterReader > now)
    return Held{PaceRate::total, std::min(reader_waited_ + kAfterReader, aged)};
  for (const auto& [number, other] : line_) {
    const Account* const theirs = latest(other);  // null: no rate holds that read back any more
    if (number == read.number || theirs == nullptr || theirs->free_at > now || !goes_before(other, read, now)) continue;
    if (const auto both = shared(read, other)) return Held{*both, aged};
  }
  return {};
}

// `begun`: the bytes count from then, or once the rate is free.
void PaceLine::count(const PacedRead& read, std::uint64_t bytes, Deadline now, Deadline begun) {
  for (const PaceRate rate : kRates) {
    Account& account = accounts_.at(index_of(rate));
    if (account.rate == 0 || !counts(rate, read.traffic, read.end)) continue;
    if (holds(rate, read.traffic, read.end)) {
      account.free_at = std::max(account.free_at, begun) + cost(bytes, account.rate);
      account.waited_for = now;
    } else {
      const Deadline owed = std::max(account.free_at, now) + cost(bytes, account.rate);
      account.free_at = std::max(account.free_at, std::min(owed, account.waited_for + kReadersDebtMax));
    }
  }
}

std::optional<PaceLine::Held> PaceLine::pass(PacedRead& read, std::uint64_t bytes, Deadline now) {
  if (read.since == Deadline{}) read.since = now;
  const auto why = held(read, now);
  if (read.traffic == Traffic::foreground && (why || read.since < now)) reader_waited_ = now;
  if (why) {
    line_[read.number] = read;
    return why;
  }
  count(read, bytes, now, std::max<Deadline>(read.since, now - kLateMax));
  passed_.at(static_cast<std::size_t>(read.traffic)) = now;
  leave(read);
  read.since = {};
  return {};
}

}  // namespace weft
