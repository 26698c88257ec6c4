// What plans of events have in common: which names may be, and giving out numbers. Under the writer lock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diskformat/events.h"
#include "index/tables.h"
#include "weft/result.h"
#include "weft/store_rows.h"
#include "weft/version_content.h"

namespace weft {

// Gives out what the counters have next; apply_publish moves the counters themselves.
class Allocator {
 public:
  explicit Allocator(const Counters& counters) : next_(counters.next_ino) {}
  Ino one() { return next_++; }
  Ino range(std::uint64_t count) {
    Ino base = next_;
    next_ += count;
    return base;
  }

 private:
  Ino next_;
};

Status check_hides_none(Txn& txn, std::string_view name);

// Numbers of the event's model, known or new, by its name; the version's is the model's next.
Status plan_model(Txn& txn, PublishEvent& event, const Counters& counters, Allocator& inos);
Status plan_directories(Txn& txn, PublishEvent& event, Allocator& inos);
Status plan_tags_of(Txn& txn, PublishEvent& event, std::vector<std::string> tags, Allocator& inos);
// By tensor ordinal: of a view that the index knows the one it has, else that of `given`, numbers that this version's
// views had before its manifest was lost, if there are any.
Result<std::vector<Ino>> plan_views(Txn& txn, const VersionContent& content, Allocator& inos,
                                    const std::vector<Ino>& given = {});

}  // namespace weft
