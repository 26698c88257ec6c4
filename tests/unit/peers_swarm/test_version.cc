#include "unit/peers_swarm/test_version.h"

#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "testing.h"

namespace weft::testing {

ContentId blob_named(std::uint64_t name, std::uint64_t length) {
  ContentId id;
  id.length = length;
  std::memcpy(id.root.bytes.data(), &name, sizeof name);
  return id;
}

Manifest manifest_of(std::span<const ContentId> blobs) {
  File file;
  file.path = "weights";
  for (const ContentId& id : blobs) {
    file.extents.push_back({file.size, id});
    file.size += id.length;
  }
  Manifest manifest;
  manifest.files.push_back(std::move(file));
  return manifest;
}

TestVersion::TestVersion(std::uint32_t units, std::size_t unit_bytes)
    : bytes_(random_bytes(units * unit_bytes, units)), unit_bytes_(unit_bytes) {
  const PackId pack = store_.add_pack(as_text(bytes_));
  for (std::uint32_t unit = 0; unit < units; ++unit)
    blobs_.push_back(store_.add_blob(unit + 1, pack, unit * unit_bytes, unit_bytes));
  const Manifest manifest = manifest_of(blobs_);
  const std::vector<std::byte> encoded = must(encode_manifest(manifest));
  store_.add_manifest(encoded);
  manifest_ = sha256(encoded);
  units_ = std::make_shared<const VersionUnits>(manifest);
}

std::vector<ChunkRun> TestVersion::runs() const {
  std::vector<ChunkRun> runs;
  for (const ContentId& id : blobs_) runs.push_back({id, 0, 1});
  return runs;
}

std::optional<std::uint32_t> TestVersion::unit_of(const ContentId& id) const {
  for (std::uint32_t unit = 0; unit < blobs_.size(); ++unit)
    if (blobs_[unit] == id) return unit;
  return std::nullopt;
}

std::span<const std::byte> TestVersion::bytes(std::uint32_t unit) const {
  return std::span(bytes_).subspan(unit * unit_bytes_, unit_bytes_);
}

OpenPlace TestVersion::place(std::uint32_t unit) {
  return must(store_.open_blob(blobs_.at(unit)));
}

Result<std::shared_ptr<const VersionUnits>> TestVersion::find(const Digest& manifest) const {
  if (manifest != manifest_) return Error{Errc::not_found, "no such version"};
  return units_;
}

void UnitBytes::add(std::uint32_t unit) {
  const std::lock_guard lock(mutex_);
  units_.insert(unit);
}

void UnitBytes::add_all() {
  for (std::uint32_t unit = 0; unit < version_.units()->count(); ++unit) add(unit);
}

void UnitBytes::remove(std::uint32_t unit) {
  const std::lock_guard lock(mutex_);
  units_.erase(unit);
}

std::size_t UnitBytes::count() const {
  const std::lock_guard lock(mutex_);
  return units_.size();
}

Result<std::vector<OpenPlace>> UnitBytes::here(std::span<const ChunkRun> runs) {
  const std::lock_guard lock(mutex_);
  std::vector<OpenPlace> places;
  for (const ChunkRun& run : runs) {
    const auto unit = version_.unit_of(run.id);
    places.push_back(unit && units_.contains(*unit) ? version_.place(*unit) : OpenPlace{});
  }
  return places;
}

Result<std::vector<Digest>> UnitBytes::digests(const ContentId& /*id*/) {
  return Error{Errc::not_found, "no digests"};
}

TestAnswer::TestAnswer(PeerReply reply) : reply_(std::move(reply)) {
  if (reply_.windows.empty() && reply_.ended) std::exchange(reply_.ended, nullptr)(0);
}

TestAnswer::~TestAnswer() {
  if (reply_.ended) reply_.ended(read_);
}

Result<WindowRead> TestAnswer::read(std::size_t /*window*/, std::uint64_t /*offset*/,
                                    std::shared_ptr<Landing> /*landing*/, std::size_t /*at*/, std::size_t /*length*/) {
  return Error{Errc::unsupported, "read_all() reads this answer"};
}

Status TestAnswer::wait(PendingRead& /*read*/, std::chrono::milliseconds /*patience*/, const OnSign& /*on_sign*/) {
  return Error{Errc::unsupported, "read_all() reads this answer"};
}

std::vector<std::byte> TestAnswer::read_all(std::span<const std::byte> head) {
  std::vector<std::byte> out(head.begin(), head.end());
  read_ = 0;
  for (const auto& window : reply_.windows) {
    out.insert(out.end(), window->bytes().begin(), window->bytes().end());
    read_ += window->bytes().size();
  }
  return out;
}

}  // namespace weft::testing
