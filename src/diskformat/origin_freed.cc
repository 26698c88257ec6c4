#include "diskformat/origin_freed.h"

#include <algorithm>
#include <bit>
#include <functional>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "diskformat/flatbuffer_codec.h"
#include "diskformat/record.h"

namespace weft {
namespace {

Error corrupt_freed(std::string_view where, std::string_view what) {
  return Error{Errc::corrupt, fmt::format("{}: {}", where, what)};
}

Status check_freed(const FreedFiles& freed, std::string_view where) {
  if (std::ranges::adjacent_find(freed.packs, std::greater_equal()) != freed.packs.end())
    return corrupt_freed(where, "packs out of order");
  const PackId* last = nullptr;
  for (const auto& [pack, time_ns] : freed.rewritten) {
    if ((last != nullptr && *last >= pack) || !freed.has_pack(pack))
      return corrupt_freed(where, "rewritten packs out of order");
    last = &pack;
  }
  const Digest* before = nullptr;
  for (const auto& [digest, names] : freed.manifests) {
    if (before != nullptr && !(*before < digest)) return corrupt_freed(where, "manifests out of order");
    if (names == 0 || names > limits::kFreedNamesMax)
      return corrupt_freed(where, fmt::format("{} names of a manifest", names));
    before = &digest;
  }
  return {};
}

}  // namespace

bool FreedFiles::has_pack(PackId pack) const {
  return std::ranges::binary_search(packs, pack);
}

std::uint64_t FreedFiles::names_of(const Digest& manifest) const {
  const auto at = std::ranges::lower_bound(manifests, manifest, {}, &std::pair<Digest, std::uint64_t>::first);
  return at == manifests.end() || at->first != manifest ? 0 : at->second;
}

std::vector<std::byte> encode_freed(const FreedFiles& freed) {
  std::vector<records::FreedManifest> manifests;
  manifests.reserve(freed.manifests.size());
  for (const auto& [digest, names] : freed.manifests)
    manifests.emplace_back(std::bit_cast<records::Digest>(digest), names);
  std::vector<records::RewrittenPack> rewritten;
  rewritten.reserve(freed.rewritten.size());
  for (const auto& [pack, time_ns] : freed.rewritten) rewritten.emplace_back(pack, time_ns);
  flat::Builder builder;
  const auto packs = builder.CreateVector(freed.packs);
  const auto list = builder.CreateVectorOfStructs(manifests);
  const auto times = builder.CreateVectorOfStructs(rewritten);
  return seal_record(RecordKind::freed,
                     flat::finish(builder, records::CreateFreed(builder, freed.sequence, packs, list, times)));
}

Result<FreedFiles> decode_freed(std::span<const std::byte> bytes, std::uint64_t sequence, std::string_view where) {
  WEFT_TRY(const std::vector<std::byte> payload, open_record(RecordKind::freed, bytes, where));
  const auto* in = flat::root<records::Freed>(payload);
  if (in == nullptr) return corrupt_freed(where, "not a list of freed files");
  if (in->sequence() != sequence)
    return corrupt_freed(where, fmt::format("expected list {}, got {}", sequence, in->sequence()));
  FreedFiles freed;
  freed.sequence = sequence;
  if (in->packs() != nullptr) freed.packs.assign(in->packs()->begin(), in->packs()->end());
  if (in->manifests() != nullptr) {
    if (!lies_aligned<records::FreedManifest>(*in->manifests())) return corrupt_freed(where, "out of alignment");
    freed.manifests.reserve(in->manifests()->size());
    for (const records::FreedManifest* one : *in->manifests())
      freed.manifests.emplace_back(std::bit_cast<Digest>(one->digest()), one->names());
  }
  if (in->rewritten() != nullptr) {
    if (!lies_aligned<records::RewrittenPack>(*in->rewritten())) return corrupt_freed(where, "out of alignment");
    freed.rewritten.reserve(in->rewritten()->size());
    for (const records::RewrittenPack* one : *in->rewritten())
      freed.rewritten.emplace_back(one->pack(), one->time_ns());
  }
  WEFT_CHECK(check_freed(freed, where));
  return freed;
}

}  // namespace weft
