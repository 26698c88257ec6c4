#include "cli/commands/advise_follow.h"

#include <algorithm>
#include <cmath>

namespace weft {

Status AdviseFollower::run() {
  for (bool more = true; more;) {
    WEFT_TRY(more, source_.read(series_));
    const auto next = next_save();
    if (next.ok())
      WEFT_CHECK(show(*next));
    else if (next.error().code == Errc::not_found)
      remark(next.error().message);
    else
      return next.error();
    if (more) source_.wait();
    if (context_.patience().cancelled()) return Error{Errc::cancelled, ""};
  }
  return {};
}

Result<std::uint64_t> AdviseFollower::next_save() {
  if (series_.points().empty()) return Error{Errc::not_found, "no loss has come"};
  WEFT_TRY(const advise::Timing timing, advise::timing_of(series_, asked_.times));
  find_saves();
  advise::Question question = asked_.question;
  question.last_save = *last_save_;
  question.timing = timing;
  question.requests = requests_left(timing);
  if (question.requests == 0) return 0;
  WEFT_TRY(const advise::Advice advice, advise::advise(series_, question, {asked_.followed}));
  const auto& steps = advice.schedules.front().steps;
  return steps.empty() ? 0 : steps.front();
}

// Updates last_save_. Before the first recorded save, assumes that the model was saved at the newest loss of the first
// call. If the source records no saves, assumes that the training follows the advice.
void AdviseFollower::find_saves() {
  const std::uint64_t newest = series_.points().back().step;
  std::uint64_t now = std::min(last_save_.value_or(newest), newest);
  switch (source_.saves()) {
    case RecordedSaves::each:
      now = newest;
      break;
    case RecordedSaves::some:
      now = series_.last_save().value_or(now);
      break;
    case RecordedSaves::none:
      if (shown_ > now && shown_ <= newest) now = shown_;
  }
  if (!first_) first_ = now;
  if (last_save_ && now > *last_save_) ++saves_;
  last_save_ = now;
}

std::uint64_t AdviseFollower::requests_left(const advise::Timing& timing) const {
  if (*last_save_ <= *first_) return asked_.question.requests;
  const double passed_s =
      static_cast<double>(*last_save_ - *first_) * timing.step_s + static_cast<double>(saves_) * timing.save_s;
  const double answered = std::floor(passed_s / timing.request_s);
  const auto all = static_cast<double>(asked_.question.requests);
  return answered < all ? asked_.question.requests - static_cast<std::uint64_t>(answered) : 0;
}

Status AdviseFollower::show(std::uint64_t next) {
  reason_.clear();
  if (next == shown_) return {};
  shown_ = next;
  if (context_.json) {
    JsonWriter json;
    json.begin_object().member("step", series_.points().back().step).member("last_save", *last_save_);
    json.member("next", next).end_object();
    context_.print_json(json);
  } else {
    context_.print("{}\n", next);
  }
  context_.environment().out.flush();
  return {};
}

void AdviseFollower::remark(const std::string& reason) {
  if (reason != reason_ && !context_.quiet) context_.note(fmt::format("no advice: {}", reason));
  reason_ = reason;
}

}  // namespace weft
