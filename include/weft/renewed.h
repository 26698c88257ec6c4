// A snapshot for a walk of many single lookups (header only).
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "weft/result.h"
#include "weft/snapshot.h"
#include "weft/store.h"

namespace weft {

// Holds a snapshot for at most limits::kRowsPerSnapshot rows, and then takes another one, of a later state. One thread.
// The snapshot ends with the object.
class Renewed {
 public:
  explicit Renewed(Store& store) : store_(store) {}

  // Returns a snapshot in which the caller reads at most `rows` rows; it is valid until the next call. Rows of an
  // earlier snapshot may be outdated.
  Result<Snapshot*> get(std::size_t rows = 1) {
    if (snapshot_ && rows_ + rows > limits::kRowsPerSnapshot) end();
    if (!snapshot_) {
      WEFT_TRY(snapshot_, store_.snapshot());
    }
    rows_ += rows;
    return snapshot_.get();
  }
  // Call before output, a wait, or work of others.
  void end() {
    snapshot_.reset();
    rows_ = 0;
  }

 private:
  Store& store_;
  std::unique_ptr<Snapshot> snapshot_;
  std::size_t rows_ = 0;
};

}  // namespace weft
