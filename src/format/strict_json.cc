#include "format/strict_json.h"

#include <fmt/core.h>

#include "base/text.h"

namespace weft {

Status StrictHandler::negative(std::int64_t value) {
  return skip(0) ? Status{} : unexpected(fmt::format("the number {}", value));
}

Status StrictHandler::real(double value) {
  return skip(0) ? Status{} : unexpected(fmt::format("the number {}", value));
}

Status StrictHandler::boolean(bool value) {
  return skip(0) ? Status{} : unexpected(value ? "true" : "false");
}

Status StrictHandler::on_text(std::string_view value) {
  return unexpected(fmt::format("the string \"{}\"", printable(value, 40)));
}

Status StrictHandler::on_number(std::uint64_t value) {
  return unexpected(fmt::format("the number {}", value));
}

Status StrictHandler::unexpected(std::string_view got) const {
  return Error{Errc::invalid, fmt::format("expected {}, got {}", expected(), got)};
}

void StrictHandler::skip_container() {
  skipping_ = true;
  depth_ = 1;
}

bool StrictHandler::skip(int depth_change) {
  if (!skipping_) return false;
  depth_ = depth_change < 0 ? depth_ - 1 : depth_ + static_cast<std::size_t>(depth_change);
  skipping_ = depth_ != 0;
  return true;
}

}  // namespace weft
