// A world with a source in memory, and one with a peer that serves such a source.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "fakes/twin_source.h"
#include "source_worlds.h"
#include "testing.h"

namespace weft::conformance {

class TwinWorld : public SourceWorld {
 public:
  std::string name() const override { return "twin"; }
  std::shared_ptr<BlobSource> source() override { return twin_; }
  void put(std::vector<std::byte> manifest, const std::vector<Blob>& blobs) override {
    twin_->put_manifest(sha256(manifest), manifest);
    for (const Blob& blob : blobs) twin_->put(blob.id, blob.bytes);
  }
  void spoil_manifest(const Digest& manifest) override { twin_->put_manifest(manifest, testing::random_bytes(64, 5)); }
  bool damage(const Blob& blob, Damage what) override {
    if (what == Damage::lost) twin_->lose(blob.id);
    if (what == Damage::oversized) twin_->add_to_answers(1);
    if (what == Damage::wrong_byte) twin_->change(blob.id, [](auto& stored) { stored.bytes.back() ^= std::byte{1}; });
    if (what == Damage::short_bytes) twin_->change(blob.id, [](auto& stored) { stored.bytes.pop_back(); });
    if (what == Damage::forged_digests)
      twin_->change(blob.id, [](auto& stored) {
        stored.bytes.back() ^= std::byte{1};
        sha256_chunks(stored.bytes, stored.chunks);
      });
    return true;
  }
  void hang(const Blob& blob) override {
    twin_->change(blob.id, [](auto& stored) { stored.hangs = true; });
  }
  void let_go() override { twin_->let_go(); }
  void vanish() override { twin_->vanish(); }

 protected:
  std::shared_ptr<testing::TwinSource> twin_ = std::make_shared<testing::TwinSource>();
};

std::unique_ptr<SourceWorld> peer_world();

}  // namespace weft::conformance
