// The field `Link` of an answer (RFC 8288), in which a hub names the next page of a listing. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace weft {

// Returns the reference of the first link of this relation in `<URL>; rel="next", <URL>; rel="last"`. No value
// if no link has it, or if the field is malformed before the link.
std::optional<std::string_view> link_of(std::string_view field, std::string_view relation);

}  // namespace weft
