// The members of a zip archive, and the places of their bytes. Reads the directory and the local headers, and inflates
// nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/content.h"
#include "weft/model/format.h"
#include "weft/result.h"

namespace weft {

struct ZipMember {
  std::string name;          // any bytes; not empty
  std::uint64_t header = 0;  // offset of its local header
  Range data;                // the member's bytes in the archive; an empty member has none
  bool stored = false;       // the bytes are not compressed
};

class ZipDirectory {
 public:
  // True for the first bytes of an archive that begins with a member, or that has none.
  static bool begins(std::span<const std::byte> head);

  // Reads the members of an archive. Refuses every archive that two readers could understand in two ways: a name twice,
  // members that overlap one another or the directory, a local header that contradicts the directory, bytes behind the
  // last record. Errc::unsupported: encrypted or split archives, and very large directories. Errc::invalid: any other
  // bytes. Other errors come from the source.
  static Result<ZipDirectory> read(ByteSource& archive);

  std::span<const ZipMember> members() const { return members_; }  // by offset; they do not overlap
  const ZipMember* find(std::string_view name) const;              // nullptr: there is none

 private:
  ZipDirectory() = default;
  Status index_names();

  std::vector<ZipMember> members_;
  std::vector<std::uint32_t> by_name_;
};

}  // namespace weft
