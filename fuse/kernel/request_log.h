// The requests that a server is answering, and the times of those that were answered, in memory shared with its
// supervisor. The supervisor tells a stalled server from an idle one by it, and a request that kills every server from
// a chance crash. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/programs/mount_figures.h"

namespace weft {

inline constexpr std::size_t kRunningMax = 192;  // serving threads; requests beyond this number are not listed

inline constexpr std::array kRequestKinds{"read", "write", "open", "lookup", "getattr", "readdir", "other"};

// In shared memory. Zero bytes are an empty log.
struct RequestWords {
  struct Running {
    std::atomic<std::uint64_t> request;   // its number; 0: free
    std::atomic<std::uint64_t> begun_ns;  // of CLOCK_MONOTONIC, which all servers share
    std::atomic<std::uint64_t> kind;      // index in kRequestKinds
  };
  struct Kind {
    std::atomic<std::uint64_t> begun;
    std::atomic<std::uint64_t> nanoseconds;  // of those answered
    std::array<std::atomic<std::uint64_t>, kLatencyBoundsNs.size() + 1> took;
  };
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> finished;
  std::array<Kind, kRequestKinds.size()> kinds;  // passthrough reads and writes do not count
  std::array<Running, kRunningMax> running;
};

class RequestLog {
 public:
  explicit RequestLog(RequestWords& words) : words_(words) {}

  void begin(std::uint64_t request, std::uint32_t opcode);
  void end(std::uint64_t request);

  // The request is answered later, on an event. No thread works on it, and the server does not count as stalled. Its
  // time does not count.
  void set_aside(std::uint64_t request);

  // Reports progress: a request takes long, but the server is not stalled.
  void alive();

  std::uint64_t begun() const { return words_.begun.load(std::memory_order_relaxed); }
  std::uint64_t finished() const { return words_.finished.load(std::memory_order_relaxed); }
  std::uint64_t reads() const;                  // of those begun
  std::uint64_t writes() const;                 // of those begun
  std::vector<MountRequests> answered() const;  // by kind
  std::vector<std::uint64_t> running() const;   // in ascending order
  // Empties the list of running requests, for the next server.
  void clear();

 private:
  RequestWords::Running* find(std::uint64_t request) const;
  RequestWords& words_;
};

}  // namespace weft
