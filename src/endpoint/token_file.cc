#include "endpoint/token_file.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/sha256.h"
#include "base/text.h"
#include "os/sys.h"

namespace weft {
namespace {

Digest digest_of(std::string_view token) {
  return sha256(std::as_bytes(std::span(token)));
}

// No branch depends on where two digests differ.
bool is_equal(const Digest& one, const Digest& other) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.bytes.size(); ++i)
    difference |= static_cast<unsigned>(one.bytes.at(i) ^ other.bytes.at(i));
  return difference == 0;
}

}  // namespace

Result<HubToken> HubToken::read(const std::string& path) {
  WEFT_TRY(const Fd file, open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  WEFT_TRY(const struct stat st, stat_fd(file.get(), path));
  WEFT_CHECK(check_private_file(st, "token file", path));
  const auto bytes = std::min<std::uint64_t>(static_cast<std::uint64_t>(st.st_size), limits::kHubTokenMax + 1);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  WEFT_CHECK(read_exact(file.get(), 0, std::as_writable_bytes(std::span(text)), path));
  const std::string_view token = trimmed(std::string_view(text).substr(0, text.find('\n')), " \t\r");
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  if (token.empty() || token.size() > limits::kHubTokenMax || std::ranges::any_of(token, is_bad))
    return Error{Errc::invalid,
                 fmt::format("token file {}: expected a token of 1 to {} printable characters in the first line", path,
                             limits::kHubTokenMax)};
  return HubToken(digest_of(token));
}

bool HubToken::opens(std::optional<std::string_view> authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  if (!authorization || authorization->size() <= kScheme.size()) return false;
  if (!std::ranges::equal(authorization->substr(0, kScheme.size()), kScheme, {}, lower_ascii)) return false;
  return is_equal(digest_of(trimmed(authorization->substr(kScheme.size()), " ")), digest_);
}

}  // namespace weft
