#include "daemon/background/import_memory.h"

#include <algorithm>
#include <chrono>

namespace weft {
namespace {

constexpr auto kImportTick = std::chrono::milliseconds(100);
constexpr auto kFirstMax = std::chrono::seconds(10);  // longest wait of a user without a running import

}  // namespace

ImportMemory::Share::~Share() {
  if (owner_ != nullptr) owner_->change(user_, bytes_, 0, -1);
}

void ImportMemory::Share::set(std::uint64_t bytes) {
  owner_->change(user_, std::exchange(bytes_, bytes), bytes, 0);
}

// Call with mutex_ held.
bool ImportMemory::fits(uid_t user, std::uint64_t bytes) const {
  const auto within = [bytes](const Use& use, std::uint64_t max) {
    return use.imports == 0 || (use.bytes <= max && bytes <= max - use.bytes);
  };
  const auto own = each_.find(user);
  return within(all_, bytes_max_) && (own == each_.end() || within(own->second, bytes_max_ / 2));
}

void ImportMemory::change(uid_t user, std::uint64_t from, std::uint64_t to, int imports) {
  const std::lock_guard lock(mutex_);
  Use& own = each_[user];
  for (Use* use : {&all_, &own}) {
    use->bytes += to - from;  // modulo 2^64
    use->imports += static_cast<unsigned>(imports);
  }
  if (own.imports == 0) each_.erase(user);
  changed_.notify_all();
}

Result<ImportMemory::Share> ImportMemory::take(uid_t user, std::uint64_t bytes, const Cancelled& cancelled) {
  const auto late = std::chrono::steady_clock::now() + kFirstMax;
  {
    std::unique_lock lock(mutex_);
    while (!fits(user, bytes)) {
      if (!each_.contains(user) && std::chrono::steady_clock::now() >= late) break;
      if (cancelled()) return Error{Errc::cancelled, "interrupted while other imports had the memory"};
      changed_.wait_for(lock, kImportTick);
    }
    for (Use* use : {&all_, &each_[user]}) {
      use->bytes += bytes;
      ++use->imports;
    }
  }
  return Share(this, user, bytes);
}

}  // namespace weft
