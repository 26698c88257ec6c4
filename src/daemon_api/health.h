// The health of a machine or of its whole cluster: the facts that weftd gathers, and the findings that follow from
// them. weftd, `weft health`, `weft status` and the metrics judge by the same function. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"

namespace weft {

namespace limits {
inline constexpr std::size_t kHealthNamed = 10;  // versions that one finding names
}

// A node of the cluster. Facts that are unknown are 0.
struct NodeFacts {
  std::string node, name, address;
  bool present = false;
  bool self = false;
  bool asked = false;         // this node has called it: it is a member with an address and the same key
  std::string problem;        // why it did not answer; "" if it did, or was not asked
  bool other_key = false;     // it accepts no key of this node
  std::uint64_t last_ns = 0;  // when it was last seen
  double round_trip_seconds = 0;
  // The distance of its clock from the clock of this node. Half of the round trip bounds the error.
  double clock_offset_seconds = 0, clock_error_seconds = 0;
  bool clock_ahead = false;  // its clock is ahead of the clock of this node
  std::uint64_t free_bytes = 0, disk_bytes = 0;
  std::uint64_t reserve_bytes = 0;                    // space that gc can use when the disk is full
  std::uint64_t unsaved = 0;                          // its versions that are not at the origin
  std::uint64_t owned_versions = 0, owned_bytes = 0;  // versions that only this node has
};
void fields(JsonFields& f, NodeFacts& m);
// Returns the clock of a node minus the clock of this node: "+0.0004 s, ± 0.0002 s". Nothing if they were not compared.
std::optional<std::string> clock_text(const NodeFacts& node);

// The versions of one node that neither another node nor the origin has.
struct SoleVersions {
  std::string id, node;  // the id and the name of the node
  bool absent = false;
  std::uint64_t versions = 0, bytes = 0;
  std::vector<std::string> named;  // the first of them, limits::kHealthNamed at most
};
void fields(JsonFields& f, SoleVersions& m);

// The origin, or etcd.
struct ServiceFacts {
  std::string place;    // "": none is configured
  std::string problem;  // "": it answers
  double seconds = 0;   // time of one small request
};
void fields(JsonFields& f, ServiceFacts& m);

struct ClusterHealth {
  std::uint64_t gathered_ns = 0;
  bool clustered = false;
  std::string daemon_problem;  // "": weftd answers, or none is needed
  std::uint64_t lost = 0;      // versions whose bytes were lost, of all times
  std::string last_lost;       // the last one
  std::uint64_t last_lost_ns = 0;
  ServiceFacts origin, etcd;
  std::string history_lost;      // as RegistryStatus::lost
  std::uint64_t keys = 1;        // keys of the cluster that this node accepts
  std::vector<NodeFacts> nodes;  // of a machine without a cluster: this one
  bool copies_known = false;     // the members below are complete
  std::string copies_problem;    // why they are not; "": nobody has looked yet
  std::uint64_t copies_ns = 0;   // when they were gathered
  std::vector<SoleVersions> sole;
};
void fields(JsonFields& f, ClusterHealth& m);
// Returns the other members whose clocks were compared with the clock of this node, the farthest first.
std::vector<const NodeFacts*> compared_clocks(const ClusterHealth& facts);

enum class HealthLevel : std::uint8_t { well, warning, trouble };  // the exit codes of `weft health`
std::string_view name_of(HealthLevel level);

struct HealthFinding {
  std::string what;   // a word for programs: "versions-lost"
  std::string level;  // name_of()
  std::string text;
  std::string command;  // what to do about it; may be ""
};
void fields(JsonFields& f, HealthFinding& m);

// Returns the findings, troubles first. `now_ns`: the time of the judgement.
std::vector<HealthFinding> judge(const ClusterHealth& facts, std::uint64_t now_ns);
// Returns the worst level.
HealthLevel verdict_of(const std::vector<HealthFinding>& findings);
// Returns the verdict in one line: "well", or "trouble: 1 trouble, 2 warnings".
std::string verdict_line(const std::vector<HealthFinding>& findings);
// The words of all findings, for metrics.
std::vector<std::string_view> finding_words();

// Asks weftd for the health. `fresh`: asks all members and services now; else weftd sends no message, and judges what
// it knows.
struct HealthRequest {
  bool fresh = false;
};
inline void fields(JsonFields& f, HealthRequest& m) {
  f("fresh", m.fresh);
}

struct HealthReport {
  std::string verdict;  // name_of()
  std::vector<HealthFinding> findings;
  ClusterHealth facts;
};
void fields(JsonFields& f, HealthReport& m);
HealthReport report_of(ClusterHealth facts, std::uint64_t now_ns);

}  // namespace weft
