#include "fuse/process/open_table.h"

#include <sys/mman.h>

#include <algorithm>

namespace weft {
namespace {

enum SlotState : std::uint32_t { kFree = 0, kOpen = 1, kRetired = 2 };

constexpr std::size_t kKeptBytes = 64U << 10U;  // of free slots; not worth a call below

}  // namespace

OpenTable::OpenTable(OpenTableHead& head, std::span<OpenSlot> slots) : head_(head), slots_(slots) {
  const auto used = std::min<std::size_t>(head_.slots_used.load(std::memory_order_acquire), slots_.size());
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint32_t state = slots_[i].state.load(std::memory_order_acquire);
    if (state == kFree) free_.push_back(i);
    if (state == kOpen) places_.emplace(slots_[i].handle, i);
  }
}

OpenRecord OpenTable::record_at(std::uint32_t slot) const {
  const OpenSlot& from = slots_[slot];
  return {from.handle, from.ino, from.way, from.backing_id, from.versions, from.user};
}

std::vector<OpenRecord> OpenTable::records() const {
  std::vector<OpenRecord> out;
  out.reserve(places_.size());
  for (const auto& place : places_) out.push_back(record_at(place.second));
  return out;
}

std::vector<OpenTable::Retired> OpenTable::retired() const {
  std::vector<Retired> out;
  const std::uint32_t used = head_.slots_used.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i)
    if (slots_[i].state.load(std::memory_order_relaxed) == kRetired) out.push_back({i, slots_[i].backing_id});
  return out;
}

std::optional<std::uint32_t> OpenTable::free_slot() {
  if (!free_.empty()) {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  const std::uint32_t used = head_.slots_used.load(std::memory_order_relaxed);
  if (used >= slots_.size()) return std::nullopt;
  head_.slots_used.store(used + 1, std::memory_order_release);
  return used;
}

bool OpenTable::add(const OpenRecord& record) {
  const auto slot = free_slot();
  if (!slot) return false;
  OpenSlot& to = slots_[*slot];
  to.way = record.way;
  to.backing_id = record.backing_id;
  to.user = record.user;
  to.handle = record.handle;
  to.ino = record.ino;
  to.versions = record.versions;
  for (StreamSlot& place : to.places) place.offset.store(StreamSlot::kNoPlace, std::memory_order_relaxed);
  to.poll_handle.store(0, std::memory_order_relaxed);
  to.state.store(kOpen, std::memory_order_release);
  places_.emplace(record.handle, *slot);
  return true;
}

std::optional<OpenRecord> OpenTable::find(std::uint64_t handle) const {
  const auto found = places_.find(handle);
  if (found == places_.end()) return std::nullopt;
  return record_at(found->second);
}

std::optional<StreamPlace> OpenTable::place(std::uint64_t handle, std::uint64_t offset) const {
  const auto found = places_.find(handle);
  if (found == places_.end()) return std::nullopt;
  std::optional<StreamPlace> last;
  for (const StreamSlot& slot : slots_[found->second].places) {
    const std::uint64_t at = slot.offset.load(std::memory_order_acquire);
    if (at <= offset && at != StreamSlot::kNoPlace && (!last || at > last->offset))
      last = StreamPlace{at, slot.position.load(std::memory_order_relaxed)};
  }
  return last;
}

// If a place has this offset already, only its position changes: the reader skipped records without text.
void OpenTable::set_place(std::uint64_t handle, std::uint64_t read_at, const StreamPlace& place) {
  const auto found = places_.find(handle);
  if (found == places_.end()) return;
  auto& slots = slots_[found->second].places;
  if (place.offset == read_at) {
    const auto same = std::ranges::find_if(slots, [&](const StreamSlot& slot) { return slot.offset == read_at; });
    if (same != slots.end()) return same->position.store(place.position, std::memory_order_relaxed);
  }
  StreamSlot& to = slots[0].offset.load(std::memory_order_relaxed) == read_at ? slots[1] : slots[0];
  to.offset.store(StreamSlot::kNoPlace, std::memory_order_release);
  to.position.store(place.position, std::memory_order_release);
  to.offset.store(place.offset, std::memory_order_release);
}

void OpenTable::set_poll_handle(std::uint64_t handle, std::uint64_t poll_handle) {
  const auto found = places_.find(handle);
  if (found != places_.end()) slots_[found->second].poll_handle.store(poll_handle, std::memory_order_relaxed);
}

std::uint64_t OpenTable::poll_handle(std::uint64_t handle) const {
  const auto found = places_.find(handle);
  return found == places_.end() ? 0 : slots_[found->second].poll_handle.load(std::memory_order_relaxed);
}

void OpenTable::remove(std::uint64_t handle) {
  const auto found = places_.find(handle);
  if (found == places_.end()) return;
  const std::uint32_t slot = found->second;
  places_.erase(found);
  release_slot(slot);
}

OpenTable::Retired OpenTable::retire(std::uint64_t handle) {
  const auto found = places_.find(handle);
  const std::uint32_t slot = found->second;
  slots_[slot].state.store(kRetired, std::memory_order_release);
  places_.erase(found);
  return {slot, slots_[slot].backing_id};
}

void OpenTable::finish(const Retired& retired) {
  release_slot(retired.slot);
}

// If that was the last slot in use, frees the memory of all.
void OpenTable::release_slot(std::uint32_t slot) {
  slots_[slot].state.store(kFree, std::memory_order_release);
  free_.push_back(slot);
  const std::uint32_t used = head_.slots_used.load(std::memory_order_relaxed);
  if (free_.size() < used) return;
  head_.slots_used.store(0, std::memory_order_release);
  if (used * sizeof(OpenSlot) > kKeptBytes) ::madvise(slots_.data(), slots_.size_bytes(), MADV_REMOVE);
  free_ = {};
  places_ = {};
}

}  // namespace weft
