// Receives the files of a source over several connections. It verifies them, or leaves that to an import that reads
// them meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "drafts/pull_area.h"
#include "pull/pull_source.h"
#include "pull/received_file.h"
#include "weft/arrival.h"
#include "weft/progress.h"
#include "weft/result.h"

namespace weft {

// A smaller file is received whole before an import reads it.
inline constexpr std::uint64_t kArrivingFileMin = 1U << 20U;

struct ReceiveOptions {
  // Gives the sink the bytes of a file that this node has already, also wrong ones. Errc::not_found: it has none.
  // Called by any thread, for files that do not arrive into an import. Empty: no file is known.
  std::function<Status(const HubFile& file, const ByteSink& sink)> known = {};
  // True for a file that may arrive while an import reads it, which verifies it. The largest such files do, if they
  // have kArrivingFileMin bytes or more and a SHA-256. Empty: no file does.
  std::function<bool(const HubFile& file)> into_import = {};
  unsigned connections = 8;
};

struct ReceivedBytes {
  std::uint64_t bytes = 0;    // that came over the network
  std::uint64_t resumed = 0;  // that an earlier pull had received
  std::uint64_t known = 0;    // that ReceiveOptions::known gave
};

// After an error the received bytes stay for the next Receiving. Errors: Errc::corrupt: a file has other bytes than its
// digest says. Errc::cancelled: `progress` is. Others: hub_client.h, os/sys.h.
class Receiving final : public ArrivingFiles {
 public:
  // Begins to receive `files` of a source, sorted by path, into area.files(), and removes whatever else is there. First
  // come the bytes that await() waits for, then the files that do not arrive into an import, then the others by path.
  // All arguments outlive end(). `progress`: of the files that do not arrive into an import. `failed`: set by the first
  // error and by end(), so that other requests of the source can end (HttpReaderOptions::stopped).
  static Result<std::unique_ptr<Receiving>> begin(PullSource& source, ReceiveOptions options,
                                                  std::span<const HubFile> files, const PullArea& area,
                                                  Progress& progress, std::atomic<bool>& failed);
  ~Receiving() override;
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  bool any_arrive() const { return first_arriving_ < files_.size(); }
  // Waits until the files are verified that do not arrive into an import. Afterwards that may begin.
  Status wait_verified();
  // Waits until the other files are received too. Call it after an import that wrong bytes may have made fail before it
  // read them all: drop_damaged() finds them in whole files alone.
  Status wait_received();
  std::optional<Digest> expected(std::string_view path) const override;
  Result<std::uint64_t> await(std::string_view path, Range range) override;

  // Ends the connections, also before all is received, and may be called again. Files that arrive into an import, and
  // of which nothing was received, give their space back. Returns the error that ended the receiving before.
  Status end();
  ReceivedBytes bytes() const { return {bytes_, resumed_, known_}; }
  // True if some bytes of the file came from an earlier pull, or were known. They may be wrong.
  bool is_doubtful(std::string_view path) const;

 private:
  enum class Stage : std::uint8_t { untouched, beginning, open, done };
  struct State {
    Stage stage = Stage::untouched;
    bool doubtful = false;
    bool is_place = false;  // the file has its size and no byte of the source; the stages after untouched say more
    std::shared_ptr<ReceivedFile> file = nullptr;  // unless untouched or done
  };
  struct Work {
    std::size_t number = 0;
    std::shared_ptr<ReceivedFile> file = nullptr;  // null: there is nothing left to take
    Pieces pieces{};                               // none: this connection opened the file just now
  };
  // The bytes that await() waits for.
  struct Awaited {
    std::size_t number = 0;
    Range range;
  };

  Receiving(PullSource& source, ReceiveOptions options, std::span<const HubFile> files, const PullArea& area,
            Progress& progress, std::atomic<bool>& failed);
  Status make_places();
  void remove_places() WEFT_REQUIRES(mutex_);
  std::size_t number_of(std::string_view path) const;
  std::uint64_t arrived(const Awaited& what) const WEFT_REQUIRES(mutex_);
  void work();
  Result<bool> step();
  Result<Work> take();
  Result<Work> take_awaited() WEFT_REQUIRES(mutex_);
  Result<Work> open(std::size_t number) WEFT_REQUIRES(mutex_);
  Status begin_file(const Work& work);
  Status copy_known(const Work& work);
  Status receive(const Work& work);
  Status settle(const Work& work);
  void advance(std::size_t number, std::uint64_t bytes);
  void tell_waiting(std::size_t number);
  Error named(const HubFile& file, Error error) const;

  PullSource& source_;
  const ReceiveOptions options_;
  const PullArea& area_;
  Progress& progress_;
  std::atomic<bool>& failed_;
  std::atomic<std::uint64_t> bytes_{0}, resumed_{0}, known_{0};
  std::vector<HubFile> files_;      // those that arrive into an import last; both parts by path
  std::size_t first_arriving_ = 0;  // the number of the first one that does
  mutable Mutex mutex_;
  Condition changed_;                                      // of states_, and of an error
  Condition arrived_;                                      // of awaited_
  std::vector<State> states_ WEFT_GUARDED_BY(mutex_);      // of files_
  std::vector<std::size_t> open_ WEFT_GUARDED_BY(mutex_);  // the numbers of files that have pieces to take
  std::size_t next_ WEFT_GUARDED_BY(mutex_) = 0;           // no file before is untouched
  std::size_t beginning_ WEFT_GUARDED_BY(mutex_) = 0;      // files
  std::size_t unverified_ WEFT_GUARDED_BY(mutex_) = 0;     // files before first_arriving_ that are not done
  std::size_t undone_ WEFT_GUARDED_BY(mutex_) = 0;         // files
  unsigned running_ WEFT_GUARDED_BY(mutex_) = 0;           // connections
  std::optional<Awaited> awaited_ WEFT_GUARDED_BY(mutex_);
  std::optional<Error> error_ WEFT_GUARDED_BY(mutex_);  // the first one
  bool ended_ WEFT_GUARDED_BY(mutex_) = false;          // by end(): later errors do not count
  std::optional<ThreadPool> connections_;               // last: its threads use the members above
};

// Finds the files of a finished Receiving whose bytes are not those of their digests, and drops these bytes, so that
// the next one receives them again. Reads all of them. Returns the paths.
Result<std::vector<std::string>> drop_damaged(std::span<const HubFile> files, const PullArea& area);

}  // namespace weft
