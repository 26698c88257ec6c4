// The version that another version is coded against while its bytes come, and how that goes.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "weft/base_pairs.h"
#include "weft/source.h"

namespace weft {

// Any thread.
class VersionBases {
 public:
  // Names of the version and of its base, "bert@2" and "bert@1".
  VersionBases(std::string version, std::string base, BasePairs pairs)
      : version_(std::move(version)), base_(std::move(base)), pairs_(std::move(pairs)) {}

  const std::string& version() const { return version_; }
  const std::string& base() const { return base_; }

  // The base of a blob. Nothing if it has none, or if its base is damaged.
  std::optional<BasePair> find(const ContentId& blob) const;
  // The same, to code against. Nothing too if coded chunks of this version turned out to be not much shorter than plain
  // ones.
  std::optional<BasePair> find_to_code(const ContentId& blob) const;
  void note(const CodedCounts& counts);
  // This base has other bytes than it should have. True the first time.
  bool leave_out(const ContentId& base);
  CodedCounts counts() const;

 private:
  std::optional<BasePair> sound(const ContentId& blob) const;
  const std::string version_, base_;
  const BasePairs pairs_;
  mutable std::mutex mutex_;
  CodedCounts counts_;                        // guarded by mutex_, as the next
  std::unordered_set<ContentId> left_out_{};  // bases
};

}  // namespace weft
