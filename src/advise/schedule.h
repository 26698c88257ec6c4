// After which iterations to save, and how much loss the requests to the served model meet then.
//
// Time runs from the last save. An iteration takes step_s. A save stops the training for save_s, and its model answers
// requests load_s after that, while the training goes on. The n-th request comes at n * request_s, and costs the loss
// of the model that answers it: the sum is the cumulative inference loss of Ye and others, "Viper" (ICPP 2024).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "advise/loss_point.h"

namespace weft::advise {

// In seconds; step_s and request_s are above 0.
struct Timing {
  double step_s = 0;
  double save_s = 0;
  double load_s = 0;
  double request_s = 0;
};

struct Outlook {
  // losses[j] is what a model has j iterations after the last save; [0] is the model that answers now. At least two.
  // They never rise.
  std::vector<double> losses;
  std::uint32_t soonest = 1;  // iterations before this one are past; at least 1, below losses.size()
  std::uint64_t requests = 0;
  Timing timing;
};

// Indexes of Outlook::losses after which the model is saved: rising, from `soonest` on.
using Saves = std::vector<std::uint32_t>;

double cumulative_loss(const Outlook& outlook, std::span<const std::uint32_t> saves);
// As the paper's algorithm 1 counts: whole requests of each model's time, so that each model loses a part of one, and
// the last model answers all that are left.
double paper_loss(const Outlook& outlook, std::span<const std::uint32_t> saves);

// Every `interval` iterations since the last save.
Saves regular_saves(const Outlook& outlook, std::uint32_t interval);
// The paper's algorithm 2: the interval of the least paper_loss, the shortest of equals.
std::uint32_t fixed_interval(const Outlook& outlook);

// The paper's algorithm 3: saves once the loss has fallen by more than `threshold` since the last save. The algorithm
// as printed counts no request after its last save, and goes on to the next iteration only after a save; here it counts
// all and goes on.
Saves greedy_saves(const Outlook& outlook, double threshold);
// Mean and standard deviation, added, of how much consecutive losses differ. The paper does not say which sign a
// difference has; here it has none. At least two points.
double greedy_threshold(std::span<const LossPoint> points);

// The saves of the least cumulative loss, if requests were divisible. In other words: save once the requests have met
// so much loss above that of the newest model that it outweighs a stop of the training, which delays all later models.
//
// With saves j_1 < ... < j_K after j_0 = 0, the loss is a sum of one term for each save, once j_K is given:
//   (L[j_(k-1)] - L[j_k]) * (j_k * step_s + load_s) + save_s * (L[j_(k-1)] - L[j_K])
// and L[j_K] * requests * request_s. The first part is linear in j_k with a slope that falls with j_(k-1), so that the
// best predecessor of each iteration lies on a hull of lines: a time linear in the iterations. The best j_K is
// searched; it is the last iteration unless requests end before.
Saves best_saves(const Outlook& outlook);

}  // namespace weft::advise
