// Schedules of saves, and the loss that requests to the served model meet.
//
// Time runs from the last save. An iteration takes step_s. A save stops the training for save_s. Its model answers
// requests load_s after that, while the training goes on. The n-th request comes at n * request_s, and costs the loss
// of the model that answers it. The sum is the cumulative inference loss of Ye and others, "Viper" (ICPP 2024).
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
  // losses[j] is the loss of a model j iterations after the last save; losses[0] is that of the model that serves now.
  // At least two values. They never rise.
  std::vector<double> losses;
  std::uint32_t soonest = 1;  // first iteration that can still be saved; at least 1, below losses.size()
  std::uint64_t requests = 0;
  Timing timing;
};

// Indexes of Outlook::losses after which the model is saved: ascending, from `soonest` on.
using Saves = std::vector<std::uint32_t>;

double cumulative_loss(const Outlook& outlook, std::span<const std::uint32_t> saves);
// The loss as the paper's algorithm 1 counts it: each model answers whole requests, so it loses a part of one, and the
// last model answers all remaining requests.
double paper_loss(const Outlook& outlook, std::span<const std::uint32_t> saves);

// Saves every `interval` iterations since the last save.
Saves regular_saves(const Outlook& outlook, std::uint32_t interval);
// The paper's algorithm 2: returns the interval with the least paper_loss, the shortest one among equals.
std::uint32_t fixed_interval(const Outlook& outlook);

// The paper's algorithm 3: saves once the loss has fallen by more than `threshold` since the last save. The printed
// algorithm counts no request after its last save, and advances to the next iteration only after a save. This one
// counts all requests and always advances.
Saves greedy_saves(const Outlook& outlook, double threshold);
// Returns the mean plus the standard deviation of the differences between consecutive losses. The paper does not define
// the sign of a difference; here it is absolute. At least two points.
double greedy_threshold(std::span<const LossPoint> points);

// Returns the saves of the least cumulative loss, as if requests were divisible. In other words: it saves once the
// requests have met so much loss above that of the newest model that it outweighs a stop of the training, which delays
// all later models.
//
// With saves j_1 < ... < j_K after j_0 = 0, and j_K given, the loss is the sum of one term for each save
//   (L[j_(k-1)] - L[j_k]) * (j_k * step_s + load_s) + save_s * (L[j_(k-1)] - L[j_K])
// and of L[j_K] * requests * request_s. The first part of a term is linear in j_k, with a slope that falls with
// j_(k-1). So the best predecessor of each iteration lies on a hull of lines, which takes time linear in the
// iterations. The best j_K is searched. It is the last iteration unless the requests end before.
Saves best_saves(const Outlook& outlook);

}  // namespace weft::advise
