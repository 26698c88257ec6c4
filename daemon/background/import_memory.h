// Bounds how many imports run at once, by their memory: a million tensors take some 300 MB of weftd until they are
// published.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "weft/result.h"

namespace weft {

// Any thread.
class ImportMemory {
 public:
  using Cancelled = std::function<bool()>;
  explicit ImportMemory(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // The memory of one import, until it is destroyed.
  class Share {
   public:
    Share(Share&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), user_(other.user_), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;
    ~Share();
    // Corrects the size when it is known. Never waits: a larger import makes later ones wait.
    void set(std::uint64_t bytes);

   private:
    friend class ImportMemory;
    Share(ImportMemory* owner, uid_t user, std::uint64_t bytes) : owner_(owner), user_(user), bytes_(bytes) {}
    ImportMemory* owner_;
    uid_t user_;
    std::uint64_t bytes_;
  };
  // Waits until the bytes fit within the bound, and with the user's other imports within half of it. A user without a
  // running import waits some seconds at most, so that no user's imports that hang stop the others'. An import larger
  // than the bound runs alone. Errc::cancelled.
  Result<Share> take(uid_t user, std::uint64_t bytes, const Cancelled& cancelled);

 private:
  bool fits(uid_t user, std::uint64_t bytes) const;
  void change(uid_t user, std::uint64_t from, std::uint64_t to, int imports);

  struct Use {
    std::uint64_t bytes = 0;
    unsigned imports = 0;
  };
  const std::uint64_t bytes_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Use all_;                    // guarded by mutex_, as `each_`
  std::map<uid_t, Use> each_;  // users with a running import
};

}  // namespace weft
