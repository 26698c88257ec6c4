// A member of a swarm, and its directory node, that holds the version and gives other answers than a daemon.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blobs/local_bytes.h"
#include "peers/swarm/version_units.h"
#include "peers/swarm_server.h"
#include "weft/store/store.h"

namespace weft::hostile {

// Faults of its answers to Wants; it then introduces nobody:
//   unit-none     no unit: it only receives
//   unit-silent   no answer
//   unit-wrong    a lacking unit, with one wrong byte
//   unit-short, unit-long  a lacking unit, with one byte too few or too many
//   unit-unknown  a unit that the version does not have
//   unit-held     a unit that the asker has, or was promised
//   whole-lacking  as unit-none, and HostileAnswers gives no bytes either
// Faults of its answers to Joins; it then has no unit:
//   join-nobody     no node, and no source
//   join-silent     no answer
//   join-strangers  as many nodes as an answer may have, and a source, none of which exists
//   join-asker      the asker, also as the source
//   join-sources    no node, and another source each time: nodes that joined before
//   join-crowd      10,000 nodes
bool is_member_fault(std::string_view name);
inline constexpr std::string_view kLacksAll = "whole-lacking";

struct MemberFault;

// Any thread.
class HostileMember final : public SwarmServer {
 public:
  // `fault` is_member_fault(). The other arguments outlive this.
  HostileMember(Store& store, LocalBytes& bytes, std::string_view fault);

  void receive(std::string_view node, Join join, PendingReply reply) override;
  void receive(std::string_view node, Want want, PendingReply reply) override;
  void unwanted(std::string_view /*node*/) override {}
  void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> /*runs*/) override {}
  void evicted() override {}

  // Requests so far.
  struct Heard {
    std::map<std::string, std::size_t> wants;  // by node
    std::size_t offers = 0;                    // wants that were answered with a unit
    std::size_t joins = 0;                     // of nodes that begin to fetch, or ask for another partner
  };
  Heard heard() const;

 private:
  Result<PeerReply> answer(const Want& want);
  void keep(PendingReply reply);
  std::optional<PeerReply> introduce(std::string_view asker);

  const MemberFault& fault_;
  LocalVersionUnits versions_;
  LocalBytes& bytes_;
  mutable std::mutex mutex_;
  Heard heard_;                      // guarded by mutex_
  std::vector<std::string> joined_;  // guarded by mutex_: nodes, each once
  std::vector<PendingReply> kept_;   // guarded by mutex_: replies that are never given
};

}  // namespace weft::hostile
