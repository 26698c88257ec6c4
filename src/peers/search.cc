#include "peers/search.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/core.h>

#include "base/log.h"
#include "pace/pace_gate.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kFailuresMax = 3;           // of one run()
constexpr auto kShareMin = milliseconds(500);  // the least time for one peer
constexpr auto kBusyWait = milliseconds(20);   // between two checks of busy peers
constexpr auto kPauseMin = milliseconds(100);  // before silent peers are asked again
constexpr auto kPauseMax = milliseconds(1'000);
constexpr auto kSlowAfter = milliseconds(1'000);  // before a faster peer may replace a sending peer
constexpr auto kSlowCheck = milliseconds(100);    // between two comparisons of the peer with others

std::atomic<std::uint64_t> last_log_id = 0;

std::string described(const ChunkRun* run) {
  if (run == nullptr) return "all of it";
  return fmt::format("chunks {} to {} of blob {}", run->first, run->first + run->count - 1, to_hex(run->id.root));
}

}  // namespace

PeerSearch::PeerSearch(const PeerScene& scene, const Digest& manifest, Wanted wanted, Deadline deadline,
                       std::string only)
    : log_id_(++last_log_id),
      scene_(scene),
      manifest_(manifest),
      wanted_(wanted),
      patience_(std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - scene.time.now()))),
      deadline_(deadline),
      only_(std::move(only)) {}

void PeerSearch::came() {
  deadline_ = std::max(deadline_, scene_.time.now() + patience_);
}

milliseconds PeerSearch::left() const {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline_ - scene_.time.now()));
}

// Returns the time for one peer: a part of what is left, so that a peer that never answers leaves time for other known
// peers, and for peers that directories name.
milliseconds PeerSearch::share(const PeerLinks::Choice& peer) const {
  const milliseconds left = this->left();
  if (!only_.empty()) return left;
  return std::min(left, std::max(kShareMin, peer.last ? left * 3 / 4 : left / 2));
}

bool PeerSearch::may_have(const std::string& node, const ChunkRun& run) const {
  const auto known = this->known(&run);
  return std::ranges::find(known, node) != known.end();
}

Error PeerSearch::no_peer(const ChunkRun* run) const {
  if (run == nullptr) return Error{Errc::not_found, fmt::format("no peer has manifest {}", to_hex(manifest_))};
  return Error{Errc::not_found, fmt::format("no peer has blob {}", to_hex(run->id.root))};
}

// Returns the nodes that may have the bytes, as far as this node knows.
std::vector<std::string> PeerSearch::known(const ChunkRun* run) const {
  if (only_.empty()) return scene_.view.candidates(manifest_, run);
  return {only_};
}

// Returns the candidates to ask. If all known ones were silent or wrong a moment ago, asks directories for others.
std::vector<std::string> PeerSearch::candidates(const ChunkRun* run) {
  if (asks_ == Asks::kin) return scene_.view.kin(manifest_, run);
  if (asks_ == Asks::everyone) return scene_.view.among(scene_.links.nodes(), manifest_, run);
  auto known = this->known(run);
  if (asked_ || !only_.empty() || scene_.links.readiness(known) != Readiness::lacking) return known;
  asked_ = true;
  scene_.ask_directories(manifest_, deadline_);
  return scene_.view.candidates(manifest_, run);
}

Status PeerSearch::run(const ChunkRun* run, const Attempt& attempt) {
  tried_.clear();
  failures_ = 0;
  silent_.clear();
  pause_ = kPauseMin;
  asks_ = Asks::holders;
  lacked_base_ = comes_later_ = false;
  failure_.reset();
  if (log_debugs(LogCategory::peers))
    log_debug(LogCategory::peers, "search {} begins: manifest {}, {}", log_id_, to_hex(manifest_), described(run));
  const auto size = wanted_ == Wanted::bytes        ? PeerLinks::Size::read
                    : wanted_ == Wanted::held_bytes ? PeerLinks::Size::held_read
                                                    : PeerLinks::Size::question;
  while (failures_ < kFailuresMax && left().count() > 0) {
    const auto known = candidates(run);
    const std::string among = log_debugs(LogCategory::peers) ? scene_.links.describe(known, tried_) : "";
    const auto peer = scene_.links.take(known, tried_, size);
    if (peer) {
      log_debug(LogCategory::peers, "search {}: asks {} among {}", log_id_, peer->node, among);
      const Outcome outcome = ask(*peer, run, attempt);
      if (outcome == Outcome::done) return {};
      if (outcome == Outcome::cancelled) break;
    } else if (!wait_for_busy(run) && (lacked_base_ || !widen())) {
      return failure_ ? give_up() : no_peer(run);
    }
  }
  return give_up();
}

Error PeerSearch::give_up() const {
  if (failure_ && !was_silent(*failure_)) return *failure_;
  const Errc code = failure_ ? failure_->code : Errc::timed_out;
  const auto silence = silent_.empty() ? Deadline::duration{} : scene_.links.silent_for(silent_);
  const double seconds = std::chrono::duration<double>(std::max<Deadline::duration>(silence, patience_)).count();
  if (silent_.empty()) return Error{code, fmt::format("peers: nothing came for {:.0f} s", seconds)};
  return Error{code, fmt::format("peer {}: nothing came for {:.0f} s; the last try: {}", silent_, seconds, silence_)};
}

