// The search for a peer that serves a request: the one loop over candidates, for manifests, chunk digests and bytes.
//
// It asks the best candidate (peers/links.h), notes the outcome in that peer's score, and goes on with the next one. If
// no known candidate is left, it asks the directory nodes for more, then the publishers of parents and every node, and
// at last the same peers again. README.md lists how long a reader waits at most.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/time_source.h"
#include "peers/links.h"
#include "peers/view.h"
#include "weft/bytes/source.h"

namespace weft {

// The parts of this node that a search uses. All outlive the search.
struct PeerScene {
  PeerView& view;
  PeerLinks& links;
  // Asks the directory nodes of a manifest for its holders, and puts the answers into `view`.
  std::function<void(const Digest& manifest, Deadline deadline)> ask_directories;
  const TimeSource& time = steady_time();
};

// For one thread.
class PeerSearch {
 public:
  // `held_bytes`: bytes that a rate of this node holds back.
  enum class Wanted : std::uint8_t { manifest, digests, bytes, held_bytes };
  // `deadline` is for all tries together. Signs of a peer's life extend it: bytes and the reply that a request is
  // queued (came()), a peer that gives other bytes to this node, and an overloaded peer. A node id
  // in `only` restricts the search to this node, whose silence may last until the deadline.
  PeerSearch(const PeerScene& scene, const Digest& manifest, Wanted wanted, Deadline deadline, std::string only = {});

  // One request to one peer.
  struct Try {
    const PeerLinks::Choice& peer;
    std::chrono::milliseconds patience;  // the longest silence of the peer
    std::uint64_t bytes = 0;             // received, for the peer's rate; set by the attempt
    bool lacks_base = false;             // the peer has the bytes without the required base; set by the attempt
    bool too_slow = false;               // another peer is much faster; set by is_too_slow()
    // How long a rate of this node held the attempt back while nothing was on its way; set by the attempt.
    std::chrono::nanoseconds held{0};
    Deadline next_check{};  // when is_too_slow() compares the peer with others again
  };
  using Attempt = std::function<Status(Try&)>;

  // Calls `attempt` with one peer after the other until it succeeds. A null `run` means the manifest itself. Returns
  // the last error other than Errc::not_found, or Errc::not_found if no peer has the bytes. Errc::timed_out at the
  // deadline. A peer that answers Errc::busy is overloaded, and asked again after a pause.
  Status run(const ChunkRun* run, const Attempt& attempt);

  // True if the last run() ended because the known peers lack the required base.
  bool lacked_base() const { return lacked_base_; }
  void came();  // a sign of life: the full patience_ starts again
  bool may_have(const std::string& node, const ChunkRun& run) const;
  // True once another candidate is known to be much faster than this peer, which sends `rate` bytes a second (0:
  // unknown). The attempt then ends, sets `bytes` to the bytes received, and keeps them; the search goes on with the
  // faster peer. False in the first second of a try.
  bool is_too_slow(Try& from, const ChunkRun* run, double rate) const;

 private:
  enum class Outcome : std::uint8_t { done, cancelled, failed };
  // `kin`: publishers of parents. The last two are asked whether they announced the version or not.
  enum class Asks : std::uint8_t { holders, kin, everyone };
  std::vector<std::string> known(const ChunkRun* run) const;
  std::vector<std::string> candidates(const ChunkRun* run);
  Outcome ask(const PeerLinks::Choice& peer, const ChunkRun* run, const Attempt& attempt);
  bool widen();
  bool wait_for_busy(const ChunkRun* run);
  bool publisher_left();
  void note(const Error& error, const std::string& node);
  void note_failure(const PeerLinks::Choice& peer, const Error& error, const ChunkRun* run);
  Error give_up() const;
  std::chrono::milliseconds left() const;
  std::chrono::milliseconds share(const PeerLinks::Choice& peer) const;
  Error no_peer(const ChunkRun* run) const;

  const std::uint64_t log_id_;  // unique among the searches of this process
  const PeerScene& scene_;
  const Digest& manifest_;
  const Wanted wanted_;
  const std::chrono::milliseconds patience_;  // from the start to the first deadline
  Deadline deadline_;
  const std::string only_;
  bool asked_ = false;  // the directory nodes were asked
  // State of the current run():
  std::vector<std::uint32_t> tried_;
  unsigned failures_ = 0;  // of peers that hold the bytes but cannot serve them
  // The first peer that did not answer, which is the best candidate, or a publisher that left the cluster; "": none.
  std::string silent_;
  std::string silence_;                // how the last try of a silent peer ended
  std::chrono::milliseconds pause_{};  // before silent peers are asked again
  Asks asks_ = Asks::holders;
  bool lacked_base_ = false;
  bool comes_later_ = false;  // the publisher of a young version lacks the bytes
  std::optional<Error> failure_;
};

}  // namespace weft
