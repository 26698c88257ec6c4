// Brings bytes to this node for whoever asks, in the daemon: one transfer of a chunk for any number of readers, from
// the cheapest source that has it, verified before anybody reads it, into cached packs of the store.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lru_cache.h"
#include "blobs/local_bytes.h"
#include "diskformat/toc.h"
#include "fetch/rate_meter.h"
#include "fetch/transfer.h"
#include "fetch/verified_source.h"
#include "weft/cluster_store.h"
#include "weft/cold.h"
#include "weft/deadline.h"
#include "weft/manifest.h"
#include "weft/source.h"

namespace weft {

struct FetchOptions {
  unsigned threads = 4;                              // that read and verify
  std::chrono::milliseconds patience = kSilenceMax;  // with sources that are silent
  std::chrono::milliseconds kept{30'000};            // a transfer that nobody asks for is dropped after that
  std::chrono::milliseconds refused{2'000};          // a look that failed is not tried again so soon
  // Whether the node that published a version is in the cluster now. Any thread; empty: all of them are.
  std::function<bool(const std::string& publisher)> is_there;
  // Where in a file that is wanted in any order this node begins, of 1: best another place for each node, so that those
  // which begin at once soon have parts for each other. Empty: at its begin. Called with the Fetcher's lock held.
  std::function<double()> first;
  // Stored bytes of this blob are damaged, as was found when they were the base of others. Any thread; it does not
  // wait. Empty: the log alone says so.
  std::function<void(const ContentId& id)> damaged;
};

// What may change while bytes move.
struct FetchPolicy {
  std::uint64_t cache_max = UINT64_MAX;  // bytes of disk for fetched bytes
  ColdPolicy cold = ColdPolicy::automatic;
  bool sparse = true;  // chunks may come as differences from versions that are here
};

struct SourceCount {
  std::string name;
  std::uint64_t reads = 0, bytes = 0, failures = 0;
};
struct FetchStatus {
  // What requests asked for that was here already, not what else they were told of, and chunks that were copied from
  // another version. Bytes that were read ahead count where they came from, for the one who asks for them first.
  SourceCount local{"local"};
  std::vector<SourceCount> sources;
  std::uint64_t transfers = 0;  // packs that are being filled
  std::uint64_t waiting = 0;    // units that are asked for
  std::uint64_t manifests = 0;  // brought
  std::string problem;          // the last, "" for none
  CodedCounts coded;            // of all versions
  struct Coded {
    std::string version, base;  // "bert@2" and "bert@1"
    CodedCounts counts;
  };
  std::optional<Coded> last_coded;  // the last version that had a base
};

class Fetcher final : public ColdReads, public LocalBytes {
 public:
  // `sources` from the cheapest on: one that turns out to be much faster than those before it is asked first; `store`
  // outlives this.
  Fetcher(ClusterStore& store, const std::vector<std::shared_ptr<BlobSource>>& sources, const FetchOptions& options);
  ~Fetcher() override;  // takes no longer than `patience`
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  Status look(VersionId version) override;
  Result<std::vector<Run>> bring(const ColdRange& what) override;
  ColdAdvice advice() override;
  void set_policy(const FetchPolicy& policy);
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override;
  Result<std::vector<Digest>> digests(const ContentId& id) override;
  // Puts what was brought of a version into the store's index, durably.
  Status settle(VersionId version);
  // What has come is in the index, and what nobody waits for is held no longer: it may be evicted.
  void let_go();
  FetchStatus status() const;
  // Of disk that fetched bytes take, also those in no index yet; as it was at most a second ago.
  std::uint64_t cache_bytes();

 private:
  using Clock = Transfer::Clock;
  struct Source;
  struct Content {
    VersionRow row;
    Manifest manifest;
    std::vector<FileGroup> groups;  // of the manifest's small files
  };
  struct Task {
    std::shared_ptr<Transfer> transfer;
    std::size_t unit = 0;
    std::size_t end = 0;  // once it runs: of the units from `unit` on that are moved as one; they touch
    bool dear = false;    // once it runs: it is taken from who others take theirs from too
    bool yields = false;  // once it runs: nobody waits for it, others may be first
    bool same = false;    // once it runs: its units are the same in the base
    bool young = false;   // once it runs: what sources lack of it may be there in a moment
    Range range() const;
    std::vector<ChunkRun> runs() const;
  };
  // One thing that the sources are asked for.
  struct Request {
    const Digest& manifest;
    std::span<const ChunkRun> runs;  // none: the manifest itself
    bool yields = false;             // as Task's, and the next
    bool young = false;
    std::string_view subject = {};                       // for the log: the version and the file
    Clock::time_point until = Clock::time_point::max();  // no sign of life is waited for longer
  };
  struct Home {
    std::shared_ptr<Transfer> transfer;
    std::uint64_t offset = 0;  // of the blob in the transfer's pack
    bool same_file = false;    // the pack is laid out as the file that is asked for
  };
  // An extent of a range that is asked for: here, or on its way.
  struct Part {
    Extent extent;
    OpenPlace place;
    Home home;
    std::pair<std::size_t, std::size_t> units;
  };

  using Queue = std::deque<Task>;

  Result<std::shared_ptr<const Content>> content(VersionId version);
  // fetcher_looks.cc: manifests of versions that are known by name alone.
  struct FailedLook {
    Error error;
    std::string publisher;
    bool was_there = false;  // that node
    Clock::time_point until;
  };
  bool is_there(const std::string& publisher) const { return !options_.is_there || options_.is_there(publisher); }
  Result<std::optional<VersionRow>> bare_version(VersionId version);
  std::optional<Error> failed_before(VersionId version);
  void remember(VersionId version, const std::string& publisher, const Error& error, Clock::duration took);
  Status fetch_manifest(const VersionRow& row);
  Result<std::vector<std::byte>> await_manifest(const VersionRow& row);
  Result<std::vector<std::byte>> ask_for_manifest(const VersionRow& row, bool young);
  Result<std::vector<Part>> parts_of(const Content& content, std::uint32_t file, Range range);
  Status find_homes(const Content& content, std::uint32_t file, std::vector<Part>& parts);
  void expect(const Content& content, const std::vector<Extent>& absent);
  Status begin_transfer(const Content& content, std::uint32_t file);
  Status begin_file(const Content& content, std::uint32_t file);
  Result<bool> begin_group(const Content& content, FileGroup group);
  Status add_transfer(const Content& content, std::optional<std::uint32_t> file, FetchPlan plan,
                      std::unique_ptr<FetchPack> pack);
  Result<std::unique_ptr<FetchPack>> pack_for(const File& file, std::span<const OpenPlace> places,
                                              std::span<const Extent> absent);
  bool set_home(Part& part, VersionId version, std::uint32_t file) const;
  static std::pair<std::size_t, std::size_t> units_of(const Part& part, Range range);
  void want(const std::shared_ptr<Transfer>& transfer, std::size_t unit);
  using Units = std::pair<std::size_t, std::size_t>;  // [first, second)
  void want_ahead(const std::shared_ptr<Transfer>& transfer, Units units);
  void want_batch(const std::shared_ptr<Transfer>& transfer, Units units);
  void want_neighbours(const Part& last, const ColdRange& what);
  std::optional<Status> outcome(const std::vector<Part>& parts) const;
  void queue(std::vector<Part>& parts, const ColdRange& what);
  static std::uint64_t bytes_here(const Part& part, Range range);
  void count_here(const std::vector<Part>& parts, Range range);
  Status wait_for(std::vector<Part>& parts, const ColdRange& what);
  std::optional<Task> take_own(const std::vector<Part>& parts);
  Run here_of(const Part& part, Range range) const;
  std::vector<Run> pieces_of(const std::vector<Part>& parts, Range range) const;

  OpenPlace arrived(const ChunkRun& run) const;

  // fetcher_bases.cc
  Result<std::vector<VersionId>> base_candidates(const VersionRow& row);
  bool has_most_of(const BasePairs& pairs);
  std::shared_ptr<VersionBases> bases_for(const Content& content);
  void expect_comparisons(Transfer& transfer) const;
  std::vector<RunBase> places_of(std::span<const std::optional<BasePair>> pairs, std::span<const ChunkRun> runs);
  void lend_bases(const std::shared_ptr<VersionBases>& bases, std::span<const ChunkRun> runs, ReadAid& aid);
  void note_damage(VersionBases& bases, const ContentId& base);
  bool is_sound(const RunBase& base, std::uint64_t chunk);
  void report_damage(const ContentId& id);
  void note_coded(const std::shared_ptr<VersionBases>& bases, const CodedCounts& counts);

  // fetcher_same.cc
  std::optional<Task> take_same();
  void compare(const Task& task);
  void compare(const std::shared_ptr<Transfer>& transfer, std::size_t blob);
  Queue& ahead_of(const Transfer& transfer, std::size_t unit) { return transfer.is_same(unit) ? same_ : ahead_; }
  Result<std::optional<std::vector<Digest>>> copy_same(const Task& task, const std::vector<ChunkRun>& runs);
  std::optional<std::vector<Digest>> read_base(const Task& task, const std::vector<ChunkRun>& runs,
                                               std::span<std::byte> to);
  void leave_same(const Task& task);

  void work();
  void run(Task task);
  std::optional<Task> next();
  std::optional<Task> take_wanted();
  std::optional<Task> take_ahead();
  std::size_t rarest(const std::vector<std::size_t>& ready);
  std::optional<Task> take_dear(const std::vector<std::size_t>& dear);
  Task take(Queue& queue, std::size_t at, Readiness readiness);
  Task take_from_ahead(std::size_t at, Readiness readiness);
  static bool dropped(Queue& queue, std::size_t at);
  bool is_idle() const { return wanted_.empty() && ahead_.empty() && same_.empty(); }
  void drop_past();
  Readiness readiness_of(const std::shared_ptr<Transfer>& transfer, std::size_t unit) const;
  static bool gives_way(const Source& cheaper, Readiness readiness, const Source& other);
  bool goes_on(const Task& task, Readiness readiness) const;
  void look_again();
  Result<std::vector<Digest>> move(const Task& task, const std::vector<ChunkRun>& runs);
  bool is_young(const Transfer& transfer) const;
  bool may_still_come(const Transfer& transfer, const Error& error) const;
  Clock::time_point waited_until(const Task& task) const;
  void ended(Task& task, const Result<std::vector<Digest>>& digests, Clock::time_point begun);
  Status put_in_pack(Transfer& transfer, std::uint64_t offset, std::span<const std::byte> bytes);
  template <class T>
  Result<T> from_any(const Request& request, const std::function<Result<T>(VerifiedSource&, Deadline)>& ask);
  std::vector<Source*> ranked(const Digest& manifest, std::span<const ChunkRun> runs);
  void begin_read(Source& source);
  void end_read(Source& source, std::uint64_t bytes, Clock::duration took);
  void count(Source& source, std::uint64_t bytes, const Error* failure);

  void keep();
  std::shared_ptr<Transfer> due();
  void add_whole(Transfer& transfer, std::unique_lock<std::mutex>& lock);
  void drop_idle();
  void limit_open();

  // fetcher_room.cc: the cache's bound is kept before bytes come.
  Status make_room(std::uint64_t bytes);  // for a unit that runs
  bool is_queued(const std::shared_ptr<Transfer>& transfer) const;
  void let_go_of_idle();
  void hurry_complete();
  struct CacheUse {
    std::uint64_t listed = 0;    // bytes of disk
    std::uint64_t unlisted = 0;  // of packs that are being filled and in no index yet
    std::uint64_t total() const { return listed + unlisted; }
  };
  Result<CacheUse> cache_use();
  Result<std::uint64_t> evict_for(std::uint64_t bytes);
  void stay_within_cache();
  std::uint64_t coming_bytes();

  ClusterStore& store_;
  const FetchOptions options_;
  std::vector<std::unique_ptr<Source>> sources_;
  LruCache<Content> contents_{64U << 20U};
  std::mutex planning_;  // before mutex_: transfers are begun one at a time
  struct Choice {
    VersionId version = 0;
    Clock::time_point until{};
    std::shared_ptr<VersionBases> bases;
  };
  Choice chosen_;           // guarded by planning_: the last
  std::mutex making_room_;  // before mutex_
  mutable std::mutex mutex_;
  std::condition_variable wake_;     // a task, or the end
  std::condition_variable arrived_;  // a unit, or blobs in the index
  std::condition_variable keeper_;
  Queue wanted_, ahead_;  // all below guarded by mutex_
  Queue same_;            // what waits like ahead_, and is the same in the base
  unsigned dear_running_ = 0;
  unsigned same_running_ = 0;
  bool one_looks_ = false;  // some worker
  std::minstd_rand random_{std::random_device{}()};
  std::vector<std::shared_ptr<Transfer>> transfers_;  // their state too
  std::unordered_map<ContentId, Home> homes_;         // blobs that are not in the index yet
  std::map<VersionId, std::shared_future<Status>> looking_;
  std::map<VersionId, FailedLook> failed_looks_;
  FetchPolicy policy_;
  std::uint64_t room_ = 0;          // that the cache surely has
  bool over_ = false;               // it may have more than its bound
  Clock::time_point full_until_{};  // nobody waits for room again so soon
  RateMeter rate_;
  SourceCount local_{"local"};
  CodedCounts coded_;
  std::shared_ptr<VersionBases> last_coded_;
  std::uint64_t manifests_ = 0;
  std::string problem_;
  bool ending_ = false;
  std::mutex looking_at_use_;                // before mutex_
  std::uint64_t cache_bytes_ = 0;            // guarded by looking_at_use_, as is the next
  std::optional<Clock::time_point> use_of_;  // when it was so
  std::vector<std::thread> workers_;
  std::thread keeping_;
};

}  // namespace weft