PeerSearch::Outcome PeerSearch::ask(const PeerLinks::Choice& peer, const ChunkRun* run, const Attempt& attempt) {
  const auto begin = scene_.time.now();
  Try one{peer, share(peer)};
  one.next_check = begin + kSlowAfter;
  const Status status = attempt(one);
  const bool gave = status.ok() || one.too_slow;
  log_debug(LogCategory::peers, "search {}: {} bytes from {}{}", log_id_, one.bytes, peer.node,
            one.too_slow  ? ", another peer is faster"
            : status.ok() ? ""
                          : ": " + status.error().message);
  const auto took = scene_.time.now() - begin;
  if (gave)
    scene_.links.done(peer.number, one.bytes, time_of_source(took, one.held), nullptr, peer.size);
  else
    scene_.links.done(peer.number, 0, took, &status.error(), peer.size);
  if (status.ok()) {
    if (asks_ != Asks::holders) scene_.view.gave(manifest_, peer.node);
    came();
    return Outcome::done;
  }
  const Error& error = status.error();
  if (one.too_slow || error.code == Errc::busy) {  // an overloaded peer lives, and is asked again
    came();
    return Outcome::failed;
  }
  if (error.code == Errc::cancelled) {
    failure_ = error;
    return Outcome::cancelled;
  }
  note(error, peer.node);
  if (one.lacks_base) {
    tried_.push_back(peer.number);
    lacked_base_ = true;
    return Outcome::failed;
  }
  note_failure(peer, error, run);
  return Outcome::failed;
}

bool PeerSearch::is_too_slow(Try& from, const ChunkRun* run, double rate) const {
  if (from.too_slow || rate == 0 || scene_.time.now() < from.next_check) return from.too_slow;
  from.next_check = scene_.time.now() + kSlowCheck;
  from.too_slow = scene_.links.has_faster(known(run), from.peer.number, rate);
  return from.too_slow;
}

// Keeps the error that run() returns. A publisher that lacks bytes of a young version outweighs peers that fail:
// another search may soon succeed.
void PeerSearch::note(const Error& error, const std::string& node) {
  const bool may_come = error.code == Errc::not_found && scene_.view.may_come(manifest_, node);
  if (!failure_ || may_come || (error.code != Errc::not_found && !comes_later_)) failure_ = error;
  comes_later_ = comes_later_ || may_come;
}

void PeerSearch::note_failure(const PeerLinks::Choice& peer, const Error& error, const ChunkRun* run) {
  tried_.push_back(peer.number);
  if (was_silent(error)) {
    if (silent_.empty()) silent_ = peer.node;
    silence_ = error.message;
  } else if (error.code != Errc::not_found) {
    ++failures_;
  } else if (wanted_ != Wanted::digests) {  // a peer without all digests of a blob may have chunks of it
    scene_.view.lacks(manifest_, run, peer.node);
  }
}

// If a candidate is overloaded, or busy with other reads of this node, waits a moment for the end of a read, and
// returns true.
bool PeerSearch::wait_for_busy(const ChunkRun* run) {
  const auto busy = scene_.links.busy(candidates(run), tried_);
  if (!busy.any) return false;
  deadline_ = std::max(deadline_, busy.moved_at + patience_);
  scene_.links.wait(std::min(deadline_, scene_.time.now() + kBusyWait));
  return true;
}

// True if the version's publisher left the cluster a moment ago: it may be restarting, and is waited for as a silent
// peer.
bool PeerSearch::publisher_left() {
  std::string publisher = scene_.view.publisher(manifest_);
  if (publisher.empty() || !scene_.links.has_left(publisher)) return false;
  if (scene_.links.silent_for(publisher) >= patience_) return false;
  silent_ = std::move(publisher);
  silence_ = "it is no member of the cluster";
  note(Error{Errc::timed_out, silence_}, silent_);
  return true;
}

// True if there are more peers to ask: those that directory nodes name, then publishers of parents, then every node,
// and last those that failed before. Every node, because a version can share bytes with a version whose manifest is not
// local, and whose directory is therefore unknown.
bool PeerSearch::widen() {
  if (!only_.empty()) return false;
  if (!asked_) {
    asked_ = true;
    scene_.ask_directories(manifest_, deadline_);
    return true;
  }
  if (asks_ != Asks::everyone) {
    asks_ = asks_ == Asks::holders ? Asks::kin : Asks::everyone;
    return true;
  }
  if (failures_ == 0 && silent_.empty() && !publisher_left()) return false;
  if (failures_ > 0) ++failures_;
  if (!silent_.empty()) {
    // Silent to all of this node's reads, not only to this search.
    if (failures_ == 0 && scene_.links.silent_for(silent_) >= patience_) return false;
    scene_.links.wait(std::min(deadline_, scene_.time.now() + pause_));
    pause_ = std::min(2 * pause_, kPauseMax);
  }
  tried_.clear();
  asked_ = false;
  asks_ = Asks::holders;
  return true;
}

}  // namespace weft
