#include "weft/result.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "base/errc_names.h"

namespace weft {
namespace {

constexpr std::array<std::pair<Errc, std::string_view>, 18> kCodes = {{
    {Errc::invalid, "invalid"},
    {Errc::not_found, "not_found"},
    {Errc::exists, "exists"},
    {Errc::permission, "permission"},
    {Errc::no_space, "no_space"},
    {Errc::busy, "busy"},
    {Errc::corrupt, "corrupt"},
    {Errc::io, "io"},
    {Errc::unsupported, "unsupported"},
    {Errc::changed, "changed"},
    {Errc::cancelled, "cancelled"},
    {Errc::read_only, "read_only"},
    {Errc::is_dir, "is_dir"},
    {Errc::not_dir, "not_dir"},
    {Errc::timed_out, "timed_out"},
    {Errc::unreachable, "unreachable"},
    {Errc::absent, "absent"},
    {Errc::internal, "internal"},
}};

}  // namespace

Failure::Failure(Error error) : error_(new Error(std::move(error))) {}
Failure::Failure(const Failure& other) : error_(other.error_ == nullptr ? nullptr : new Error(*other.error_)) {}

void Failure::drop(Error* error) noexcept {
  delete error;
}

void refuse_value() {
  throw std::logic_error("a failed Result has no value");
}

void refuse_error() {
  throw std::logic_error("a Result that is ok, or was moved from, has no error");
}

std::string_view errc_name(Errc code) {
  const auto* found =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const auto& entry) { return entry.first == code; });
  return found == kCodes.end() ? "internal" : found->second;
}

std::optional<Errc> errc_named(std::string_view name) {
  const auto* found =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const auto& entry) { return entry.second == name; });
  return found == kCodes.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace weft
