#include "swarm/uploads.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft {

Uploads::Uploads(std::uint32_t units, UploadShare& share, std::uint64_t chunks_per_unit)
    : share_(share), place_max_(kPlaceMax * chunks_per_unit), has_(units), sent_(units), unsent_(units) {}

Uploads::~Uploads() {
  share_.waiting -= waiting_.size();
  for (const Upload& upload : running_) leave_place(upload);
}

void Uploads::add(std::uint32_t unit) {
  if (!has_.add(unit)) return;
  order_.push_back(unit);
  if (sent_[unit] == 0)
    unsent_.add(unit);
  else
    may_send_again();
}

void Uploads::add_all() {
  // The first unit of the version counts as the last one that came.
  for (std::uint32_t unit = has_.units(); unit-- > 0;) add(unit);
}

void Uploads::remove(std::uint32_t unit) {
  if (!has_.remove(unit)) return;
  std::erase(order_, unit);
  unsent_.remove(unit);
  for (auto& [node, asker] : askers_) asker.useless_below = 0;
}

void Uploads::become_source() {
  if (source_) return;
  source_ = true;
  last_sent_.resize(has_.units());
}

bool Uploads::want(SwarmNode node, std::uint64_t number, UnitWant want, SwarmTime now) {
  if (want.has.units() != has_.units()) return false;
  const auto at = askers_.try_emplace(node).first;
  Asker& asker = at->second;
  asker.done = want.has.all();
  if (asker.done) ended_.push_back(node);
  for (const Upload& upload : running_)
    if (upload.node == node) want.has.add(upload.unit);
  // A set that has lost a unit: the asker lacks it again.
  if (!want.has.contains(asker.want.has)) asker.useless_below = 0;
  asker.want = std::move(want);
  asker.again.reset();
  if (asker.waiting >= kWantsOpen || share_.waiting >= kWantsWaiting) {
    drop_if_idle(at);
    return false;
  }
  ++asker.waiting;
  ++share_.waiting;
  waiting_.push_back({at, number, now});
  return true;
}

std::optional<UnitAnswer> Uploads::next(SwarmTime now, std::optional<std::uint8_t> traffic) {
  if (const auto at = too_old_or_done(now); at != waiting_.end()) return answer(at, std::nullopt, now);
  set_aside(now);
  if (share_.uploads >= share_.uploads_max) return std::nullopt;
  ++tries_;
  std::optional<std::uint32_t> unit;
  Queue::iterator best = waiting_.end();
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    Asker& asker = at->asker->second;
    if (std::exchange(asker.tried, tries_) == tries_) continue;
    if (asker.aside != 0 || (traffic && asker.want.traffic != *traffic)) continue;
    if (unit && !goes_before(asker, best->asker->second)) continue;
    const std::optional<std::uint32_t> choice = choose(asker, now);
    if (!choice) continue;
    unit = choice;
    best = at;
  }
  if (!unit) return std::nullopt;
  return answer(best, unit, now);
}

Uploads::Queue::iterator Uploads::too_old_or_done(SwarmTime now) {
  if (!waiting_.empty() && waiting_.front().since + kWantWaitMax <= now) return waiting_.begin();
  for (; !ended_.empty(); ended_.pop_front()) {
    const auto asker = askers_.find(ended_.front());
    if (asker == askers_.end() || !asker->second.done) continue;
    const auto at = std::ranges::find(waiting_, asker, &Waiting::asker);
    if (at != waiting_.end()) return at;
  }
  return waiting_.end();
}

bool Uploads::goes_before(const Asker& one, const Asker& other) const {
  if (one.want.traffic != other.want.traffic) return one.want.traffic < other.want.traffic;
  return source_ && one.want.has.count() > other.want.has.count();
}

UnitAnswer Uploads::answer(const Queue::iterator& which, std::optional<std::uint32_t> unit, SwarmTime now) {
  const auto at = which->asker;
  const UnitAnswer answer{at->first, which->number, unit, source_ && unit && sent_[*unit] != 0};
  Asker& asker = at->second;
  --asker.waiting;
  --share_.waiting;
  waiting_.erase(which);
  if (unit) {
    ++share_.uploads;
    ++sent_[*unit];
    ++offers_;
    ++asker.uploads;
    running_.push_back({answer.node, *unit, now});
    asker.want.has.add(*unit);
    unsent_.remove(*unit);
    if (source_) last_sent_[*unit] = {now, answer.node};
  }
  drop_if_idle(at);
  return answer;
}

std::optional<std::uint32_t> Uploads::choose(Asker& asker, SwarmTime now) {
  const std::optional<std::uint32_t> first = asker.want.first;
  if (first && (offers_ + 1) % kReaderEvery == 0 && !asker.want.has.has(*first) &&
      (source_ ? unsent_.has(*first) : has_.has(*first)))
    return first;
  return source_ ? once(asker, now) : latest_of_least_sent(asker);
}

