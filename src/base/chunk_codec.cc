#include "base/chunk_codec.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "weft/content.h"

namespace weft {
namespace {

enum Codec : std::uint8_t { kSame, kSparse, kPlanes };

constexpr std::size_t kHead = 4;        // bytes before the sizes
constexpr std::size_t kStreamsMax = 9;  // gaps, and one for each byte of an element
constexpr int kLevel = 1;               // level of zstd: higher levels are slower and no smaller on these streams
constexpr std::size_t kLine = 64;       // bytes that are compared at once
constexpr std::uint8_t kGapMore = 255;
constexpr double kSparseShareMax = 1.0 / 6;  // share of changed elements: with more of them, plain bytes are faster
constexpr std::size_t kSampleParts = 16;
constexpr std::size_t kSampleWhole = 64U << 10U;  // shorter chunks are compared whole

using Bytes = std::span<const std::byte>;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Moves the sign of a two's complement number to the lowest bit, and back.
template <class T>
T fold(T d) {
  return static_cast<T>((d << 1U) ^ (T{0} - (d >> (sizeof(T) * 8 - 1))));
}
template <class T>
T unfold(T f) {
  return static_cast<T>((f >> 1U) ^ (T{0} - (f & 1U)));
}

// A buffer that keeps its size from chunk to chunk and is never cleared.
class Room {
 public:
  std::uint8_t* take(std::size_t bytes) {
    if (bytes > size_) {
      memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::uint8_t[]> memory_;
  std::size_t size_ = 0;
};

struct Stream {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
};

// Calls `work` with an unsigned integer of this width. is_coding_width() holds for the width.
template <class Work>
auto with_width(std::size_t width, const Work& work) {
  if (width == 1) return work(std::uint8_t{});
  if (width == 2) return work(std::uint16_t{});
  if (width == 4) return work(std::uint32_t{});
  return work(std::uint64_t{});
}

template <class T>
std::uint64_t count_changed(Bytes base, Bytes now) {
  std::uint64_t changed = 0;
  for (std::size_t at = 0; at + sizeof(T) <= now.size(); at += sizeof(T))
    changed += load<T>(&base[at]) != load<T>(&now[at]) ? 1 : 0;
  return changed;
}

bool line_differs(const std::byte* base, const std::byte* now) {
  std::uint64_t differ = 0;
  for (std::size_t at = 0; at < kLine; at += sizeof differ)
    differ |= load<std::uint64_t>(base + at) ^ load<std::uint64_t>(now + at);
  return differ != 0;
}

}  // namespace

struct ChunkCoder::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    ZSTD_freeCCtx(compress);
    ZSTD_freeDCtx(decompress);
  }

  // These two fill the streams of a codec, for elements of type T.
  template <class T>
  bool find_changes(Bytes base, Bytes now);
  template <class T>
  void split_planes(Bytes base, Bytes now);
  template <class T>
  std::optional<std::vector<std::byte>> encode(Bytes base, Bytes now, CodingEffort effort);
  std::optional<std::vector<std::byte>> write(Codec codec, std::size_t width, std::size_t bytes_max);

  template <class T>
  Result<Decoded> decode(Bytes coded, std::span<std::byte> chunk);
  Status read(Codec codec, std::size_t width, Bytes coded, std::size_t elements);
  template <class T>
  Result<Decoded> apply_changes(std::span<std::byte> chunk);
  template <class T>
  Decoded apply_planes(std::span<std::byte> chunk);

