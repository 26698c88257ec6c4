// Finds the records of a container while its bytes are read for the store.
#pragma once

#include <memory>
#include <optional>

#include "dataset/record_table.h"
#include "publish/draft.h"
#include "weft/publish.h"
#include "weft/records.h"
#include "weft/result.h"

namespace weft {

// One thread. Does nothing for a draft without a container.
class RecordScan {
 public:
  // `fd` is the open file of the draft; both outlive the scan.
  RecordScan(Draft& draft, int fd);

  SeenBytes seen();
  // Call it after all bytes were seen. Stores the record table in the draft, or in `file` the reason why there is none.
  Status finish(File& file);

 private:
  void feed(std::span<const std::byte> bytes);

  Draft& draft_;
  const int fd_;
  std::optional<RecordTableMaker> maker_;
  std::unique_ptr<RecordScanner> scanner_;
  Status fed_;
};

}  // namespace weft
