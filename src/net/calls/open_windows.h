// The windows that this node has open for its peers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/bytes/window_memory.h"
#include "weft/cluster/exchange.h"

namespace weft::net {

// The windows of one answer, with their memory.
class OpenWindows {
 public:
  OpenWindows() = default;
  OpenWindows(OpenWindows&&) = default;
  OpenWindows& operator=(OpenWindows&&) = default;
  ~OpenWindows() = default;

  // Opens a window on `memory`. If that is mapped from a file and the provider rejects mapped files, as hardware may,
  // opens a window on a copy.
  Status open(Transport& transport, std::unique_ptr<WindowMemory> memory);
  std::vector<RemoteWindow> remote() const;
  std::size_t count() const { return windows_.size(); }
  std::uint64_t bytes() const { return bytes_; }
  // Closes the windows although their reader may still be reading. The addresses are not reused.
  void withdraw();

 private:
  std::vector<std::unique_ptr<WindowMemory>> memory_;
  std::vector<std::unique_ptr<Window>> windows_;  // closed before memory_
  std::uint64_t bytes_ = 0;
};

// Opens and closes the windows of all answers, and bounds their number and their bytes (limits.h). Any thread.
class WindowBudget {
 public:
  explicit WindowBudget(Transport& transport) : transport_(transport) {}  // outlives this

  // Opens the windows of an answer. Errc::busy: too many are open. Each result is given back by release() or
  // withdraw().
  Result<OpenWindows> open(std::vector<std::unique_ptr<WindowMemory>> memory);
  void release(OpenWindows windows);   // closes windows that nobody reads
  void withdraw(OpenWindows windows);  // as OpenWindows::withdraw()
  void add_to(ExchangeFigures& figures) const;

 private:
  bool reserve(std::size_t windows, std::uint64_t bytes);
  void uncount(std::size_t windows, std::uint64_t bytes);

  Transport& transport_;
  mutable std::mutex mutex_;
  std::size_t windows_ = 0;  // guarded by mutex_, as the next
  std::uint64_t bytes_ = 0;
};

}  // namespace weft::net
