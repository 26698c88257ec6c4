// How messages are written to FlatBuffers and read from hostile ones. For messages.cc and swarm_messages.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include "base/limits.h"
#include "base/sha256.h"
#include "peers/swarm_messages.h"
#include "peers_generated.h"
#include "weft/result.h"

namespace weft::peer_tables {

namespace wire = peer_wire;
using Builder = flatbuffers::FlatBufferBuilder;

inline Error refused(std::string_view why) {
  return Error{Errc::invalid, fmt::format("a peer's message: {}", why)};
}

inline std::vector<std::byte> bytes_of(const Builder& builder) {
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

inline wire::Digest packed(const Digest& digest) {
  return wire::Digest(flatbuffers::span<const std::uint8_t, 32>(digest.bytes));
}

inline Digest unpacked(const flatbuffers::Array<std::uint8_t, 32>& bytes) {
  Digest digest;
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

inline Result<Traffic> traffic_of(std::uint8_t number) {
  if (number >= kTrafficNames.size()) return refused("an unknown class of traffic");
  return static_cast<Traffic>(number);
}

// A verified table, copied to aligned memory.
template <class Table>
class Verified {
 public:
  static Result<Verified> make(std::span<const std::byte> bytes) {
    Verified made;
    made.memory_.resize((bytes.size() + 7) / 8);
    if (bytes.size() < sizeof(flatbuffers::uoffset_t)) return refused(fmt::format("{} bytes", bytes.size()));
    std::memcpy(made.memory_.data(), bytes.data(), bytes.size());
    flatbuffers::Verifier verifier(made.start(), made.memory_.size() * sizeof(std::uint64_t), 8, 10'000);
    if (!verifier.VerifyBuffer<Table>(nullptr)) return refused("its bytes do not verify");
    return made;
  }
  const Table& operator*() const { return *flatbuffers::GetRoot<Table>(start()); }

 private:
  const std::uint8_t* start() const { return reinterpret_cast<const std::uint8_t*>(memory_.data()); }
  std::vector<std::uint64_t> memory_;
};

using StringVector = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

// Returns the ids of different nodes. Errc::invalid: more than `count_max`, one that comes twice, or no id.
inline Result<std::vector<std::string>> ids_of(const StringVector& nodes, std::size_t count_max) {
  if (nodes.size() > count_max)
    return refused(fmt::format("expected at most {} nodes, got {}", count_max, nodes.size()));
  std::vector<std::string> out;
  for (const flatbuffers::String* node : nodes) {
    if (node->size() == 0 || node->size() > limits::kNodeIdMax)
      return refused(fmt::format("a node's id of {} bytes", node->size()));
    if (std::ranges::find(out, node->string_view()) != out.end()) return refused("a node that comes twice");
    out.push_back(node->str());
  }
  return out;
}

// The tables of swarm_messages.cc.
flatbuffers::Offset<wire::Join> packed(Builder& builder, const Join& join);
flatbuffers::Offset<wire::Want> packed(Builder& builder, const Want& want);
Result<Join> unpacked(const wire::Join& join);
Result<Want> unpacked(const wire::Want& want);

}  // namespace weft::peer_tables