std::optional<std::uint32_t> Uploads::latest_of_least_sent(Asker& asker) const {
  std::optional<std::uint32_t> best;
  std::size_t compared = 0;
  for (std::size_t i = order_.size(); i-- > asker.useless_below && compared < kCandidates;) {
    const std::uint32_t unit = order_[i];
    if (asker.want.has.has(unit)) continue;
    ++compared;
    if (!best || sent_[unit] < sent_[*best]) best = unit;
    if (sent_[*best] == 0) break;
  }
  if (!best) asker.useless_below = order_.size();
  return best;
}

std::optional<std::uint32_t> Uploads::once(Asker& asker, SwarmTime now) const {
  if (const auto unit = unsent_.first_not_in(asker.want.has)) return unit;
  if (!asker.want.hungry || (asker.again && *asker.again > now)) return std::nullopt;
  asker.again.reset();
  std::optional<std::uint32_t> oldest;
  has_.for_each([&](std::uint32_t unit) {
    if (!asker.want.has.has(unit) && (!oldest || last_sent_[unit].at < last_sent_[*oldest].at)) oldest = unit;
  });
  const SwarmTime again = oldest ? last_sent_[*oldest].at + kResendAfter : SwarmTime::max();
  if (again <= now) return oldest;
  asker.again = again;
  return std::nullopt;
}

// Askers for whom no unit was due are to be looked at again.
void Uploads::may_send_again() {
  for (auto& [node, asker] : askers_) asker.again.reset();
}

void Uploads::ended(SwarmNode node, std::uint32_t unit, bool read) {
  const auto upload =
      std::ranges::find_if(running_, [&](const Upload& one) { return one.node == node && one.unit == unit; });
  if (upload == running_.end()) return;
  end_upload(upload, read);
  drop_if_idle(askers_.find(node));
}

bool Uploads::may_go_aside() const {
  return share_.waiting != 0 && share_.uploads >= share_.uploads_max && share_.aside < kUploadsAsideMax;
}

// Takes the places of the oldest uploads if another want needs them.
void Uploads::set_aside(SwarmTime now) {
  for (Upload& upload : running_) {
    if (!may_go_aside()) return;
    if (upload.aside || upload.began + place_max_ > now) continue;
    upload.aside = true;
    --share_.uploads;
    ++share_.aside;
    ++askers_.at(upload.node).aside;
  }
}

void Uploads::leave_place(const Upload& upload) {
  --(upload.aside ? share_.aside : share_.uploads);
}

// Returns the upload behind it.
Uploads::Running::iterator Uploads::end_upload(Running::iterator upload, bool read) {
  const std::uint32_t unit = upload->unit;
  Asker& asker = askers_.at(upload->node);
  --asker.uploads;
  if (upload->aside) --asker.aside;
  leave_place(*upload);
  if (read) {
    ++sent_units_;
  } else if (--sent_[unit] == 0 && has_.has(unit)) {
    unsent_.add(unit);
  }
  return running_.erase(upload);
}

void Uploads::forget(SwarmNode node) {
  bool lost = false;  // perhaps no live receiver has a unit that the node was sent last
  for (LastSent& last : last_sent_)
    if (last.to == node && std::exchange(last.at, SwarmTime::min()) != SwarmTime::min()) lost = true;
  if (lost) may_send_again();
  const auto at = askers_.find(node);
  if (at == askers_.end()) return;
  for (auto upload = running_.begin(); upload != running_.end();)
    upload = upload->node == node ? end_upload(upload, false) : std::next(upload);
  share_.waiting -= at->second.waiting;
  std::erase_if(waiting_, [&](const Waiting& one) { return one.asker == at; });
  drop(at);
}

void Uploads::drop(Askers::iterator at) {
  askers_.erase(at);
  if (askers_.empty() && source_) begin_anew();
}

void Uploads::begin_anew() {
  ++beginnings_;
  std::ranges::fill(sent_, 0);
  std::ranges::fill(last_sent_, LastSent{});
  unsent_ = has_;
}

void Uploads::drop_if_idle(Askers::iterator at) {
  if (at->second.waiting != 0 || at->second.uploads != 0) return;
  if (at->second.done)
    drop(at);
  else
    askers_.erase(at);
}

std::optional<SwarmTime> Uploads::due() const {
  SwarmTime first = waiting_.empty() ? SwarmTime::max() : waiting_.front().since + kWantWaitMax;
  if (may_go_aside()) {
    const auto oldest = std::ranges::find(running_, false, &Upload::aside);
    if (oldest != running_.end()) first = std::min(first, oldest->began + place_max_);
  }
  if (source_ && share_.uploads < share_.uploads_max)
    for (const auto& [node, asker] : askers_)
      if (asker.again && asker.waiting != 0 && asker.aside == 0) first = std::min(first, *asker.again);
  return first == SwarmTime::max() ? std::nullopt : std::optional(first);
}

}  // namespace weft
