// The sources of a Fetcher. Asks them in order: the cheapest first, unless another one turns out to be much faster. A
// source that fell silent is asked last for a while. Counts what each source gave.
//
// Any thread. The mutex is held for figures alone: no source is called under it. Take it after any other mutex.
#pragma once

#include <chrono>
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
#include "base/time_source.h"
#include "fetch/verified_source.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"
#include "weft/content.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct SourceCount {
  std::string name;
  std::uint64_t reads = 0, bytes = 0, failures = 0;
};

class FetchSources {
 public:
  using Clock = std::chrono::steady_clock;
  struct Request {
    const Digest& manifest;
    std::span<const ChunkRun> runs;
    ReadAid aid;
    // Sources may soon have bytes that they lack now: the version is new. A source that lacks them has not failed.
    bool young = false;
    Clock::time_point until = Clock::time_point::max();  // the latest end of the wait for signs of life
  };
  struct Given {
    VerifiedBytes read;
    std::size_t source = 0;  // for taken()
    std::string_view name;   // of the source; valid as long as this object
  };

  // `sources`: the cheapest first. They share one `patience` for a request, and an offered unit's source has all of it.
  // `time` measures their rates and their rests, and outlives this. Their deadlines are of the steady clock.
  FetchSources(const std::vector<std::shared_ptr<BlobSource>>& sources, Clock::duration patience,
               const TimeSource& time = steady_time());
  ~FetchSources();
  FetchSources(const FetchSources&) = delete;
  FetchSources& operator=(const FetchSources&) = delete;

  // Return the first verified answer, or else the error of the last source that did not merely lack the bytes. For a
  // young version, the lack outweighs the errors of other sources. Errc::cancelled ends the request. Wait for sources.
  Result<Given> read(Request& request);
  Result<std::vector<std::byte>> manifest(const VersionRow& version, bool young);
  // Reads an offered unit from the one source that can. Errc::unsupported: there is none. Counts no failure.
  Result<Given> read_offered(Request& request, const std::shared_ptr<OfferedUnit>& unit);
  // Counts a read whose bytes were kept, or passed to a reader.
  void taken(const Given& given) WEFT_EXCLUDES(mutex_);

  // Returns the readiness of the source that would be asked first. Does not wait.
  Readiness readiness(const Digest& manifest, const ChunkRun& run) const WEFT_EXCLUDES(mutex_);
  bool codes() const;  // some source uses ReadAid::bases
  // As VerifiedSource::known_proof(), of any source.
  VerifiedSource::Proof known_proof(const ContentId& id) const;

  // As the methods of BlobSource, for all sources.
  void expect(const VersionRow& version, std::span<const ContentId> blobs) const;
  void arrived(const Digest& manifest, std::span<const ChunkRun> runs) const;
  void evicted() const;

  std::vector<SourceCount> counts() const WEFT_EXCLUDES(mutex_);
  std::string problem() const WEFT_EXCLUDES(mutex_);  // the last one, "" for none
  // Records a problem with bytes that a source gave.
  void note_problem(const std::string& problem) WEFT_EXCLUDES(mutex_);

 private:
  struct Source;
  struct Figures {
    double bytes_per_s = 0;
    bool rests = false;
  };
  template <class T>
  Result<T> from_any(const Request& request, const std::function<Result<T>(Source&, Deadline)>& ask);
  std::vector<Source*> ranked(const Digest& manifest, std::span<const ChunkRun> runs) const WEFT_EXCLUDES(mutex_);
  Result<Given> read_from(Source& source, Request& request, Deadline deadline) WEFT_EXCLUDES(mutex_);
  void count(Source& source, std::uint64_t bytes, const Error* failure) WEFT_EXCLUDES(mutex_);
  Figures figures_of(const Source& source) const WEFT_EXCLUDES(mutex_);

  const Clock::duration patience_;
  const TimeSource& time_;
  std::vector<std::unique_ptr<Source>> sources_;  // constant; a Source says what mutex_ guards of it
  mutable Mutex mutex_;
  std::string problem_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft
