#include "diskformat/origin_places.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "diskformat/record.h"
#include "places_generated.h"

namespace weft {
namespace {

Error corrupt(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

std::pair<ContentId, BlobPlace> decode_blob(const records::PlacedBlob& in) {
  ContentId id{in.length(), {}};
  std::copy(in.root()->begin(), in.root()->end(), id.root.bytes.begin());
  return {id, {in.pack(), in.offset()}};
}

Status check_blobs(const Places& places, std::string_view where) {
  const ContentId* before = nullptr;
  for (const auto& [id, place] : places.blobs) {
    if (before != nullptr && !(*before < id)) return corrupt(where, "blobs out of order");
    if (id.length == 0 || id.length > limits::kVersionBytesMax || place.offset > limits::kVersionBytesMax)
      return corrupt(where, fmt::format("a blob of {} bytes at {}", id.length, place.offset));
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
    blobs.emplace_back(id.length, flatbuffers::span<const std::uint8_t, 32>(id.root.bytes), place.pack, place.offset);
  flatbuffers::FlatBufferBuilder builder;
  const auto manifest = builder.CreateVector(places.manifest.bytes.data(), places.manifest.bytes.size());
  const auto list = builder.CreateVectorOfStructs(blobs);
  builder.Finish(records::CreatePlaces(builder, manifest, list));
  return seal_record(RecordKind::places, std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

Result<Places> decode_places(std::span<const std::byte> bytes, const Digest& manifest, std::string_view where) {
  WEFT_TRY(const std::vector<std::byte> payload, open_record(RecordKind::places, bytes, where));
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size());
  if (!records::VerifyPlacesBuffer(verifier)) return corrupt(where, "not a list of places");
  const records::Places* in = records::GetPlaces(payload.data());
  Places places{manifest, {}};
  if (in->manifest() == nullptr || !std::ranges::equal(*in->manifest(), manifest.bytes))
    return corrupt(where, fmt::format("expected the places of manifest {}", to_hex(manifest)));
  if (in->blobs() != nullptr) {
    if (!lies_aligned<records::PlacedBlob>(*in->blobs())) return corrupt(where, "places out of alignment");
    places.blobs.reserve(in->blobs()->size());
    for (const records::PlacedBlob* blob : *in->blobs()) places.blobs.push_back(decode_blob(*blob));
  }
  WEFT_CHECK(check_blobs(places, where));
  return places;
}

}  // namespace weft
