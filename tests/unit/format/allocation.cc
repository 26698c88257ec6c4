#include "allocation.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace weft::testing {
namespace {

std::atomic<std::size_t> largest{0};
std::atomic<std::size_t> total{0};
std::atomic<std::size_t> live{0}, live_at_reset{0}, live_most{0};

void keep_most(std::atomic<std::size_t>& most, std::size_t value) {
  std::size_t seen = most;
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

void* counted(std::size_t size) {
  total += size;
  keep_most(largest, size);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory != nullptr) keep_most(live_most, live += malloc_usable_size(memory));
  return memory;
}

void release(void* memory) {
  live -= malloc_usable_size(memory);
  std::free(memory);
}

void* counted_or_thrown(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void reset_allocations() {
  largest = total = 0;
  live_at_reset = live_most = live.load();
}
Allocations allocations() {
  return {largest, total, live_most - live_at_reset};
}

}  // namespace weft::testing

void* operator new(std::size_t size) {
  return weft::testing::counted_or_thrown(size);
}
void* operator new[](std::size_t size) {
  return weft::testing::counted_or_thrown(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return weft::testing::counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return weft::testing::counted(size);
}
void operator delete(void* memory) noexcept {
  weft::testing::release(memory);
}
void operator delete[](void* memory) noexcept {
  weft::testing::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  weft::testing::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  weft::testing::release(memory);
}
