#include "fuse/kernel/request_log.h"

#include <algorithm>
#include <chrono>

#include "fuse/kernel/protocol.h"

namespace weft {
namespace {

// Indices in kRequestKinds.
enum KindOfRequest : std::size_t { kReads, kWrites, kOpens, kLookups, kGetattrs, kReaddirs, kOthers };
static_assert(kOthers + 1 == kRequestKinds.size());

KindOfRequest kind_of(std::uint32_t opcode) {
  switch (opcode) {
    case kernel::kOpRead:
      return kReads;
    case kernel::kOpWrite:
      return kWrites;
    case kernel::kOpOpen:
    case kernel::kOpOpendir:
    case kernel::kOpCreate:
      return kOpens;
    case kernel::kOpLookup:
      return kLookups;
    case kernel::kOpGetattr:
    case kernel::kOpStatx:
      return kGetattrs;
    case kernel::kOpReaddir:
    case kernel::kOpReaddirPlus:
      return kReaddirs;
    default:
      return kOthers;
  }
}

std::uint64_t clock_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

// Request numbers are even.
std::size_t first_place(std::uint64_t request) {
  return static_cast<std::size_t>(request / 2) % kRunningMax;
}

// False if another thread was first: the place may hold another request by now.
bool release(RequestWords::Running& place, std::uint64_t request) {
  return place.request.compare_exchange_strong(request, 0, std::memory_order_relaxed);
}

}  // namespace

void RequestLog::begin(std::uint64_t request, std::uint32_t opcode) {
  const KindOfRequest kind = kind_of(opcode);
  words_.begun.fetch_add(1, std::memory_order_relaxed);
  words_.kinds[kind].begun.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kRunningMax; ++i) {
    std::uint64_t nothing = 0;
    auto& place = words_.running[(first_place(request) + i) % kRunningMax];
    if (!place.request.compare_exchange_strong(nothing, request, std::memory_order_relaxed)) continue;
    place.kind.store(kind, std::memory_order_relaxed);
    place.begun_ns.store(clock_ns(), std::memory_order_relaxed);
    return;
  }
}

// Null if the request is not listed.
RequestWords::Running* RequestLog::find(std::uint64_t request) const {
  for (std::size_t i = 0; i < kRunningMax; ++i) {
    auto& place = words_.running[(first_place(request) + i) % kRunningMax];
    if (place.request.load(std::memory_order_relaxed) == request) return &place;
  }
  return nullptr;
}

void RequestLog::end(std::uint64_t request) {
  words_.finished.fetch_add(1, std::memory_order_relaxed);
  RequestWords::Running* const place = find(request);
  if (place == nullptr) return;
  auto& kind = words_.kinds[std::min<std::size_t>(place->kind.load(std::memory_order_relaxed), kOthers)];
  const std::uint64_t now = clock_ns();
  const std::uint64_t took = now - std::min(now, place->begun_ns.load(std::memory_order_relaxed));
  if (!release(*place, request)) return;
  const auto bound = std::ranges::lower_bound(kLatencyBoundsNs, took);
  kind.nanoseconds.fetch_add(took, std::memory_order_relaxed);
  kind.took[static_cast<std::size_t>(bound - kLatencyBoundsNs.begin())].fetch_add(1, std::memory_order_relaxed);
}

void RequestLog::set_aside(std::uint64_t request) {
  words_.finished.fetch_add(1, std::memory_order_relaxed);
  if (RequestWords::Running* const place = find(request)) release(*place, request);
}

void RequestLog::alive() {
  words_.begun.fetch_add(1, std::memory_order_relaxed);
  words_.finished.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t RequestLog::reads() const {
  return words_.kinds[kReads].begun.load(std::memory_order_relaxed);
}

std::uint64_t RequestLog::writes() const {
  return words_.kinds[kWrites].begun.load(std::memory_order_relaxed);
}

std::vector<MountRequests> RequestLog::answered() const {
  std::vector<MountRequests> out;
  for (std::size_t i = 0; i < kRequestKinds.size(); ++i) {
    MountRequests& requests = out.emplace_back();
    requests.kind = kRequestKinds[i];
    requests.nanoseconds = words_.kinds[i].nanoseconds.load(std::memory_order_relaxed);
    for (std::size_t k = 0; k < requests.took.size(); ++k)
      requests.took[k] = words_.kinds[i].took[k].load(std::memory_order_relaxed);
  }
  return out;
}

std::vector<std::uint64_t> RequestLog::running() const {
  std::vector<std::uint64_t> out;
  for (const auto& place : words_.running)
    if (const std::uint64_t request = place.request.load(std::memory_order_relaxed); request != 0)
      out.push_back(request);
  std::sort(out.begin(), out.end());
  return out;
}

void RequestLog::clear() {
  for (auto& place : words_.running) place.request.store(0, std::memory_order_relaxed);
}

}  // namespace weft
