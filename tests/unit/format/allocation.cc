#include "allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace weft::testing {
namespace {

std::atomic<std::size_t> largest{0};
std::atomic<std::size_t> total{0};

void* counted(std::size_t size) {
  total += size;
  std::size_t seen = largest;
  while (seen < size && !largest.compare_exchange_weak(seen, size)) {
  }
  return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_thrown(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void reset_allocations() {
  largest = total = 0;
}
Allocations allocations() {
  return {largest, total};
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
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
