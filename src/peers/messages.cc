#include "peers/messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/alignment.h"
#include "base/limits.h"
#include "base/text.h"
#include "peers/message_tables.h"
#include "weft/names.h"

namespace weft {
namespace {

namespace wire = peer_wire;
using peer_tables::Builder;
using peer_tables::bytes_of;
using peer_tables::packed;
using peer_tables::refused;
using peer_tables::traffic_of;
using peer_tables::unpacked;
using peer_tables::Verified;

wire::Run packed(const ChunkRun& run) {
  return wire::Run(run.id.length, flatbuffers::span<const std::uint8_t, 32>(run.id.root.bytes), run.first, run.count);
}

wire::Base packed(const AskedBase& base) {
  return wire::Base(flatbuffers::span<const std::uint8_t, 32>(base.root.bytes), base.width);
}

Result<ChunkRun> unpacked(const wire::Run& run) {
  const ChunkRun out{{run.length(), unpacked(*run.root())}, run.first(), run.count()};
  const std::uint64_t chunks = chunk_count(out.id.length);
  if (out.id.length == 0 || out.id.length > limits::kVersionBytesMax) return refused("a blob of no length");
  if (out.count == 0 || out.first >= chunks || out.count > chunks - out.first)
    return refused(fmt::format("expected chunks of {}, got {} from {} on", chunks, out.count, out.first));
  return out;
}

struct Packer {
  Builder& builder;
  flatbuffers::Offset<wire::Request> operator()(const AskManifest& ask) const {
    const auto digest = packed(ask.digest);
    return finish(wire::What::Manifest, wire::CreateManifest(builder, &digest, ask.offset));
  }
  flatbuffers::Offset<wire::Request> operator()(const AskChunks& ask) const {
    const auto run = packed(ask.run);
    return finish(wire::What::Chunks, wire::CreateChunks(builder, &run));
  }
  flatbuffers::Offset<wire::Request> operator()(const AskBytes& ask) const {
    std::vector<wire::Run> runs;
    for (const ChunkRun& run : ask.runs) runs.push_back(packed(run));
    std::vector<wire::Base> bases;
    for (const AskedBase& base : ask.bases) bases.push_back(packed(base));
    const auto placed = builder.CreateVectorOfStructs(runs);
    const auto placed_bases = bases.empty() ? 0 : builder.CreateVectorOfStructs(bases);
    const auto subject = ask.subject.empty() ? 0 : builder.CreateString(ask.subject.substr(0, kSubjectBytesMax));
    return finish(wire::What::Read,
                  wire::CreateRead(builder, placed, static_cast<std::uint8_t>(ask.traffic), placed_bases,
                                   static_cast<std::uint8_t>(ask.effort), ask.must_code, ask.skip, subject));
  }
  flatbuffers::Offset<wire::Request> operator()(const Announce& announce) const {
    const auto digest = packed(announce.manifest);
    return finish(wire::What::Announce, wire::CreateAnnounce(builder, &digest, announce.whole));
  }
  flatbuffers::Offset<wire::Request> operator()(const AskHolders& ask) const {
    const auto digest = packed(ask.manifest);
    return finish(wire::What::WhoHas, wire::CreateWhoHas(builder, &digest));
  }
  flatbuffers::Offset<wire::Request> operator()(const Join& join) const {
    return finish(wire::What::Join, packed(builder, join));
  }
  flatbuffers::Offset<wire::Request> operator()(const Want& want) const {
    return finish(wire::What::Want, packed(builder, want));
  }
  flatbuffers::Offset<wire::Request> operator()(const PulledAsk& ask) const {
    const auto note = packed(ask.note);
    const auto key = builder.CreateString(ask.key);
    const auto path = builder.CreateString(ask.path);
    return finish(wire::What::Pulled, wire::CreatePulled(builder, key, path, &note, ask.size, ask.offset, ask.length));
  }
  flatbuffers::Offset<wire::Request> operator()(const KeyOrder& order) const {
    const auto name = builder.CreateString(order.name);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(order.key.data());
    const auto key = order.key.empty() ? 0 : builder.CreateVector(bytes, order.key.size());
    return finish(wire::What::KeyOrder,
                  wire::CreateKeyOrder(builder, static_cast<std::uint8_t>(order.step), name, key));
  }
  flatbuffers::Offset<wire::Request> operator()(const AskHealth& ask) const {
    std::vector<wire::Digest> manifests;
    for (const Digest& manifest : ask.manifests) manifests.push_back(packed(manifest));
    const auto placed = manifests.empty() ? 0 : builder.CreateVectorOfStructs(manifests);
    return finish(wire::What::Health, wire::CreateHealth(builder, placed));
  }
  flatbuffers::Offset<wire::Request> operator()(const KeepVersion& keep) const {
    const auto model = builder.CreateString(keep.model);
    return finish(wire::What::Keep, wire::CreateKeep(builder, model, keep.number));
  }