  ZSTD_CCtx* compress = nullptr;  // both are created on first use
  ZSTD_DCtx* decompress = nullptr;
  Room raw, out;
  std::array<Stream, kStreamsMax> streams;  // in `raw`
  std::size_t count = 0;                    // number of streams
};

namespace {

Error refused(std::string_view why) {
  return Error{Errc::corrupt, fmt::format("a coded chunk: {}", why)};
}

}  // namespace

// Splits the changes into streams. Returns false if more than half of the elements changed.
template <class T>
bool ChunkCoder::State::find_changes(Bytes base, Bytes now) {
  constexpr std::size_t kStep = kLine / sizeof(T);
  const std::size_t elements = now.size() / sizeof(T);
  const std::size_t most = elements / 2 + kStep;
  const std::size_t gaps_most = most + elements / kGapMore + 1;
  std::uint8_t* memory = raw.take(gaps_most + most * sizeof(T));
  std::array<std::uint8_t*, sizeof(T)> values;
  for (std::size_t p = 0; p < sizeof(T); ++p) values[p] = memory + gaps_most + p * most;
  std::size_t gaps = 0;
  std::size_t found = 0;
  std::size_t next = 0;  // the element after the last change
  for (std::size_t first = 0; first < elements; first += kStep) {
    const std::size_t end = std::min(elements, first + kStep);
    if (end == first + kStep && !line_differs(&base[first * sizeof(T)], &now[first * sizeof(T)])) continue;
    if (found + kStep > most) return false;
    for (std::size_t i = first; i < end; ++i) {
      const T before = load<T>(&base[i * sizeof(T)]);
      const T after = load<T>(&now[i * sizeof(T)]);
      if (before == after) continue;
      std::size_t gap = i - next;
      for (; gap >= kGapMore; gap -= kGapMore) memory[gaps++] = kGapMore;
      memory[gaps++] = static_cast<std::uint8_t>(gap);
      next = i + 1;
      const T folded = fold<T>(static_cast<T>(after - before));
      for (std::size_t p = 0; p < sizeof(T); ++p) values[p][found] = static_cast<std::uint8_t>(folded >> (8 * p));
      ++found;
    }
  }
  count = 1 + sizeof(T);
  streams[0] = {memory, gaps};
  for (std::size_t p = 0; p < sizeof(T); ++p) streams[1 + p] = {values[p], found};
  return true;
}

template <class T>
void ChunkCoder::State::split_planes(Bytes base, Bytes now) {
  const std::size_t elements = now.size() / sizeof(T);
  std::uint8_t* memory = raw.take(now.size());
  count = sizeof(T);
  std::array<std::uint8_t*, sizeof(T)> to;
  for (std::size_t p = 0; p < sizeof(T); ++p) {
    to[p] = memory + p * elements;
    streams[p] = {to[p], elements};
  }
  for (std::size_t i = 0; i < elements; ++i) {
    const T folded = fold<T>(static_cast<T>(load<T>(&now[i * sizeof(T)]) - load<T>(&base[i * sizeof(T)])));
    for (std::size_t p = 0; p < sizeof(T); ++p) to[p][i] = static_cast<std::uint8_t>(folded >> (8 * p));
  }
}

// Returns the coded chunk, or nothing if it would take `bytes_max` or more. A stream that zstd cannot shrink stays raw.
std::optional<std::vector<std::byte>> ChunkCoder::State::write(Codec codec, std::size_t width, std::size_t bytes_max) {
  if (compress == nullptr) compress = ZSTD_createCCtx();
  if (compress == nullptr) return {};
  const std::size_t head = kHead + count * 2 * sizeof(std::uint32_t);
  if (head >= bytes_max) return {};
  auto* memory = reinterpret_cast<std::byte*>(out.take(bytes_max));
  const std::array<std::uint8_t, kHead> begin = {codec, static_cast<std::uint8_t>(width),
                                                 static_cast<std::uint8_t>(count), 0};
  std::memcpy(memory, begin.data(), begin.size());
  std::size_t at = head;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [bytes, size] = streams[i];
    std::size_t coded = ZSTD_compressCCtx(compress, memory + at, bytes_max - at, bytes, size, kLevel);
    if (ZSTD_isError(coded) != 0 || coded >= size) {
      if (size > bytes_max - at) return {};
      if (size > 0) std::memcpy(memory + at, bytes, size);
      coded = size;
    }
    store(memory + kHead + i * sizeof(std::uint32_t), static_cast<std::uint32_t>(size));
    store(memory + kHead + (count + i) * sizeof(std::uint32_t), static_cast<std::uint32_t>(coded));
    at += coded;
  }
  if (at >= bytes_max) return {};
  return std::vector<std::byte>(memory, memory + at);
}

template <class T>
std::optional<std::vector<std::byte>> ChunkCoder::State::encode(Bytes base, Bytes now, CodingEffort effort) {
  if (find_changes<T>(base, now)) {
    if (streams[0].size == 0) count = 0;
    return write(count == 0 ? kSame : kSparse, sizeof(T), now.size());
  }
  if (effort != CodingEffort::dense) return {};
  split_planes<T>(base, now);
  return write(kPlanes, sizeof(T), now.size());
}

// Decodes the streams. Their sizes are first checked against the largest that a coder writes for so many elements.
Status ChunkCoder::State::read(Codec codec, std::size_t width, Bytes coded, std::size_t elements) {
  const std::size_t head = kHead + count * 2 * sizeof(std::uint32_t);
  if (count != (codec == kSparse ? 1 + width : width)) return refused(fmt::format("{} streams", count));
  if (coded.size() < head) return refused("it ends within its sizes");
  const auto size_at = [&](std::size_t i) { return load<std::uint32_t>(&coded[kHead + i * sizeof(std::uint32_t)]); };
  std::size_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t most = codec == kSparse && i == 0 ? elements + elements / kGapMore + 1 : elements;
    if (size_at(i) > most || size_at(count + i) > size_at(i) || (codec == kPlanes && size_at(i) != elements))
      return refused(fmt::format("a stream of {} bytes from {}", size_at(i), size_at(count + i)));
    total += size_at(i);
  }
  if (decompress == nullptr) decompress = ZSTD_createDCtx();
  if (decompress == nullptr) return Error{Errc::no_space, "no memory for zstd"};
  std::uint8_t* to = raw.take(total);
  std::size_t at = head;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = size_at(i);
    const std::size_t given = size_at(count + i);
    if (given > coded.size() - at) return refused("it ends within a stream");
    if (given == size && size > 0) std::memcpy(to, coded.data() + at, size);
    if (given != size && ZSTD_decompressDCtx(decompress, to, size, coded.data() + at, given) != size)
      return refused("a stream that does not decompress");
    streams[i] = {to, size};
    to += size;
    at += given;
  }
  return at == coded.size() ? Status{} : refused("bytes behind its end");
}

