// Swarms that the tests control, a source that reads their units, and versions of several shards.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "away.h"
#include "weft/bytes/source.h"
#include "weft/bytes/swarm.h"

namespace weft::testing {

inline constexpr std::chrono::seconds kLong{30};  // no test waits so long if it passes
// So no swarm is left, and no reader gives it up, however slow the machine is.
inline constexpr std::chrono::seconds kPatience{300};

using Chunk = std::pair<ContentId, std::uint64_t>;
using Chunks = std::set<Chunk>;

inline Chunks chunks_in(std::span<const ChunkRun> runs) {
  Chunks out;
  for (const RunChunk& chunk : chunks_of(runs)) out.insert({runs[chunk.run].id, chunk.chunk});
  return out;
}

// A swarm that offers wanted chunks when the test says so, and again if a unit is dropped. It calls back at once, also
// from within want().
class FakeSwarms final : public VersionSwarms {
 public:
  class Unit final : public OfferedUnit {
   public:
    Unit(FakeSwarms& swarms, const Digest& manifest, std::vector<ChunkRun> runs)
        : swarms_(swarms), manifest_(manifest), runs_(std::move(runs)) {}
    ~Unit() override {
      if (!arrived_) swarms_.dropped(manifest_, runs_);
    }
    const Digest& manifest() const override { return manifest_; }
    std::span<const ChunkRun> runs() const override { return runs_; }
    bool by_name() const override { return swarms_.names; }
    void arrived() override {
      arrived_ = true;
      ++swarms_.arrivals;
      swarms_.tell();
    }
    void refuted() override { ++swarms_.refutations; }

   private:
    FakeSwarms& swarms_;
    const Digest manifest_;
    const std::vector<ChunkRun> runs_;
    bool arrived_ = false;
  };

  ~FakeSwarms() override { gives = false; }

  Status want(const Digest& manifest, std::span<const ChunkRun> runs, bool has_bases) override {
    ++calls;
    coded = has_bases;
    if (refuses) return Error{Errc::busy, "fake: too many versions"};
    std::vector<std::vector<ChunkRun>> units;
    {
      const std::lock_guard lock(mutex_);
      for (const Chunk& chunk : chunks_in(runs))
        if (wanted_.insert(chunk).second) units.push_back({{chunk.first, chunk.second, 1}});
      for (const ChunkRun& run : runs)
        if (asked_.empty() || asked_.back() != run.id) asked_.push_back(run.id);
    }
    changed_.notify_all();
    if (gives)
      for (auto unit = units.rbegin(); unit != units.rend(); ++unit) offer(manifest, *unit);
    return {};
  }
  void leave(const Digest& manifest) override {
    ++calls;
    {
      const std::lock_guard lock(mutex_);
      wanted_.clear();
      left_.push_back(manifest);
    }
    changed_.notify_all();
  }
  void wait_for(const Digest& /*manifest*/, const ChunkRun& run) override { count(run, 1); }
  void stop_waiting(const Digest& /*manifest*/, const ChunkRun& run) override { count(run, -1); }
  std::shared_ptr<OfferedUnit> take() override {
    ++calls;
    const std::lock_guard lock(mutex_);
    if (offers_.empty()) {
      ++rounds_;
      changed_.notify_all();
      return nullptr;
    }
    auto unit = std::move(offers_.front());
    offers_.pop_front();
    return unit;
  }
  bool has_partners(const Digest& /*manifest*/) const override {
    ++calls;
    {
      const std::lock_guard lock(mutex_);
      ++looks_;
    }
    changed_.notify_all();
    return partners;
  }
  void on_change(std::function<void()> call) override {
    const std::lock_guard lock(call_mutex_);
    call_ = std::move(call);
  }

  void offer(const Digest& manifest, std::vector<ChunkRun> runs) {
    {
      const std::lock_guard lock(mutex_);
      offers_.push_back(std::make_shared<Unit>(*this, manifest, std::move(runs)));
    }
    tell();
  }
  // Waits until the condition is true; false after kLong.
  bool wait_until(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, condition);
  }
  // The condition of wait_until() may call these.
  const Chunks& wanted() const { return wanted_; }
  const std::vector<ContentId>& asked() const { return asked_; }  // blobs of want(), in order
  const std::vector<Digest>& left_ones() const { return left_; }
  int left() const { return static_cast<int>(left_.size()); }
  int waiting(const Chunk& chunk) { return readers_[chunk]; }
  int waited() const { return waited_; }
  int looks() const { return looks_; }    // for partners
  int rounds() const { return rounds_; }  // take() had no unit any more: once in each round of the fetcher's thread
  void tell() {
    { const std::lock_guard lock(mutex_); }  // a waiter has seen the last change, or waits
    changed_.notify_all();
    const std::lock_guard lock(call_mutex_);
    if (call_) call_();
  }

  std::atomic<bool> gives = false, refuses = false, names = false, partners = false;
  std::atomic<bool> coded = false;  // of the last want
  std::atomic<int> arrivals = 0, drops = 0, refutations = 0;
  mutable std::atomic<int> calls = 0;  // of want(), leave(), wait_for(), stop_waiting(), take() and has_partners()

