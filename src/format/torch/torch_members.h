// Members of the zip archives that PyTorch writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/zip_directory.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

// Returns the bytes of a member. Errc::unsupported: the member is compressed, or longer than `most` bytes. Other errors
// come from the source.
Result<std::string> torch_member_text(ByteSource& archive, const ZipMember& member, std::uint64_t most);

// Errc::unsupported: the member ROOT/byteorder names another byte order than "little". Older archives lack it. `root`
// ends in a slash, or is empty.
Status check_torch_byte_order(ByteSource& archive, const ZipDirectory& members, std::string_view root);

}  // namespace weft
