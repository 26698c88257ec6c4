// The bytes of a manifest, and apart from them the promises of weft/model/manifest.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/limits.h"
#include "weft/model/manifest.h"
#include "weft/result.h"

namespace weft {

// Errc::invalid if the bytes could be more than `bytes_max`.
Result<std::vector<std::byte>> encode_unchecked(const Manifest& manifest,
                                                std::uint64_t bytes_max = limits::kManifestMax);

Status encode_unchecked(const Manifest& manifest, const std::function<Status(std::span<const std::byte>)>& use,
                        std::uint64_t bytes_max = limits::kManifestMax);

// Errc::corrupt if `bytes` are no manifest buffer. Takes memory in proportion to `bytes`, which need not be aligned.
Result<Manifest> decode_unchecked(std::span<const std::byte> bytes);

// Errc::invalid names the file, the tensor or extent, the expected value and the actual one.
Status check_manifest(const Manifest& manifest);

}  // namespace weft
