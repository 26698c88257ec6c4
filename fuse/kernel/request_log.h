// The requests that a server is answering, in memory shared with its supervisor. The supervisor tells a stalled server
// from an idle one by it, and a request that kills every server from a chance crash. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::size_t kRunningMax = 192;  // serving threads; requests beyond this number are not listed

// In shared memory. Zero bytes are an empty log.
struct RequestWords {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> finished;
  std::atomic<std::uint64_t> reads;                             // of those begun; passthrough reads do not count
  std::atomic<std::uint64_t> writes;                            // of those begun; passthrough writes do not count
  std::array<std::atomic<std::uint64_t>, kRunningMax> running;  // request numbers; 0: free
};

class RequestLog {
 public:
  explicit RequestLog(RequestWords& words) : words_(words) {}

  void begin(std::uint64_t request, std::uint32_t opcode);
  void end(std::uint64_t request);

  // The request is answered later, on an event. No thread works on it, and the server does not count as stalled.
  void set_aside(std::uint64_t request) { end(request); }

  // Reports progress: a request takes long, but the server is not stalled.
  void alive();

  std::uint64_t begun() const { return words_.begun.load(std::memory_order_relaxed); }
  std::uint64_t finished() const { return words_.finished.load(std::memory_order_relaxed); }
  std::uint64_t reads() const { return words_.reads.load(std::memory_order_relaxed); }
  std::uint64_t writes() const { return words_.writes.load(std::memory_order_relaxed); }
  std::vector<std::uint64_t> running() const;  // in ascending order
  // Empties the list of running requests, for the next server.
  void clear();

 private:
  RequestWords& words_;
};

}  // namespace weft
