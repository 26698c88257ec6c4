// The search for a peer that gives what is wanted: the one loop over candidates, for manifests, chunk digests and
// bytes.
//
// It asks the best candidate (peers/links.h), notes the outcome in that peer's score, and goes on with the next one. If
// no known candidate is left, it asks the directory nodes for more, then offers the request to every node, and at last
// asks the same peers again. README.md says what a reader waits at most.
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
#include "weft/source.h"

namespace weft {

// What a search knows of other nodes. All outlive it.
struct PeerScene {
  PeerView& view;
  PeerLinks& links;
  // Asks the nodes that keep the directory of a manifest who has it, and puts their answers into `view`.
  std::function<void(const Digest& manifest, Deadline deadline)> ask_directories;
  const TimeSource& time = steady_time();
};

// For one thread.
class PeerSearch {
 public:
  enum class Wanted : std::uint8_t { manifest, digests, bytes };
  // `deadline` is the one of all tries. Signs of a peer's life put it off: bytes and the word that a request is queued
  // (came()), a peer that gives other bytes to this node, and a peer that is busy. With `yields`, a peer may refuse as
  // ReadAid says, until something has come.
  PeerSearch(const PeerScene& scene, const Digest& manifest, Wanted wanted, Deadline deadline, bool yields = false);

  // One peer is asked once.
  struct Try {
    const PeerLinks::Choice& peer;
    std::chrono::milliseconds patience;  // with the answer, and while nothing of it comes
    bool may_refuse = false;             // the peer may answer with Errc::busy or Errc::exists
    std::uint64_t bytes = 0;             // that came, for the peer's rate; the attempt sets it
    bool lacks_base = false;             // the peer has the bytes, not the base that it must have; the attempt sets it
    bool too_slow =
        false;             // another peer is much faster; is_too_slow() sets it, the attempt `bytes` to those that came
    Deadline next_look{};  // when is_too_slow() compares the peer with others again
  };
  using Attempt = std::function<Status(Try&)>;

  // Calls `attempt` with one peer after the other until it succeeds. A null `run` is the manifest itself. The error is
  // that of the last peer, or of the last one that failed in another way than that it has none: Errc::not_found if no
  // peer has it, Errc::timed_out at the deadline, Errc::busy or Errc::exists of a peer that may refuse.
  Status run(const ChunkRun* run, const Attempt& attempt);

  // The last run() ended because the known peers lack the base that they must have.
  bool lacked_base() const { return lacked_base_; }
  void came();  // a sign of life: the deadline is as far away again as at first
  bool may_have(const std::string& node, const ChunkRun& run) const;
  // True once another candidate is known to be much faster than this peer, which sends `rate` bytes a second (0: not
  // known). The attempt then ends and keeps its bytes; the search goes on with the faster peer. False in the first
  // second of a try.
  bool is_too_slow(Try& from, const ChunkRun* run, double rate) const;

 private:
  enum class Outcome : std::uint8_t { done, refused, failed };
  std::vector<PeerCandidate> candidates(const ChunkRun* run);
  Outcome ask(const PeerLinks::Choice& peer, const ChunkRun* run, const Attempt& attempt);
  bool widen();
  bool wait_for_busy(const ChunkRun* run);
  void note(const Error& error, const std::string& node);
  void note_failure(const PeerLinks::Choice& peer, const Error& error, const ChunkRun* run);
  Error give_up() const;
  std::chrono::milliseconds left() const;
  std::chrono::milliseconds share(const PeerLinks::Choice& peer) const;
  Error no_peer(const ChunkRun* run) const;

  const PeerScene& scene_;
  const Digest& manifest_;
  const Wanted wanted_;
  const std::chrono::milliseconds patience_;  // between the start and the deadline at first
  Deadline deadline_;
  bool may_refuse_;
  bool asked_ = false;  // the directory nodes
  // Since the last success.
  std::vector<std::uint32_t> tried_;
  unsigned failures_ = 0;              // of peers that hold the bytes and cannot serve them
  std::string silent_;                 // the first peer that did not answer, which is the best candidate; "": none
  std::string silence_;                // how the last try of a silent peer ended
  std::chrono::milliseconds pause_{};  // before silent peers are asked again
  bool offers_ = false;                // to every node
  bool lacked_base_ = false;
  bool comes_later_ = false;  // the publisher of a young version lacks it
  std::optional<Error> failure_;
};

}  // namespace weft
