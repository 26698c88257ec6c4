// What a version's content names, each blob and each view once. Numbers of blobs and inodes of views go by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/version_content.h"

namespace weft {

// A blob that a file of a version names. A blob that it names twice is one use.
struct BlobUse {
  const ContentId* blob = nullptr;  // of the content
  std::uint32_t place = 0;  // of the blob among the version's: they are in the order in which it first names them
  std::uint32_t file = 0;
};

// The content stays the caller's, unchanged, for as long as this is used.
class ContentUses {
 public:
  explicit ContentUses(const VersionContent& content);

  const VersionContent& content() const { return content_; }
  std::uint32_t blob_count() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  const ContentId& blob(std::uint32_t place) const { return *uses_[begins_[place]].blob; }
  // By file.
  std::span<const BlobUse> of_blob(std::uint32_t place) const {
    return std::span(uses_).subspan(begins_[place], begins_[place + 1] - begins_[place]);
  }
  // Of the views that equal one another, the first; by tensor ordinal.
  std::uint32_t first_alike(std::size_t view) const { return first_[view]; }
  // The ordinals of the views that are the first of their kind, ascending.
  std::vector<std::uint32_t> distinct_views() const;
  // The entries that the mount shows of a view and of those that equal it; 0: it equals one before it.
  std::uint32_t links(std::size_t view) const { return links_[view]; }

 private:
  const VersionContent& content_;
  std::vector<BlobUse> uses_;          // by place, then by file
  std::vector<std::uint32_t> begins_;  // of each blob's uses, and the end
  std::vector<std::uint32_t> first_, links_;
};

}  // namespace weft
