// A version with real bytes, and answers and replies without a network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "blobs/local_bytes.h"
#include "fakes/blob_store.h"
#include "peers/swarm/version_units.h"
#include "swarm/unit_set.h"
#include "weft/cluster/exchange.h"
#include "weft/model/manifest.h"

namespace weft::testing {

ContentId blob_named(std::uint64_t name, std::uint64_t length);
// A manifest of one file with these blobs.
Manifest manifest_of(std::span<const ContentId> blobs);

// A version of blobs with one chunk each: blob i is unit i.
class TestVersion {
 public:
  static constexpr std::size_t kUnitBytes = 10'000;  // too long for the head of an answer

  explicit TestVersion(std::uint32_t units, std::size_t unit_bytes = kUnitBytes);

  const Digest& manifest() const { return manifest_; }
  const std::shared_ptr<const VersionUnits>& units() const { return units_; }
  ChunkRun run(std::uint32_t unit) const { return {blobs_.at(unit), 0, 1}; }
  std::vector<ChunkRun> runs() const;
  std::optional<std::uint32_t> unit_of(const ContentId& id) const;
  std::span<const std::byte> bytes(std::uint32_t unit) const;
  OpenPlace place(std::uint32_t unit);
  BlobStore& store() { return store_; }  // has the manifest
  // As LocalVersionUnits::find. Errc::not_found for another manifest.
  Result<std::shared_ptr<const VersionUnits>> find(const Digest& manifest) const;

 private:
  const std::vector<std::byte> bytes_;
  const std::size_t unit_bytes_;
  BlobStore store_;
  std::vector<ContentId> blobs_;
  Digest manifest_;
  std::shared_ptr<const VersionUnits> units_;
};

// The units that a node has. Any thread.
class UnitBytes final : public LocalBytes {
 public:
  explicit UnitBytes(TestVersion& version) : version_(version) {}
  void add(std::uint32_t unit);
  void add_all();
  void remove(std::uint32_t unit);
  std::size_t count() const;
  Result<std::vector<OpenPlace>> here(std::span<const ChunkRun> runs) override;
  Result<std::vector<Digest>> digests(const ContentId& id) override;

 private:
  TestVersion& version_;
  mutable std::mutex mutex_;
  std::set<std::uint32_t> units_;
};

// Keeps the reply that it gets.
class KeptReply final : public ReplyTaker {
 public:
  void give(Result<PeerReply> given) override { reply.emplace(std::move(given)); }
  bool wanted() const override { return is_wanted && !reply; }

  std::optional<Result<PeerReply>> reply;
  bool is_wanted = true;
};

// The answer to a call whose server gave this reply. When the answer is dropped, the server hears how many bytes were
// read.
class TestAnswer final : public Answer {
 public:
  explicit TestAnswer(PeerReply reply);
  ~TestAnswer() override;
  std::span<const std::byte> head() const override { return reply_.head; }
  std::size_t windows() const override { return reply_.windows.size(); }
  std::uint64_t length(std::size_t window) const override { return reply_.windows.at(window)->bytes().size(); }
  Deadline open_until() const override { return Deadline::max(); }
  Result<WindowRead> read(std::size_t window, std::uint64_t offset, std::shared_ptr<Landing> landing, std::size_t at,
                          std::size_t length) override;
  Status wait(PendingRead& read, std::chrono::milliseconds patience, const OnSign& on_sign) override;
  Deadline keep_open() override { return {}; }
  // Reads all windows. Returns `head` and their bytes.
  std::vector<std::byte> read_all(std::span<const std::byte> head);

 private:
  PeerReply reply_;
  std::uint64_t read_ = 0;
};

}  // namespace weft::testing
