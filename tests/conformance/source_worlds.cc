#include "source_worlds.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>

#include "base/sha256.h"
#include "diskformat/hash.h"
#include "diskformat/pack_names.h"
#include "diskformat/toc.h"
#include "hanging_file.h"
#include "origin/dir.h"
#include "os/sys.h"
#include "source_twin_world.h"
#include "store_paths.h"
#include "testing.h"
#include "weft/cluster/origin.h"

namespace weft::conformance {
namespace {

class OriginWorld final : public SourceWorld {
 public:
  ~OriginWorld() override { let_go(); }
  std::string name() const override { return "origin"; }
  std::shared_ptr<BlobSource> source() override { return origin_source(path_); }

  // Puts each large blob into a pack of its own, and all small blobs into one pack.
  void put(std::vector<std::byte> manifest, const std::vector<Blob>& blobs) override {
    const auto dir = OriginDir::open(path_, "cluster");
    REQUIRE(dir.ok());
    Places places{sha256(manifest), {}};
    PackToc small{next_pack_++, 0, {}};
    std::vector<std::byte> bytes;
    for (const Blob& blob : blobs) {
      PackToc own{next_pack_++, blob.bytes.size(), {}};
      const bool large = blob.bytes.size() > kDigestChunk;
      PackToc& toc = large ? own : small;
      const std::uint64_t offset = large ? 0 : bytes.size();
      PackEntry entry{blob.id, offset, std::vector<Digest>(chunk_count(blob.bytes.size())), 0};
      sha256_chunks(blob.bytes, entry.chunks);
      toc.entries.push_back(std::move(entry));
      places.blobs.emplace_back(blob.id, BlobPlace{toc.pack, offset});
      pack_of_[blob.id] = toc.pack;
      if (large)
        put_pack(*dir, own, blob.bytes);
      else
        bytes.insert(bytes.end(), blob.bytes.begin(), blob.bytes.end());
    }
    small.size = bytes.size();
    put_pack(*dir, small, bytes);
    std::sort(places.blobs.begin(), places.blobs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    REQUIRE(dir->put_manifest(places.manifest, manifest).ok());
    REQUIRE(dir->put_places(places).ok());
  }

  void spoil_manifest(const Digest& manifest) override {
    testing::write_file(path_ + "/manifests/" + to_hex(manifest), "other bytes");
  }

  bool damage(const Blob& blob, Damage what) override {
    const PackId pack = pack_of_.at(blob.id);
    const std::string file = pack_path(path_, pack);
    if (what == Damage::oversized) return false;  // a read of a file cannot return too much
    if (what == Damage::lost) REQUIRE(remove_file(file).ok());
    if (what == Damage::short_bytes) std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    if (what == Damage::wrong_byte || what == Damage::forged_digests) flip_last(blob, file);
    if (what == Damage::forged_digests) {
      auto toc = read_toc_of(path_, pack);
      REQUIRE(toc.ok());
      for (PackEntry& entry : toc->entries)
        if (entry.id == blob.id) entry.chunks.back().bytes[0] ^= 1;
      REQUIRE(replace_toc(toc_path(path_, pack), *toc).ok());
    }
    return true;
  }

  void hang(const Blob& blob) override {
    hangs_.push_back(std::make_unique<testing::HangingFile>(pack_path(path_, pack_of_.at(blob.id))));
  }
  void let_go() override { hangs_.clear(); }
  void vanish() override { std::filesystem::rename(path_, path_ + ".gone"); }

 private:
  void put_pack(const OriginDir& dir, const PackToc& toc, std::span<const std::byte> bytes) {
    const std::string file = temp_ / "pack";
    testing::write_file(file, testing::as_text(bytes));
    const auto fd = open_file(file, O_RDONLY);
    REQUIRE(fd.ok());
    const Status put = dir.put_pack(toc, fd->get(), no_progress());
    REQUIRE_MESSAGE(put.ok(), (put.ok() ? "" : put.error().message));
  }

  void flip_last(const Blob& blob, const std::string& file) const {
    const auto toc = read_toc_of(path_, pack_of_.at(blob.id));
    REQUIRE(toc.ok());
    for (const PackEntry& entry : toc->entries) {
      if (entry.id != blob.id) continue;
      const auto fd = open_file(file, O_RDWR);
      REQUIRE(fd.ok());
      std::byte last = blob.bytes.back() ^ std::byte{1};
      REQUIRE(write_exact(fd->get(), entry.offset + blob.bytes.size() - 1, std::span(&last, 1), file).ok());
    }
  }

  static std::string made(const std::string& path) {
    REQUIRE(make_directories(path).ok());
    return path;
  }

  testing::TempDir temp_;
  const std::string path_ = made(temp_ / "origin");
  PackId next_pack_ = 0x1000;
  std::map<ContentId, PackId> pack_of_;
  std::vector<std::unique_ptr<testing::HangingFile>> hangs_;
};

}  // namespace

Blob make_blob(std::size_t size, std::uint64_t seed) {
  Blob blob{{}, testing::random_bytes(size, seed)};
  blob.id = {size, tree_sha256(blob.bytes)};
  return blob;
}

std::vector<std::unique_ptr<SourceWorld>> source_worlds() {
  std::vector<std::unique_ptr<SourceWorld>> worlds;
  worlds.push_back(std::make_unique<TwinWorld>());
  worlds.push_back(std::make_unique<OriginWorld>());
#ifdef WEFT_NET
  worlds.push_back(peer_world());
#endif
  return worlds;
}

}  // namespace weft::conformance