template <class T>
Result<ChunkCoder::Decoded> ChunkCoder::State::apply_changes(std::span<std::byte> chunk) {
  const std::size_t elements = chunk.size() / sizeof(T);
  const std::size_t values = streams[1].size;
  std::array<const std::uint8_t*, sizeof(T)> from;
  for (std::size_t p = 0; p < sizeof(T); ++p) {
    if (streams[1 + p].size != values) return refused("streams of different sizes");
    from[p] = streams[1 + p].bytes;
  }
  std::size_t at = 0;
  std::size_t used = 0;
  for (const std::uint8_t gap : std::span(streams[0].bytes, streams[0].size)) {
    at += gap;
    if (gap == kGapMore) continue;
    if (at >= elements || used >= values) return refused("a change behind its end");
    T folded = 0;
    for (std::size_t p = 0; p < sizeof(T); ++p) folded = static_cast<T>(folded | (T{from[p][used]} << (8 * p)));
    std::byte* const place = &chunk[at * sizeof(T)];
    store<T>(place, static_cast<T>(load<T>(place) + unfold<T>(folded)));
    ++at;
    ++used;
  }
  if (used != values) return refused("values without a place");
  return Decoded{elements, values};
}

template <class T>
ChunkCoder::Decoded ChunkCoder::State::apply_planes(std::span<std::byte> chunk) {
  const std::size_t elements = chunk.size() / sizeof(T);
  std::array<const std::uint8_t*, sizeof(T)> from;  // a local array keeps the loop fast
  for (std::size_t p = 0; p < sizeof(T); ++p) from[p] = streams[p].bytes;
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    T folded = 0;
    for (std::size_t p = 0; p < sizeof(T); ++p) folded = static_cast<T>(folded | (T{from[p][i]} << (8 * p)));
    std::byte* const place = &chunk[i * sizeof(T)];
    store<T>(place, static_cast<T>(load<T>(place) + unfold<T>(folded)));
    changed += folded != 0 ? 1 : 0;
  }
  return {elements, changed};
}

template <class T>
Result<ChunkCoder::Decoded> ChunkCoder::State::decode(Bytes coded, std::span<std::byte> chunk) {
  const std::size_t elements = chunk.size() / sizeof(T);
  const auto codec = static_cast<Codec>(coded[0]);
  count = static_cast<std::size_t>(coded[2]);
  if (codec == kSame) {
    if (count != 0 || coded.size() != kHead) return refused("bytes behind its end");
    return Decoded{elements, 0};
  }
  if (codec != kSparse && codec != kPlanes) return refused("an unknown codec");
  WEFT_CHECK(read(codec, sizeof(T), coded, elements));
  if (codec == kSparse) return apply_changes<T>(chunk);
  return apply_planes<T>(chunk);
}

namespace {

bool can_be_coded(std::size_t length, std::size_t width) {
  return is_coding_width(width) && length > 0 && length <= kDigestChunk && length % width == 0;
}

}  // namespace

double changed_share(std::span<const std::byte> base, std::span<const std::byte> now, std::size_t width) {
  const bool whole = now.size() <= kSampleWhole;
  const std::size_t step = whole ? now.size() : now.size() / kSampleParts / width * width;
  const std::size_t part = whole ? now.size() : step / kSampleParts / width * width;
  std::uint64_t elements = 0;
  std::uint64_t changed = 0;
  for (std::size_t at = 0; part > 0 && at + part <= now.size(); at += step) {
    elements += part / width;
    changed += with_width(width, [&](auto element) {
      return count_changed<decltype(element)>(base.subspan(at, part), now.subspan(at, part));
    });
  }
  return elements == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(elements);
}

ChunkCoder::ChunkCoder() : state_(std::make_unique<State>()) {}
ChunkCoder::~ChunkCoder() = default;

std::optional<std::vector<std::byte>> ChunkCoder::encode(std::span<const std::byte> base,
                                                         std::span<const std::byte> now, std::size_t width,
                                                         CodingEffort effort) {
  if (effort == CodingEffort::none || base.size() != now.size()) return {};
  if (!can_be_coded(now.size(), width)) return {};
  if (effort == CodingEffort::sparse && changed_share(base, now, width) > kSparseShareMax) return {};
  return with_width(width, [&](auto element) { return state_->encode<decltype(element)>(base, now, effort); });
}

Result<ChunkCoder::Decoded> ChunkCoder::decode(std::span<const std::byte> coded, std::size_t width,
                                               std::span<std::byte> chunk) {
  if (!can_be_coded(chunk.size(), width)) return refused(fmt::format("{} bytes of width {}", chunk.size(), width));
  if (coded.size() < kHead || coded.size() >= chunk.size()) return refused(fmt::format("{} bytes", coded.size()));
  if (static_cast<std::size_t>(coded[1]) != width || coded[3] != std::byte{0}) return refused("another width");
  return with_width(width, [&](auto element) { return state_->decode<decltype(element)>(coded, chunk); });
}

}  // namespace weft
