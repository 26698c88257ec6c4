// Which requests the server is answering, in memory that its supervisor sees too: so it can tell a server that stands
// still from an idle one, and a request that kills each server anew from bad luck. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

inline constexpr std::size_t kRunningMax = 192;  // threads that serve; what is beyond is not logged

// Lies in shared memory. Zero bytes are an empty log.
struct RequestWords {
  std::atomic<std::uint64_t> begun;
  std::atomic<std::uint64_t> finished;
  std::atomic<std::uint64_t> reads;   // of those begun; what the kernel passes through is none
  std::atomic<std::uint64_t> writes;  // likewise
  std::array<std::atomic<std::uint64_t>, kRunningMax> running;  // numbers of requests; 0: none
};

class RequestLog {
 public:
  explicit RequestLog(RequestWords& words) : words_(words) {}

  void begin(std::uint64_t request, std::uint32_t opcode);
  void end(std::uint64_t request);

  // It is answered later, when something happens: nobody works on it, and its server does not stand still.
  void set_aside(std::uint64_t request) { end(request); }

  // A request takes long, and its server does not stand still.
  void alive();

  std::uint64_t begun() const { return words_.begun.load(std::memory_order_relaxed); }
  std::uint64_t finished() const { return words_.finished.load(std::memory_order_relaxed); }
  std::uint64_t reads() const { return words_.reads.load(std::memory_order_relaxed); }
  std::uint64_t writes() const { return words_.writes.load(std::memory_order_relaxed); }
  std::vector<std::uint64_t> running() const;  // in rising order
  // For the next server: nothing runs.
  void clear();

 private:
  RequestWords& words_;
};

}  // namespace weft
