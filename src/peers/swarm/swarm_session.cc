#include "peers/swarm/swarm_session.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"

namespace weft {
namespace {

constexpr std::string_view kClerk;  // in the place of a node's id; no node has it

// Takes the first kReportMax units.
std::vector<std::uint32_t> taken_of(std::deque<std::uint32_t>& units) {
  const auto end = units.begin() + static_cast<std::ptrdiff_t>(std::min(units.size(), kReportMax));
  std::vector<std::uint32_t> taken(units.begin(), end);
  units.erase(units.begin(), end);
  return taken;
}

}  // namespace

SwarmSession::SwarmSession(const Digest& manifest, std::shared_ptr<const VersionUnits> version, std::string self,
                           bool reads_origin, std::uint64_t serial, std::uint64_t seed, SwarmTime now)
    : manifest_(manifest),
      version_(std::move(version)),
      self_(std::move(self)),
      reads_origin_(reads_origin),
      serial_(serial),
      downloads_(UnitSet(version_->count()), UnitSet(version_->count()), seed, now),
      local_(version_),
      join_at_(now),
      join_pause_(kJoinPause) {}

void SwarmSession::want(const UnitSet& units, bool names, SwarmTime now) {
  names_ = names_ || names;
  const bool was_done = downloads_.is_done();
  units.for_each([&](std::uint32_t unit) {
    if (downloads_.has().has(unit)) local_.remove(unit);
  });
  downloads_.want(units, now);
  if (downloads_.is_done()) return done_since(now);
  if (!was_done) return;
  done_at_.reset();
  finished_ = false;
  wants_partners_ = true;
}

void SwarmSession::done_since(SwarmTime now) {
  if (!downloads_.is_done() || done_at_) return;
  done_at_ = now;
  log_debug(LogCategory::peers, "swarm of manifest {}: lacks no unit any more, has received {} and declined {}",
            to_hex(manifest_), received_.all(), downloads_.declined());
}

// A node that is hungry is looked at when its hunger begins: due() names that time.
void SwarmSession::note_hunger(SwarmTime now) {
  const bool hungry = downloads_.is_hungry(now);
  if (hungry && !hungry_)
    log_debug(LogCategory::peers, "swarm of manifest {}: hungry, has {} of {} units and {} partners", to_hex(manifest_),
              downloads_.has().count(), version_->count(), downloads_.partners());
  hungry_ = hungry;
}

// A unit that is being read counts when its read ends: it then feeds the hunger.
void SwarmSession::arrived(std::span<const ChunkRun> runs, SwarmTime now) {
  for (const std::uint32_t unit : local_.add(runs))
    if (!reads_.contains(unit)) downloads_.add(unit);
  done_since(now);
}

void SwarmSession::wait_for(const ChunkRun& run) {
  const auto units = version_->units_of(run);
  if (!units) return;
  for (std::uint32_t unit = units->first; unit <= units->second; ++unit) downloads_.wait_for(unit);
}

void SwarmSession::stop_waiting(const ChunkRun& run) {
  const auto units = version_->units_of(run);
  if (!units) return;
  for (std::uint32_t unit = units->first; unit <= units->second; ++unit) downloads_.stop_waiting(unit);
}

void SwarmSession::met(std::string_view node, SwarmTime now) {
  const auto number = number_of(node);
  if (!number) return;
  silences_.erase(*number);
  downloads_.meet(*number, now);
}

// Returns nothing for this node itself. Hostile nodes may have and name any number of others.
std::optional<SwarmNode> SwarmSession::number_of(std::string_view node) {
  if (!is_partner(node)) return std::nullopt;
  if (nodes_.size() >= kNamesMax) {
    nodes_.forget_if([&](SwarmNode number) { return !downloads_.knows(number) && !is_clerk(number); });
    std::erase_if(silences_, [&](const auto& one) { return !downloads_.knows(one.first); });
  }
  return nodes_.add(node);
}

void SwarmSession::drop(std::string_view node) {
  if (const auto number = nodes_.find(node)) downloads_.drop(*number);
  if (node.empty() || node != clerk_) return;
  downloads_.drop(*clerk_number_);
  clerk_.clear();
  spare_clerk_.clear();
  wants_partners_ = true;
}

void SwarmSession::ban(std::string_view node) {
  const auto number = number_of(node);
  if (!number || !downloads_.ban(*number)) return;
  log_warning("swarm of manifest {}: {} gave bytes with another digest, and is asked for no units any more",
              to_hex(manifest_), node);
}

std::optional<WantCall> SwarmSession::next_want(SwarmTime now) {
  const auto next = downloads_.next(now);
  if (!next) return std::nullopt;
  const bool of_clerk = is_clerk(next->node);
  WantCall call{of_clerk ? clerk_ : nodes_.name(next->node), next->node, {}};
  call.want.manifest = manifest_;
  call.want.has = downloads_.taken().encode();
  call.want.first = next->first;
  call.want.hungry = next->hungry;
  call.want.of_source = !of_clerk && call.node == source_;
  call.want.of_clerk = of_clerk;
  call.want.names = names_ && !of_clerk;
  call.want.traffic = next->first ? Traffic::foreground : Traffic::ahead;
  return call;
}

// Errc::corrupt: the answer has not exactly the bytes of the unit, or of a clerk any bytes, or instead of a token other
// bytes.
Result<OfferHead> SwarmSession::checked(const Answer& answer, SwarmNode node, bool names) const {
  WEFT_TRY(const OfferHead offer, decode_offer(answer.head()));
  const auto unit = offer.offer.unit;
  if (!unit || *unit >= version_->count()) return offer;
  std::uint64_t bytes = offer.bytes.size();
  for (std::size_t window = 0; window < answer.windows(); ++window) {
    if (answer.length(window) > kAnswerBytesMax) return Error{Errc::corrupt, "a peer's offer: a window is too long"};
    bytes += answer.length(window);
  }
  const std::uint64_t expected = is_clerk(node) ? 0 : names ? kTokenBytes : version_->bytes(*unit);
  if (names && (answer.windows() != 1 || !offer.bytes.empty()))
    return Error{Errc::corrupt, "a peer's offer: no token in place of the bytes"};
  if (bytes != expected)
    return Error{Errc::corrupt,
                 fmt::format("a peer's offer: expected {} bytes of unit {}, got {}", expected, *unit, bytes)};
  return offer;
}

std::optional<AcceptedUnit> SwarmSession::answered(SwarmNode node, bool names, Result<std::unique_ptr<Answer>>& outcome,
                                                   SwarmTime now) {
  if (!outcome.ok()) {
    downloads_.unanswered(node, now);
    if (was_silent(outcome.error())) was_silent_for(node);
    const bool is_source = !source_.empty() && nodes_.name(node) == source_;
    if (is_source && outcome.error().code == Errc::absent) lost_source(now);
    return std::nullopt;
  }
  silences_.erase(node);
  const auto offer = checked(**outcome, node, names);
  if (!offer.ok()) {
    downloads_.unanswered(node, now);
    return std::nullopt;
  }
  const auto unit = offer->offer.unit;
  if (!downloads_.offered(node, unit, now)) {
    if (is_clerk(node) && unit) unread_.push_back(*unit);
    return std::nullopt;
  }
  const Read read{node, giver_of(node), now};
  reads_.insert_or_assign(*unit, read);
  OfferPlace place{nodes_.name(node), std::move(outcome).value(), offer->bytes, names};
  return AcceptedUnit{*unit, std::move(place), read.giver, read.given_up};
}

UnitGiver SwarmSession::giver_of(SwarmNode node) const {
  if (is_clerk(node)) return UnitGiver::origin;
  return downloads_.is_source(node) ? UnitGiver::source : UnitGiver::partner;
}

void SwarmSession::was_silent_for(SwarmNode node) {
  if (++silences_[node] < kSilencesMax) return;
  downloads_.drop(node);
  if (downloads_.partners() == 0 && !std::exchange(had_holders_, true)) needs_holders_ = true;
}

void SwarmSession::read(std::string_view node, std::uint32_t unit, bool arrived, SwarmTime now) {
  const auto number = nodes_.find(node);
  const auto read = reads_.find(unit);
  if (!number || read == reads_.end() || read->second.node != *number) return;
  const Read ended = read->second;
  reads_.erase(read);
  if (is_clerk(*number)) (arrived ? read_ : unread_).push_back(unit);
  if (arrived) {
    read_times_.add(now - ended.begun);
    received_.add(ended.giver);
    if (received_.all() == 1)
      log_debug(LogCategory::peers, "swarm of manifest {}: the first unit, {} of {}, came from {}", to_hex(manifest_),
                unit, version_->count(), is_clerk(*number) ? "the origin" : node);
    downloads_.arrived(*number, unit, now);
  } else {
    downloads_.failed(*number, unit, now, *ended.given_up ? Downloads::kAskSlowAgain : Downloads::kAskFailedAgain);
    if (local_.complete().has(unit)) downloads_.add(unit);  // it came by another way
  }
  done_since(now);
}

// Returns the time at which the session gives up the read of a unit, or nothing.
std::optional<SwarmTime> SwarmSession::slow_at(std::uint32_t unit, const Read& read) const {
  const bool matters = downloads_.taken().all() || downloads_.is_waited_for(unit);
  const auto slow_after = read_times_.slow_after();
  if (*read.given_up || !matters || is_clerk(read.node) || !slow_after || downloads_.partners() < 2)
    return std::nullopt;
  return read.begun + *slow_after;
}

void SwarmSession::give_up_slow_reads(SwarmTime now) {
  for (const auto& [unit, read] : reads_) {
    const auto slow = slow_at(unit, read);
    if (!slow || *slow > now) continue;
    *read.given_up = true;
    log_debug(LogCategory::peers, "swarm of manifest {}: {} is too slow with unit {}", to_hex(manifest_),
              nodes_.name(read.node), unit);
  }
}

bool SwarmSession::join_is_due(SwarmTime now) {
  note_hunger(now);
  if (downloads_.joins_again(now)) wants_partners_ = true;
  return wants_partners_ && !joining_ && !downloads_.is_done() && join_at_ <= now;
}

std::optional<std::string> SwarmSession::begin_join(std::span<const std::string> directories, SwarmTime now) {
  joining_ = directories_tried_ < directories.size();
  if (joining_) return directories[directories_tried_];
  directories_tried_ = 0;
  join_at_ = now + join_pause_.failed();
  needs_holders_ = had_holders_ = true;
  return std::nullopt;
}

void SwarmSession::joined(const std::string& directory, const Partners& partners, SwarmTime now) {
  joining_ = wants_partners_ = false;
  directories_tried_ = 0;
  join_at_ = now;
  join_pause_.reset();
  directory_ = directory;
  lives_at_ = now + kLivesEvery;
  for (const std::string& node : partners.nodes)
    if (const auto number = number_of(node)) downloads_.meet(*number, now);
  const bool lost = partners.source == lost_source_ && now < lost_until_;
  source_ = is_partner(partners.source) && !lost ? partners.source : "";
  if (!source_.empty()) meet_holders(std::span(&source_, 1), now);
  spare_clerk_ = partners.clerk && reads_origin_ ? directory : "";
  meet_clerk(source_.empty() ? spare_clerk_ : "", now);
  needs_holders_ = had_holders_ = downloads_.partners() == 0;
  log_debug(LogCategory::peers, "swarm of manifest {}: {} introduces {} nodes to this one, source: {}",
            to_hex(manifest_), directory, partners.nodes.size(),
            !clerk_.empty()   ? "the origin"
            : source_.empty() ? "none"
                              : source_);
}

// The source is a partner from now on.
void SwarmSession::lost_source(SwarmTime now) {
  log_debug(LogCategory::peers, "swarm of manifest {}: the source {} lacks units", to_hex(manifest_), source_);
  lost_source_ = std::exchange(source_, "");
  lost_until_ = now + kLostSource;
  meet_clerk(spare_clerk_, now);
}

// Another clerk, or none, knows nothing of the units that an earlier one has named.
void SwarmSession::meet_clerk(const std::string& node, SwarmTime now) {
  if (clerk_ != node) {
    read_.clear();
    unread_.clear();
  }
  clerk_ = node;
  if (!clerk_.empty() && !clerk_number_) clerk_number_ = nodes_.add(kClerk);
  if (!clerk_number_) return clerk_.clear();
  if (clerk_.empty()) return downloads_.drop(*clerk_number_);
  silences_.erase(*clerk_number_);
  downloads_.meet_source(*clerk_number_, now);
}

void SwarmSession::join_failed(SwarmTime now) {
  joining_ = false;
  directory_.clear();
  ++directories_tried_;
  join_at_ = now;
}

void SwarmSession::meet_holders(std::span<const std::string> holders, SwarmTime now) {
  needs_holders_ = false;
  for (const std::string& node : holders.first(std::min(holders.size(), kHoldersMax))) {
    const auto number = number_of(node);
    if (!number) continue;
    silences_.erase(*number);
    downloads_.meet_source(*number, now);
  }
}

std::optional<SwarmSession::Word> SwarmSession::word(SwarmTime now) {
  if (directory_.empty()) return std::nullopt;
  const bool reports = directory_ == clerk_ && !(read_.empty() && unread_.empty());
  const bool done = downloads_.is_done();
  const bool is_due = done ? !std::exchange(finished_, true) : lives_at_ <= now;
  if (!is_due && !reports) return std::nullopt;
  lives_at_ = now + kLivesEvery;
  Word word{directory_, done ? Join::State::finished : Join::State::lives, {}, {}};
  if (!reports) return word;
  word.read = taken_of(read_);
  word.unread = taken_of(unread_);
  return word;
}

void SwarmSession::word_failed() {
  directory_.clear();
  wants_partners_ = true;
}

bool SwarmSession::is_over(SwarmTime now) const {
  return done_at_ && reads_.empty() && *done_at_ + kDoneKept <= now;
}

std::optional<SwarmTime> SwarmSession::due(SwarmTime now) const {
  if (done_at_) return reads_.empty() ? std::optional(*done_at_ + kDoneKept) : std::nullopt;
  SwarmTime due = downloads_.due(now).value_or(SwarmTime::max());
  for (const auto& [unit, read] : reads_)
    if (const auto slow = slow_at(unit, read)) due = std::min(due, *slow);
  if (wants_partners_ && !joining_) due = std::min(due, join_at_);
  if (!directory_.empty()) due = std::min(due, lives_at_);
  return due == SwarmTime::max() ? std::nullopt : std::optional(due);
}

}  // namespace weft
