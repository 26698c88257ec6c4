// An index in memory: a state behind a mutex. Transactions work on copies. Any thread; one writer at a time. The thread
// that holds the writer lock may lock it again.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "packs/blob_index.h"
#include "packs/packs.h"

namespace weft::testing {

class MemoryIndex final : public IndexAccess {
 public:
  struct State {
    std::map<ContentId, BlobPlace> places;
    std::map<Digest, BlobPlace> manifests;                               // manifests in packs, needed by a version
    std::map<std::pair<std::uint64_t, std::uint64_t>, ContentId> hints;  // by length and hint
    std::map<std::string, std::set<ContentId>> holders;                  // by holder, such as a version
    std::vector<VersionId> unreaped;
    std::multiset<PackId> lost;  // packs of lost rows, which still count

    bool is_held(const ContentId& id) const {
      for (const auto& [who, ids] : holders)
        if (ids.contains(id)) return true;
      return false;
    }
  };

  Result<std::unique_ptr<BlobIndex>> read() override {
    return std::unique_ptr<BlobIndex>(
        std::make_unique<Transaction>(*this, current(), std::unique_lock<std::recursive_mutex>()));
  }
  Result<std::unique_ptr<BlobWriter>> write() override {
    std::unique_lock writing(writer_);
    return std::unique_ptr<BlobWriter>(std::make_unique<Transaction>(*this, current(), std::move(writing)));
  }

  std::unique_lock<std::recursive_mutex> lock_writer() { return std::unique_lock(writer_); }

  // Publishes: adds new blobs that are not there yet, or that replace damaged ones, and holds all of `needed`.
  void publish(std::span<const NewBlob> fresh, std::span<const ContentId> needed) { publish_for("", fresh, needed); }
  void publish_for(const std::string& who, std::span<const NewBlob> fresh, std::span<const ContentId> needed) {
    change([&](State& state) {
      for (const NewBlob& blob : fresh) {
        const bool made = state.places.emplace(blob.id, blob.place).second;
        if (!made && blob.replaces) state.places[blob.id] = blob.place;
        if (blob.hint != 0) state.hints[{blob.id.length, blob.hint}] = blob.id;
      }
      state.holders[who].insert(needed.begin(), needed.end());
    });
  }
  void release(std::span<const ContentId> ids) {
    change([&](State& state) {
      for (const ContentId& id : ids) state.holders[""].erase(id);
    });
  }
  void release_for(const std::string& who) {
    change([&](State& state) { state.holders.erase(who); });
  }
  void put(const ContentId& id, const BlobPlace& place) {
    change([&](State& state) { state.places[id] = place; });
  }
  void forget(const ContentId& id) {
    change([&](State& state) { state.places.erase(id); });
  }
  // Loses a row as damage does: the row count of its pack stays.
  void lose(const ContentId& id) {
    change([&](State& state) {
      state.lost.insert(state.places.at(id).pack);
      state.places.erase(id);
    });
  }
  void set_unreaped(std::vector<VersionId> versions) {
    change([&](State& state) { state.unreaped = std::move(versions); });
  }
  void hint(std::uint64_t length, std::uint64_t hint, const ContentId& id) {
    change([&](State& state) { state.hints[{length, hint}] = id; });
  }
  State state() const { return *current(); }

 private:
  class Transaction final : public BlobWriter {
   public:
    Transaction(MemoryIndex& index, std::shared_ptr<const State> base, std::unique_lock<std::recursive_mutex> writing)
        : index_(index), base_(std::move(base)), writing_(std::move(writing)) {}
    Result<std::optional<BlobPlace>> find(const ContentId& id) override {
      auto it = now().places.find(id);
      if (it == now().places.end()) return std::optional<BlobPlace>{};
      return std::optional(it->second);
    }
    Result<std::optional<ContentId>> hinted(std::uint64_t length, std::uint64_t hint) override {
      auto it = now().hints.find({length, hint});
      return it == now().hints.end() ? std::nullopt : std::optional(it->second);
    }
    Result<bool> is_held(const ContentId& id) override { return now().is_held(id); }
    Result<bool> is_absent(const ContentId&) override { return false; }
    Result<std::optional<BlobPlace>> find_manifest(const Digest& digest) override {
      const auto it = now().manifests.find(digest);
      return it == now().manifests.end() ? std::nullopt : std::optional(it->second);
    }
    Status put_manifest(const Digest& digest, const BlobPlace& place, std::uint64_t) override {
      mine().manifests[digest] = place;
      return {};
    }
    Result<std::uint64_t> in_pack(PackId pack) override {
      const auto there = [pack](const auto& blob) { return blob.second.pack == pack; };
      return static_cast<std::uint64_t>(std::ranges::count_if(now().places, there) +
                                        std::ranges::count_if(now().manifests, there)) +
             now().lost.count(pack);
    }
    Result<std::vector<VersionId>> unreaped() override { return now().unreaped; }
    Result<std::vector<NotedPack>> queued(PackId, std::size_t) override { return std::vector<NotedPack>(); }
    Result<std::vector<NotedPack>> left_dead(PackId, std::size_t) override { return std::vector<NotedPack>(); }
    Status note(const PackVerdict&) override { return {}; }
    Status note_cached(PackId, bool) override { return {}; }
    Status put(const ContentId& id, const BlobPlace& place) override {
      mine().places[id] = place;
      return {};
    }
    Status erase(const ContentId& id, std::uint64_t) override {
      if (now().is_held(id)) return Error{Errc::internal, "erase of a blob that is held"};
      mine().places.erase(id);
      return {};
    }
    Status commit() override {
      if (own_) index_.set_current(std::move(own_));
      writing_ = {};
      return {};
    }

   private:
    const State& now() const { return own_ ? *own_ : *base_; }
    State& mine() {
      if (!own_) own_ = std::make_shared<State>(*base_);
      return *own_;
    }
    MemoryIndex& index_;
    std::shared_ptr<const State> base_;
    std::shared_ptr<State> own_;
    std::unique_lock<std::recursive_mutex> writing_;
  };

  template <class Change>
  void change(Change apply) {
    std::lock_guard writing(writer_);
    auto next = std::make_shared<State>(*current());
    apply(*next);
    set_current(std::move(next));
  }
  std::shared_ptr<const State> current() const {
    std::lock_guard lock(mutex_);
    return state_;
  }
  void set_current(std::shared_ptr<const State> next) {
    std::lock_guard lock(mutex_);
    state_ = std::move(next);
  }

  std::recursive_mutex writer_;  // locked before mutex_
  mutable std::mutex mutex_;
  std::shared_ptr<const State> state_ = std::make_shared<State>();  // guarded by mutex_
};

}  // namespace weft::testing
