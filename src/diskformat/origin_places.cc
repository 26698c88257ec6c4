#include "diskformat/origin_places.h"

#include <algorithm>
#include <bit>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"

namespace weft {
namespace {

Error corrupt_places(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

Status check_blobs(const Places& places, std::string_view where) {
  const ContentId* before = nullptr;
  for (const auto& [id, place] : places.blobs) {
    if (before != nullptr && !(*before < id)) return corrupt_places(where, "blobs out of order");
    if (id.length == 0 || id.length > limits::kVersionBytesMax || place.offset > limits::kVersionBytesMax)
      return corrupt_places(where, fmt::format("a blob of {} bytes at {}", id.length, place.offset));
    before = &id;
  }
  return {};
}

}  // namespace

std::optional<BlobPlace> Places::find(const ContentId& id) const {
  const auto at = std::lower_bound(blobs.begin(), blobs.end(), id,
                                   [](const auto& blob, const ContentId& wanted) { return blob.first < wanted; });
  if (at == blobs.end() || at->first != id) return {};
  return at->second;
}

std::vector<std::byte> encode_places(const Places& places) {
  std::vector<records::PlacedBlob> blobs;
  blobs.reserve(places.blobs.size());
  for (const auto& [id, place] : places.blobs)
    blobs.emplace_back(std::bit_cast<records::ContentId>(id), place.pack, place.offset);
  flat::Builder builder;
  const auto manifest = builder.CreateVector(places.manifest.bytes.data(), places.manifest.bytes.size());
  const auto list = builder.CreateVectorOfStructs(blobs);
  return seal_record(RecordKind::places, flat::finish(builder, records::CreatePlaces(builder, manifest, list)));
}

Result<Places> decode_places(std::span<const std::byte> bytes, const Digest& manifest, std::string_view where) {
  WEFT_TRY(const std::vector<std::byte> payload, open_record(RecordKind::places, bytes, where));
  const auto* in = flat::root<records::Places>(payload);
  if (in == nullptr) return corrupt_places(where, "not a list of places");
  Places places{manifest, {}};
  if (in->manifest() == nullptr || !std::ranges::equal(*in->manifest(), manifest.bytes))
    return corrupt_places(where, fmt::format("expected the places of manifest {}", to_hex(manifest)));
  if (in->blobs() != nullptr) {
    if (!lies_aligned<records::PlacedBlob>(*in->blobs())) return corrupt_places(where, "places out of alignment");
    places.blobs.reserve(in->blobs()->size());
    for (const records::PlacedBlob* blob : *in->blobs())
      places.blobs.push_back({std::bit_cast<ContentId>(blob->id()), {blob->pack(), blob->offset()}});
  }
  WEFT_CHECK(check_blobs(places, where));
  return places;
}

}  // namespace weft