 private:
  void count(const ChunkRun& run, int change) {
    ++calls;
    {
      const std::lock_guard lock(mutex_);
      readers_[{run.id, run.first}] += change;
      waited_ += change > 0 ? 1 : 0;
    }
    changed_.notify_all();
  }
  void dropped(const Digest& manifest, const std::vector<ChunkRun>& runs) {
    ++drops;
    bool again = false;
    {
      const std::lock_guard lock(mutex_);
      again = gives && wanted_.contains({runs.front().id, runs.front().first});
    }
    if (again) offer(manifest, runs);
    changed_.notify_all();
  }

  mutable std::mutex mutex_, call_mutex_;
  mutable std::condition_variable changed_;
  Chunks wanted_;  // these are guarded by mutex_
  std::deque<std::shared_ptr<OfferedUnit>> offers_;
  std::map<Chunk, int> readers_;
  std::vector<ContentId> asked_;
  std::vector<Digest> left_;
  int waited_ = 0;
  mutable std::atomic<int> looks_ = 0, rounds_ = 0;  // a test reads them outside of wait_until() too
  std::function<void()> call_;                       // guarded by call_mutex_
};

// A source that counts chunks of offered units and other chunks, and those of offered units with a base.
class OfferSource final : public TwinsReads {
 public:
  using TwinsReads::TwinsReads;
  std::string_view name() const override { return "offers"; }
  bool reads_offers() const override { return true; }
  bool codes() const override { return true; }
  Result<SourceBytes> read(const Digest& manifest, std::span<const ChunkRun> runs, Deadline deadline,
                           ReadAid& aid) override {
    const auto count = static_cast<int>(chunks_of(runs).size());
    (aid.offered ? offered : ordinary) += count;
    if (before_read) before_read();
    if (aid.offered) {
      const Chunks unit = chunks_in(aid.offered->runs());
      const Chunks asked = chunks_in(runs);
      if (!std::ranges::includes(unit, asked)) ++strangers;
      based +=
          static_cast<int>(std::ranges::count_if(aid.bases, [](const RunBase& base) { return !!base.place.pack; }));
    }
    auto got = twin_->read(manifest, runs, deadline, aid);
    if (!got.ok() || !aid.offered) return got;
    got->givers.assign(static_cast<std::size_t>(count), 7);
    if (wrong > 0 && wrong-- > 0) got->memory[0] ^= std::byte{1};
    if (miscoded_next > 0 && !aid.bases.empty() && miscoded_next-- > 0) {
      got->memory[0] ^= std::byte{1};
      got->coded = {0};
    }
    return got;
  }
  void arrived(const Digest& /*manifest*/, std::span<const ChunkRun> runs) override {
    announced += static_cast<int>(chunks_of(runs).size());
  }
  bool refuted(std::uint32_t /*giver*/) override { return true; }
  void miscoded(std::uint32_t /*giver*/) override { ++miscodings; }
  std::atomic<int> offered = 0, ordinary = 0, strangers = 0, announced = 0, wrong = 0;
  // The next chunks of offered units that come as wrong differences, and those that were the sender's fault.
  std::atomic<int> miscoded_next = 0, miscodings = 0;
  std::atomic<int> based = 0;
  std::function<void()> before_read;  // set before the first read; may be empty
};

// A version of `count` shards, and another file of 2 MiB.
struct Shards {
  static constexpr std::size_t kEach = 18;  // chunks of a shard
  CachingStore store;
  std::shared_ptr<TwinSource> twin = std::make_shared<TwinSource>();
  Manifest manifest;
  VersionId version = 0;

  explicit Shards(std::size_t count, std::size_t chunks = kEach) {
    for (std::size_t i = 0; i < count; ++i) {
      add(fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, count), chunks * kDigestChunk);
      File& file = manifest.files.back();
      Tensor tensor;
      tensor.name = "weight";
      tensor.shape = {file.size};
      tensor.extent = 0;
      file.format = "safetensors";
      file.tensors.push_back(tensor);
    }
    add("other.bin", 2 * kDigestChunk);
    const auto encoded = encode_manifest(manifest);
    REQUIRE_MESSAGE(encoded.ok(), (encoded.ok() ? "" : encoded.error().message));
    twin->put_manifest(sha256(*encoded), *encoded);
    version = store.add_version(sha256(*encoded));
  }
  void add(std::string path, std::size_t bytes) {
    auto blob = random_bytes(bytes, manifest.files.size() + 1);
    File file;
    file.path = std::move(path);
    file.size = blob.size();
    file.extents.push_back({0, {blob.size(), tree_sha256(blob)}});
    store.add_absent(file.extents.front().id);
    twin->put(file.extents.front().id, std::move(blob));
    manifest.files.push_back(std::move(file));
  }
  ContentId blob(std::size_t file) const { return manifest.files[file].extents.front().id; }
};

}  // namespace weft::testing
