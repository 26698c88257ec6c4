// The part of a version that only its content decides: who holds which blob, who owns which bytes, links of views.
#pragma once

#include <cstdint>

#include "store/apply.h"

namespace weft {

Status add_content(Txn& txn, const PublishEvent& event, const PublishInput& input);
Status remove_content(Txn& txn, VersionId version, const LocalRow& local, const VersionContent& content);

}  // namespace weft
