// The part of a version that only its content decides: who holds which blob, who owns which bytes, links of views.
#pragma once

#include <cstdint>

#include "catalog/apply.h"

namespace weft {

// Who gets content: a version, with the inode numbers of its tree and views.
struct ContentOwner {
  VersionId version = 0;
  std::uint64_t time_ns = 0;
  const LocalRow& local;
};
Status add_content(Txn& txn, const ContentOwner& owner, const PublishInput& input);

// The parts that a removal shares (giving_back.h): counts bytes that a holder owns from now on; Errc::corrupt where a
// manifest does not fit the version's numbers.
Status add_owned(Txn& txn, const Holder& holder, std::uint64_t bytes);
Status check_shape(Txn& txn, const LocalRow& local, const VersionContent& content);

}  // namespace weft
