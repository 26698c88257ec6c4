// The bases of a version: blobs of another version that its chunks are coded against, with statistics.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/mutex.h"
#include "weft/bytes/source.h"
#include "weft/model/base_pairs.h"

namespace weft {

// Any thread.
class VersionBases {
 public:
  // Names of the version and of its base, "bert@2" and "bert@1".
  VersionBases(std::string version, std::string base, BasePairs pairs)
      : version_(std::move(version)), base_(std::move(base)), pairs_(std::move(pairs)) {}

  const std::string& version() const { return version_; }
  const std::string& base() const { return base_; }

  // Returns the base of a blob; nothing without a base, or if the base is damaged.
  std::optional<BasePair> find(const ContentId& blob) const;
  // As find(), for coding. Nothing also if coded chunks of this version turned out to be not much shorter than plain
  // ones.
  std::optional<BasePair> find_to_code(const ContentId& blob) const;
  void note(const CodedCounts& counts);
  // Leaves out a damaged base. True the first time.
  bool leave_out(const ContentId& base);
  CodedCounts counts() const;

 private:
  std::optional<BasePair> sound(const ContentId& blob) const WEFT_REQUIRES(mutex_);
  const std::string version_, base_;
  const BasePairs pairs_;
  mutable Mutex mutex_;
  CodedCounts counts_ WEFT_GUARDED_BY(mutex_);
  std::unordered_set<ContentId> left_out_ WEFT_GUARDED_BY(mutex_){};  // damaged bases
};

}  // namespace weft
