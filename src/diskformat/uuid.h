// RFC 4122 identifiers as two numbers and as text: "6fa459ea-ee8a-4ca4-894e-db77e160355e".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/uuid.h"

namespace weft {

std::string uuid_text(const Uuid& uuid);
std::optional<Uuid> parse_uuid(std::string_view text);  // accepts only the format of uuid_text()
std::string random_uuid();                              // version 4
Uuid random_id();                                       // as random_uuid()

}  // namespace weft
