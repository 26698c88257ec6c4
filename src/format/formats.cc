#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "format/builtin.h"
#include "format/where.h"
#include "weft/format.h"

namespace weft {
namespace {

constexpr std::size_t kHead = 16;  // bytes that Format::claims() may look at

Result<std::vector<std::byte>> read_head(ByteSource& source, std::size_t count) {
  std::vector<std::byte> head(std::min<std::uint64_t>(count, source.size()));
  WEFT_CHECK(source.read(0, head));
  return head;
}

// The first format that claims a file of this name with these first bytes.
const Format* claimant(std::string_view file_name, std::span<const std::byte> head) {
  auto formats = all_formats();
  auto it = std::find_if(formats.begin(), formats.end(),
                         [&](const Format* format) { return format->claims(file_name, head); });
  return it == formats.end() ? nullptr : *it;
}

// A name is a promise: a file that breaks it is refused. First bytes alone may be chance (a text about GGUF begins with
// "GGUF"): such a file is opaque if it does not parse.
Result<Layout> parse_claimed(std::string_view file_name, ByteSource& source) {
  if (const Format* format = claimant(file_name, {})) {
    WEFT_CHECK(refuse_lfs_pointer(source));
    return format->parse(file_name, source);
  }
  WEFT_TRY(std::vector<std::byte> head, read_head(source, kHead));
  const Format* format = claimant(file_name, head);
  if (format == nullptr) return Layout{};
  auto layout = format->parse(file_name, source);
  if (!layout.ok() && is_malformed(layout.error())) return Layout{};
  return layout;
}

}  // namespace

std::span<const Format* const> all_formats() {
  static const std::array<const Format*, 3> formats = {&safetensors_format(), &gguf_format(), &npy_format()};
  return formats;
}

Result<Layout> parse_file(std::string_view where, std::string_view file_name, ByteSource& source) {
  auto layout = parse_claimed(file_name, source);
  if (!layout.ok()) return locate(where, std::move(layout).error());
  return layout;
}

Error locate(std::string_view where, Error error) {
  if (!where.empty() && !error.message.starts_with(where)) error.message = fmt::format("{}: {}", where, error.message);
  return error;
}

bool is_malformed(const Error& error) {
  return error.code == Errc::invalid || error.code == Errc::unsupported;
}

Status refuse_lfs_pointer(ByteSource& source) {
  constexpr std::string_view kMagic = "version https://git-lfs.github.com/spec/";
  WEFT_TRY(std::vector<std::byte> head, read_head(source, kMagic.size()));
  if (!std::ranges::equal(head, std::as_bytes(std::span(kMagic)))) return {};
  return Error{Errc::invalid, "expected the file itself, got a Git LFS pointer to it: run git lfs pull"};
}

}  // namespace weft
