#include "advise/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weft::advise {
namespace {

std::uint32_t last_of(const Outlook& outlook) {
  return static_cast<std::uint32_t>(outlook.losses.size() - 1);
}

// Returns the number of whole requests within `seconds`, at most `most`.
double requests_within(double seconds, const Timing& timing, double most) {
  return std::min(std::floor(seconds / timing.request_s), most);
}

// Finds schedules of least cost that end with a given save.
class BestSaves {
 public:
  explicit BestSaves(const Outlook& outlook)
      : losses_(outlook.losses),
        timing_(outlook.timing),
        soonest_(outlook.soonest),
        end_s_(static_cast<double>(outlook.requests) * outlook.timing.request_s),
        costs_(losses_.size()),
        before_(losses_.size()),
        hull_(losses_.size()) {}

  double without_saves() const { return losses_[0] * end_s_; }

  // Returns the cost, in loss * seconds, of the best schedule whose last save is `last`. A save that no request meets
  // counts as more costly than no save, so a schedule with such a save is never the best of all.
  double ending_with(std::uint32_t last) {
    end_loss_ = losses_[last];
    first_ = next_ = 0;
    append(0, 0);
    for (std::uint32_t j = soonest_; j <= last; ++j) {
      while (next_ - first_ > 1 && value(hull_[first_ + 1], j) <= value(hull_[first_], j)) ++first_;
      before_[j] = hull_[first_];
      append(j, value(before_[j], j) - losses_[j] * live_s(j));
    }
    return costs_[last] + end_loss_ * end_s_;
  }

  // Returns the schedule of the last call of ending_with(), without saves that lower no loss.
  Saves saves(std::uint32_t last) const {
    Saves saves;
    for (std::uint32_t j = last; j != 0; j = before_[j])
      if (losses_[j] < losses_[before_[j]]) saves.push_back(j);
    std::reverse(saves.begin(), saves.end());
    return saves;
  }

 private:
  double live_s(std::uint32_t j) const { return j * timing_.step_s + timing_.load_s; }

  // The line of save `i` over the next save `j`: the cost of both, without the part that depends on `j` alone.
  double slope(std::uint32_t i) const { return losses_[i] * timing_.step_s; }
  double intercept(std::uint32_t i) const {
    return costs_[i] + losses_[i] * timing_.load_s + timing_.save_s * (losses_[i] - end_loss_);
  }
  double value(std::uint32_t i, std::uint32_t j) const { return intercept(i) + slope(i) * j; }

  // Slopes fall and the arguments rise. So append() drops lines that are never the lowest from the back, and
  // ending_with() drops outdated lines from the front.
  void append(std::uint32_t j, double cost) {
    costs_[j] = cost;
    while (next_ - first_ > 1 && !is_needed(hull_[next_ - 2], hull_[next_ - 1], j)) --next_;
    hull_[next_++] = j;
  }
  // True if line b is below both of its neighbours somewhere.
  bool is_needed(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    return (intercept(c) - intercept(a)) * (slope(a) - slope(b)) >
           (intercept(b) - intercept(a)) * (slope(a) - slope(c));
  }

  const std::vector<double>& losses_;
  const Timing timing_;
  const std::uint32_t soonest_;
  const double end_s_;  // time of the last request
  double end_loss_ = 0;
  std::vector<double> costs_;          // by last save: cost of the best schedule
  std::vector<std::uint32_t> before_;  // by last save: the save before it
  std::vector<std::uint32_t> hull_;    // [first_, next_): saves whose lines are the lowest somewhere
  std::size_t first_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

double cumulative_loss(const Outlook& outlook, std::span<const std::uint32_t> saves) {
  const Timing& timing = outlook.timing;
  const auto all = static_cast<double>(outlook.requests);
  double sum = 0;
  double answered = 0;
  double live_loss = outlook.losses[0];
  for (std::size_t k = 0; k < saves.size(); ++k) {
    const double live_s = saves[k] * timing.step_s + static_cast<double>(k + 1) * timing.save_s + timing.load_s;
    const double by_then = requests_within(live_s, timing, all);
    sum += (by_then - answered) * live_loss;
    answered = by_then;
    live_loss = outlook.losses[saves[k]];
  }
  return sum + (all - answered) * live_loss;
}

double paper_loss(const Outlook& outlook, std::span<const std::uint32_t> saves) {
  const Timing& timing = outlook.timing;
  auto left = static_cast<double>(outlook.requests);
  double sum = 0;
  std::uint32_t before = 0;
  for (const std::uint32_t save : saves) {
    const double seconds = (save - before) * timing.step_s + timing.save_s + (before == 0 ? timing.load_s : 0);
    const double answered = requests_within(seconds, timing, left);
    sum += answered * outlook.losses[before];
    left -= answered;
    before = save;
  }
  return sum + left * outlook.losses[before];
}

Saves regular_saves(const Outlook& outlook, std::uint32_t interval) {
  Saves saves;
  for (std::uint64_t j = std::max(interval, outlook.soonest); j < outlook.losses.size(); j += interval)
    saves.push_back(static_cast<std::uint32_t>(j));
  return saves;
}

std::uint32_t fixed_interval(const Outlook& outlook) {
  std::uint32_t best = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t interval = 1; interval <= last_of(outlook); ++interval)
    if (const double loss = paper_loss(outlook, regular_saves(outlook, interval)); loss < least) {
      least = loss;
      best = interval;
    }
  return best;
}

Saves greedy_saves(const Outlook& outlook, double threshold) {
  Saves saves;
  std::uint32_t before = 0;
  for (std::uint32_t j = outlook.soonest; j < outlook.losses.size(); ++j)
    if (outlook.losses[before] - outlook.losses[j] > threshold) {
      saves.push_back(j);
      before = j;
    }
  return saves;
}

double greedy_threshold(std::span<const LossPoint> points) {
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double difference = std::abs(points[i].loss - points[i - 1].loss);
    sum += difference;
    squares += difference * difference;
  }
  const auto count = static_cast<double>(points.size() - 1);
  const double mean = sum / count;
  return mean + std::sqrt(std::max(squares / count - mean * mean, 0.0));
}

Saves best_saves(const Outlook& outlook) {
  std::uint32_t parts = 32;
  BestSaves search(outlook);
  std::uint32_t low = outlook.soonest;
  std::uint32_t high = last_of(outlook);
  std::uint32_t best = high;
  double least = search.ending_with(high);
  for (bool is_last = false; !is_last;) {
    const std::uint32_t width = std::max((high - low) / parts, 1U);
    is_last = width == 1;
    parts = 8;
    for (std::uint64_t j = low; j <= high; j += width)
      if (const double cost = search.ending_with(static_cast<std::uint32_t>(j)); cost < least) {
        least = cost;
        best = static_cast<std::uint32_t>(j);
      }
    low = best - std::min(width, best - outlook.soonest);
    high = std::min(best + width, last_of(outlook));
  }
  if (!(least < search.without_saves())) return {};
  search.ending_with(best);
  return search.saves(best);
}

}  // namespace weft::advise
