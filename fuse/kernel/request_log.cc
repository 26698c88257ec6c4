#include "fuse/kernel/request_log.h"

#include <algorithm>

#include "fuse/kernel/protocol.h"

namespace weft {
namespace {

// Request numbers are even.
std::size_t first_place(std::uint64_t request) {
  return static_cast<std::size_t>(request / 2) % kRunningMax;
}

}  // namespace

void RequestLog::begin(std::uint64_t request, std::uint32_t opcode) {
  words_.begun.fetch_add(1, std::memory_order_relaxed);
  if (opcode == kernel::kOpRead) words_.reads.fetch_add(1, std::memory_order_relaxed);
  if (opcode == kernel::kOpWrite) words_.writes.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kRunningMax; ++i) {
    std::uint64_t nothing = 0;
    auto& place = words_.running[(first_place(request) + i) % kRunningMax];
    if (place.compare_exchange_strong(nothing, request, std::memory_order_relaxed)) return;
  }
}

void RequestLog::end(std::uint64_t request) {
  words_.finished.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kRunningMax; ++i) {
    std::uint64_t expected = request;
    auto& place = words_.running[(first_place(request) + i) % kRunningMax];
    if (place.compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return;
  }
}

void RequestLog::alive() {
  words_.begun.fetch_add(1, std::memory_order_relaxed);
  words_.finished.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::uint64_t> RequestLog::running() const {
  std::vector<std::uint64_t> out;
  for (const auto& place : words_.running)
    if (const std::uint64_t request = place.load(std::memory_order_relaxed); request != 0) out.push_back(request);
  std::sort(out.begin(), out.end());
  return out;
}

void RequestLog::clear() {
  for (auto& place : words_.running) place.store(0, std::memory_order_relaxed);
}

}  // namespace weft
