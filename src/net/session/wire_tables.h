// Helpers that encode and decode the messages of wire.fbs.
#pragma once

#include <flatbuffers/flatbuffers.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "net/session/frame.h"
#include "net/session/secret.h"
#include "weft/result.h"
#include "wire_generated.h"

namespace weft::net {

inline wire::Bytes32 packed(const Bytes32& bytes) {
  std::array<std::uint8_t, 32> out{};
  std::transform(bytes.begin(), bytes.end(), out.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return wire::Bytes32(out);
}

inline Bytes32 unpacked(const wire::Bytes32& bytes) {
  Bytes32 out{};
  for (unsigned i = 0; i < out.size(); ++i) out.at(i) = static_cast<std::byte>(bytes.bytes()->Get(i));
  return out;
}

inline flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> packed(flatbuffers::FlatBufferBuilder& builder,
                                                                     std::span<const std::byte> bytes) {
  return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

inline std::vector<std::byte> unpacked(const flatbuffers::Vector<std::uint8_t>& bytes) {
  const auto view = std::as_bytes(std::span(bytes.data(), bytes.size()));
  return {view.begin(), view.end()};
}

inline std::vector<std::byte> finished(flatbuffers::FlatBufferBuilder& builder) {
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

// A payload as a verified table, copied to aligned memory.
template <class Table>
class Decoded {
 public:
  static Result<Decoded> make(std::span<const std::byte> payload, std::string_view what) {
    const Error none{Errc::invalid, fmt::format("{} bytes that are no {}", payload.size(), what)};
    if (payload.size() < sizeof(flatbuffers::uoffset_t) || payload.size() > kPayloadBytesMax) return none;
    Decoded made;
    made.memory_.resize((payload.size() + 7) / 8);
    std::memcpy(made.memory_.data(), payload.data(), payload.size());
    flatbuffers::Verifier verifier(made.bytes(), made.memory_.size() * sizeof(std::uint64_t), 4, kTablesMax);
    if (!verifier.VerifyBuffer<Table>(nullptr)) return none;
    return made;
  }
  const Table* operator->() const { return flatbuffers::GetRoot<Table>(bytes()); }

 private:
  static constexpr unsigned kTablesMax = 80;  // enough for an answer with kAnswerWindowsMax windows
  const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(memory_.data()); }
  std::vector<std::uint64_t> memory_;
};

}  // namespace weft::net