 private:
  template <class Table>
  flatbuffers::Offset<wire::Request> finish(wire::What kind, flatbuffers::Offset<Table> table) const {
    return wire::CreateRequest(builder, kind, table.Union());
  }
};

// Decodes the bases of a request into `ask`, whose runs are decoded already.
Status unpack_bases(const wire::Read& read, AskBytes& ask) {
  const std::size_t count = read.bases() == nullptr ? 0 : read.bases()->size();
  if (read.effort() > static_cast<std::uint8_t>(CodingEffort::dense)) return refused("an unknown effort");
  ask.effort = static_cast<CodingEffort>(read.effort());
  ask.must_code = read.must_code();
  if (count == 0 && (ask.effort != CodingEffort::none || ask.must_code)) return refused("coded chunks without a base");
  if (count == 0) return {};
  if (count != ask.runs.size() || count > limits::kBasesPerRequestMax)
    return refused(fmt::format("{} bases of {} runs", count, ask.runs.size()));
  if (ask.effort == CodingEffort::none) return refused("bases without an effort");
  for (const wire::Base* base : *read.bases()) {
    if (base->width() != 0 && !is_coding_width(base->width())) return refused("a base of another width");
    ask.bases.push_back({unpacked(*base->root()), base->width()});
  }
  return {};
}

Result<PeerRequest> unpacked(const wire::Read& read) {
  AskBytes ask;
  std::uint64_t bytes = 0;
  if (read.runs()->size() == 0 || read.runs()->size() > kRunsPerRequest)
    return refused(fmt::format("expected 1 to {} runs, got {}", kRunsPerRequest, read.runs()->size()));
  if (!lies_aligned<wire::Run>(*read.runs())) return refused("runs out of alignment");
  for (const wire::Run* packed_run : *read.runs()) {
    WEFT_TRY(const ChunkRun run, unpacked(*packed_run));
    if (run.length() > kSourceReadMax - bytes) return refused("more bytes than are read at once");
    bytes += run.length();
    ask.runs.push_back(run);
  }
  WEFT_TRY(ask.traffic, traffic_of(read.traffic()));
  WEFT_CHECK(unpack_bases(read, ask));
  ask.skip = read.skip();
  if (ask.skip > 0 && (!ask.bases.empty() || ask.skip >= std::min(kDigestChunk, ask.runs.front().length())))
    return refused(fmt::format("{} bytes to skip", ask.skip));
  if (read.subject() != nullptr) ask.subject = printable(read.subject()->string_view(), kSubjectBytesMax);
  return PeerRequest(std::move(ask));
}

Result<PeerRequest> unpacked(const wire::Pulled& pulled) {
  PulledAsk ask{pulled.key()->str(), pulled.path()->str(), unpacked(*pulled.note()->bytes()),
                pulled.size(),       pulled.offset(),      pulled.length()};
  if (const Status sound = check_pulled(ask); !sound.ok()) return refused(sound.error().message);
  return PeerRequest(std::move(ask));
}

Result<PeerRequest> unpacked(const wire::KeyOrder& table) {
  KeyOrder order{static_cast<KeyStep>(table.step()), table.name()->str()};
  if (order.step < KeyStep::accept || order.step > KeyStep::forget) return refused("an unknown step");
  if (order.name.size() != kKeyNameDigits || order.name.find_first_not_of("0123456789abcdef") != std::string::npos)
    return refused("no name of a key");
  if (table.key() != nullptr) order.key.assign(table.key()->begin(), table.key()->end());
  if (order.key.size() > limits::kKeyFileMax || order.key.empty() == (order.step == KeyStep::accept))
    return refused(fmt::format("a key of {} bytes", order.key.size()));
  return PeerRequest(std::move(order));
}

Result<PeerRequest> unpacked(const wire::Health& table) {
  AskHealth ask;
  if (table.manifests() == nullptr) return PeerRequest(std::move(ask));
  if (table.manifests()->size() > limits::kHealthManifestsMax)
    return refused(
        fmt::format("expected at most {} manifests, got {}", limits::kHealthManifestsMax, table.manifests()->size()));
  for (const wire::Digest* manifest : *table.manifests()) ask.manifests.push_back(unpacked(*manifest->bytes()));
  return PeerRequest(std::move(ask));
}

Result<PeerRequest> unpacked(const wire::Keep& table) {
  KeepVersion keep{table.model()->str(), table.number()};
  if (const Status name = check_model_name(keep.model); !name.ok()) return refused(name.error().message);
  if (keep.number == 0 || keep.number > limits::kVersionNumberMax)
    return refused(fmt::format("a version of number {}", keep.number));
  return PeerRequest(std::move(keep));
}

}  // namespace

std::vector<std::byte> encode_request(const PeerRequest& request) {
  Builder builder;
  builder.Finish(std::visit(Packer{builder}, request));
  return bytes_of(builder);
}

Result<PeerRequest> decode_request(std::span<const std::byte> bytes) {
  WEFT_TRY(const auto verified, Verified<wire::Request>::make(bytes));
  const wire::Request& request = *verified;
  if (const auto* manifest = request.what_as_Manifest())
    return PeerRequest(AskManifest{unpacked(*manifest->digest()->bytes()), manifest->offset()});
  if (const auto* chunks = request.what_as_Chunks()) {
    WEFT_TRY(const ChunkRun run, unpacked(*chunks->run()));
    if (run.count > kDigestsAtOnceMax) return refused("more digests than are read at once");
    return PeerRequest(AskChunks{run});
  }
  if (const auto* read = request.what_as_Read()) return unpacked(*read);
  if (const auto* announce = request.what_as_Announce())
    return PeerRequest(Announce{unpacked(*announce->manifest()->bytes()), announce->whole()});
  if (const auto* who = request.what_as_WhoHas()) return PeerRequest(AskHolders{unpacked(*who->manifest()->bytes())});
  if (const auto* table = request.what_as_Join()) {
    WEFT_TRY(auto join, unpacked(*table));
    return PeerRequest(std::move(join));
  }
  if (const auto* table = request.what_as_Want()) {
    WEFT_TRY(auto want, unpacked(*table));
    return PeerRequest(std::move(want));
  }
  if (const auto* pulled = request.what_as_Pulled()) return unpacked(*pulled);
  if (const auto* order = request.what_as_KeyOrder()) return unpacked(*order);
  if (const auto* health = request.what_as_Health()) return unpacked(*health);
  if (const auto* keep = request.what_as_Keep()) return unpacked(*keep);
  return refused("a request of an unknown kind");
}

std::vector<std::byte> encode_holders(const std::vector<std::string>& nodes) {
  Builder builder;
  builder.Finish(wire::CreateHolders(builder, builder.CreateVectorOfStrings(nodes)));
  return bytes_of(builder);
}

Result<std::vector<std::string>> decode_holders(std::span<const std::byte> bytes) {
  WEFT_TRY(const auto verified, Verified<wire::Holders>::make(bytes));
  return peer_tables::ids_of(*(*verified).nodes(), limits::kHoldersMax);
}

std::vector<std::byte> encode_health(const PeerHealth& facts) {
  Builder builder;
  const auto states = builder.CreateVector(facts.states);
  builder.Finish(wire::CreatePeerHealth(builder, facts.clock_ns, facts.free_bytes, facts.disk_bytes,
                                        facts.reserve_bytes, facts.unsaved, states));
  return bytes_of(builder);
}

Result<PeerHealth> decode_health(std::span<const std::byte> bytes, const AskHealth& ask) {
  WEFT_TRY(const auto verified, Verified<wire::PeerHealth>::make(bytes));
  const wire::PeerHealth& table = *verified;
  PeerHealth facts{table.clock_ns(),      table.free_bytes(), table.disk_bytes(),
                   table.reserve_bytes(), table.unsaved(),    {}};
  if (table.states() != nullptr) facts.states.assign(table.states()->begin(), table.states()->end());
  if (facts.states.size() > ask.manifests.size() || facts.states.empty() != ask.manifests.empty())
    return refused(fmt::format("{} states of {} versions", facts.states.size(), ask.manifests.size()));
  return facts;
}

std::vector<std::byte> encode_given(std::span<const std::uint32_t> sizes) {
  std::vector<std::byte> out(sizes.size_bytes());
  if (!out.empty()) std::memcpy(out.data(), sizes.data(), out.size());  // pointers of empty ranges may be null
  return out;
}

Result<GivenChunks> decode_given(std::span<const std::byte> head, const AskBytes& ask) {
  const auto chunks = chunks_of(ask.runs);
  GivenChunks given;
  given.sizes.resize(chunks.size());
  if (head.size() < given.head_bytes())
    return Error{Errc::corrupt,
                 fmt::format("a peer's answer: a table of {} chunks in {} bytes", chunks.size(), head.size())};
  std::memcpy(given.sizes.data(), head.data(), given.head_bytes());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::uint32_t size = given.sizes[i];
    const bool coded = size < chunks[i].length;
    const bool may_be_coded = !ask.bases.empty() && ask.bases[chunks[i].run].width != 0;
    if (size == 0 || size > chunks[i].length || (coded && !may_be_coded))
      return Error{Errc::corrupt, fmt::format("a peer's answer: {} bytes of a chunk of {}", size, chunks[i].length)};
    (coded ? given.coded_bytes : given.plain_bytes) += size;
  }
  return given;
}

std::vector<std::byte> encode_received(std::span<const std::uint32_t> got) {
  return encode_given(got);
}

Result<std::vector<std::uint32_t>> decode_received(std::span<const std::byte> head, const PulledAsk& ask) {
  std::vector<std::uint32_t> got(ask.pieces());
  if (head.size() != got.size() * sizeof(std::uint32_t))
    return Error{Errc::corrupt,
                 fmt::format("a peer's answer: {} bytes for the state of {} pieces", head.size(), got.size())};
  if (!got.empty()) std::memcpy(got.data(), head.data(), head.size());
  return got;
}

std::vector<std::byte> encode_digests(std::span<const Digest> digests) {
  const auto bytes = std::as_bytes(digests);
  return {bytes.begin(), bytes.end()};
}

Result<std::vector<Digest>> decode_digests(std::span<const std::byte> bytes) {
  std::vector<Digest> digests(bytes.size() / sizeof(Digest));
  if (bytes.size() % sizeof(Digest) != 0)
    return Error{Errc::corrupt, fmt::format("a peer's answer: {} bytes of digests", bytes.size())};
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(digests)).begin());
  return digests;
}

}  // namespace weft
