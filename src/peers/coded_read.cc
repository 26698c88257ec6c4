#include "peers/coded_read.h"

#include <algorithm>

#include "os/sys.h"

namespace weft {

Status CodedRead::read_base(const RunChunk& chunk, std::span<std::byte> to) const {
  const OpenPlace& place = bases_[chunk.run].place;
  const std::uint64_t offset = place.offset + (chunk.chunk - ask_.runs[chunk.run].first) * kDigestChunk;
  Status read = read_exact(place.pack->fd(), offset, to, "a base");
  return read.ok() ? Status{} : Error{Errc::io, read.error().message};
}

Status CodedRead::decode(const RunChunk& chunk, std::span<const std::byte> coded, std::span<std::byte> to) {
  WEFT_CHECK(read_base(chunk, to));
  const std::uint8_t width = ask_.bases[chunk.run].width;
  WEFT_TRY(const auto decoded, desk_->coder.decode(coded, width, to));
  ++counts_.coded;
  counts_.elements += decoded.elements;
  counts_.changed += decoded.changed;
  keep_.emplace_back(CodedKey{ask_.runs[chunk.run].id, ask_.bases[chunk.run].root, chunk.chunk, width},
                     std::make_shared<const std::vector<std::byte>>(coded.begin(), coded.end()));
  return {};
}

// Measures why a chunk was not coded: the share of its elements that changed. One chunk of an answer is enough.
void CodedRead::sample(const RunChunk& chunk, std::span<const std::byte> plain) {
  const std::span<std::byte> base(desk_->base.get(), chunk.length);
  const std::uint8_t width = ask_.bases[chunk.run].width;
  if (counts_.plain > 1 || chunk.length % width != 0 || !read_base(chunk, base).ok()) return;
  const std::uint64_t elements = chunk.length / width;
  counts_.elements += elements;
  counts_.changed += static_cast<std::uint64_t>(changed_share(base, plain, width) * static_cast<double>(elements));
}

Status CodedRead::place(std::span<const std::byte> from, std::span<std::byte> to) {
  std::size_t coded_at = 0;
  std::size_t plain_at = given_.coded_bytes;
  const auto chunks = chunks_of(ask_.runs);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const RunChunk& chunk = chunks[i];
    const std::uint32_t size = given_.sizes[i];
    const auto target = to.subspan(chunk.at, chunk.length);
    const bool has_base = ask_.bases[chunk.run].width != 0;
    if (has_base) {
      ++counts_.asked;
      counts_.asked_bytes += chunk.length;
      counts_.given_bytes += size;
    }
    if (size < chunk.length) {
      WEFT_CHECK(decode(chunk, from.subspan(coded_at, size), target));
      coded_at += size;
      coded_.push_back(i);
      continue;
    }
    const auto plain = from.subspan(plain_at, size);
    if (plain.data() != target.data()) std::ranges::copy(plain, target.begin());
    plain_at += size;
    if (!has_base) continue;
    ++counts_.plain;
    sample(chunk, target);
  }
  return {};
}

}  // namespace weft
