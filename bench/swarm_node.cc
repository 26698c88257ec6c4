#include "swarm_node.h"

#include <algorithm>

#include "fetch/swarm_fetch.h"
#include "peers/swarm/swarm_sender.h"
#include "weft/deadline.h"

namespace weft::sim {

bool RunningUploads::waits_for_read(Host to) const {
  return slow_.contains(to) && std::ranges::find(running_, to, &Upload::to) != running_.end();
}

bool RunningUploads::end(Host to, std::uint32_t unit, bool read) {
  const auto is_it = [&](const Upload& one) { return one.to == to && one.unit == unit; };
  if (std::erase_if(running_, is_it) == 0) return false;
  if (read) slow_.erase(to);
  return true;
}

std::optional<RunningUploads::Upload> RunningUploads::take_old(SwarmTime now) {
  if (running_.empty() || running_.front().began + SwarmSender::kUploadMax > now) return std::nullopt;
  const Upload old = running_.front();
  running_.erase(running_.begin());
  slow_.insert(old.to);
  return old;
}

void RunningUploads::forget(Host node) {
  std::erase_if(running_, [node](const Upload& one) { return one.to == node; });
  slow_.erase(node);
}

std::optional<SwarmTime> RunningUploads::due() const {
  return running_.empty() ? std::nullopt : std::optional(running_.front().began + SwarmSender::kUploadMax);
}

bool SimNode::take_want(std::uint64_t number) {
  return std::erase_if(wants, [number](const Want& want) { return want.number == number; }) != 0;
}

// Returns the time at which the want ends without an answer, if its partner gives nothing until then.
SwarmTime SimNode::silent_at(const Want& want) const {
  const auto link = links.find(want.to);
  return std::max(want.sent, link == links.end() ? want.sent : link->second.heard) + kWantPatience;
}

std::optional<Host> SimNode::take_silent_want(SwarmTime now) {
  for (auto want = wants.begin(); want != wants.end() && want->sent + kWantPatience <= now; ++want) {
    if (silent_at(*want) > now) continue;
    const Host to = want->to;
    wants.erase(want);
    return to;
  }
  return std::nullopt;
}

std::optional<SwarmTime> SimNode::wants_due(SwarmTime now) const {
  std::optional<SwarmTime> due;
  for (const Want& want : wants) {
    const bool is_old = want.sent + kWantPatience <= now;
    const SwarmTime at = is_old ? silent_at(want) : want.sent + kWantPatience;
    if (!due || at < *due) due = at;
    if (!is_old) break;  // later wants end later
  }
  return due;
}

bool SimNode::has_asked(std::uint32_t unit) const {
  return std::ranges::find(asked, unit) != asked.end();
}

SwarmTime SimNode::leaves_at() const {
  return moved + SwarmFetch::silence_max(kSilenceMax);
}

SwarmTime SimNode::asks_at() const {
  return reader_since + SwarmFetch::reader_wait(kSilenceMax);
}

}  // namespace weft::sim
