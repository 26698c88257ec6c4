// The references of a version's content to blobs and views, by blob and by view. Blob numbers and view inodes follow
// this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/content.h"
#include "weft/model/version_content.h"

namespace weft {

// A reference of a file of a version to a blob. A file that names a blob twice has one reference to it.
struct BlobReference {
  const ContentId* blob = nullptr;  // points into the content
  std::uint32_t place = 0;  // index of the blob in the version's blobs, in the order in which it first names them
  std::uint32_t file = 0;
};

// `content` must outlive this object, unchanged.
class ContentReferences {
 public:
  explicit ContentReferences(const VersionContent& content);

  const VersionContent& content() const { return content_; }
  std::uint32_t blob_count() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  const ContentId& blob(std::uint32_t place) const { return *references_[begins_[place]].blob; }
  // Returns the references to a blob, sorted by file.
  std::span<const BlobReference> of_blob(std::uint32_t place) const {
    return std::span(references_).subspan(begins_[place], begins_[place + 1] - begins_[place]);
  }
  // Returns the first view that equals this one. Views are tensor ordinals.
  std::uint32_t first_alike(std::size_t view) const { return first_[view]; }
  // Returns the views that equal no earlier one, ascending.
  std::vector<std::uint32_t> distinct_views() const;
  // Returns the number of directory entries in the mount for a view and all its equals; 0 if it equals an earlier view.
  std::uint32_t links(std::size_t view) const { return links_[view]; }

 private:
  const VersionContent& content_;
  std::vector<BlobReference> references_;  // sorted by place, then by file
  std::vector<std::uint32_t> begins_;      // index of the first reference to each blob, and the end
  std::vector<std::uint32_t> first_, links_;
};

}  // namespace weft
