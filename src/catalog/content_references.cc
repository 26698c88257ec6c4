#include "catalog/content_references.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weft {
namespace {

std::vector<BlobReference> blob_references(const VersionContent& content) {
  std::vector<BlobReference> references;
  std::size_t count = 0;
  for (const VersionContent::FileContent& file : content.files) count += file.extents.size();
  references.reserve(count);
  for (std::uint32_t file = 0; file < content.files.size(); ++file)
    for (const Extent& extent : content.files[file].extents)
      references.push_back({&extent.id, static_cast<std::uint32_t>(references.size()), file});
  // Sorts equal blobs together, and gives each the position of its first use.
  std::sort(references.begin(), references.end(), [](const BlobReference& a, const BlobReference& b) {
    return *a.blob != *b.blob ? *a.blob < *b.blob : a.place < b.place;
  });
  for (std::size_t i = 1; i < references.size(); ++i)
    if (*references[i].blob == *references[i - 1].blob) references[i].place = references[i - 1].place;
  std::sort(references.begin(), references.end(), [](const BlobReference& a, const BlobReference& b) {
    return std::tie(a.place, a.file) < std::tie(b.place, b.file);
  });
  const auto same = [](const BlobReference& a, const BlobReference& b) {
    return a.place == b.place && a.file == b.file;
  };
  references.erase(std::unique(references.begin(), references.end(), same), references.end());
  std::uint32_t place = 0, position = 0;
  for (std::size_t i = 0; i < references.size(); ++i) {
    if (i != 0 && references[i].place != position) ++place;
    position = std::exchange(references[i].place, place);
  }
  return references;
}

std::vector<std::uint32_t> begins_of(const std::vector<BlobReference>& references) {
  std::vector<std::uint32_t> begins;
  begins.reserve(references.empty() ? 1 : std::size_t{references.back().place} + 2);
  for (std::uint32_t i = 0; i < references.size(); ++i)
    if (references[i].place == begins.size()) begins.push_back(i);
  begins.push_back(static_cast<std::uint32_t>(references.size()));
  return begins;
}

std::vector<std::uint32_t> first_alike(const std::vector<ViewKey>& views) {
  std::vector<std::uint32_t> order(views.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto key = [&views](std::uint32_t i) {
    return std::tie(views[i].content, views[i].dtype, views[i].shape, views[i].descr);
  };
  std::sort(order.begin(), order.end(),
            [&key](std::uint32_t a, std::uint32_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
  std::vector<std::uint32_t> first(views.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    first[order[i]] = i != 0 && key(order[i]) == key(order[i - 1]) ? first[order[i - 1]] : order[i];
  return first;
}

}  // namespace

ContentReferences::ContentReferences(const VersionContent& content)
    : content_(content),
      references_(blob_references(content)),
      begins_(begins_of(references_)),
      first_(weft::first_alike(content.views)),
      links_(content.views.size()) {
  for (const std::uint32_t view : first_) links_[view] += kLinksOfView;
}

std::vector<std::uint32_t> ContentReferences::distinct_views() const {
  std::vector<std::uint32_t> views;
  for (std::uint32_t view = 0; view < first_.size(); ++view)
    if (first_[view] == view) views.push_back(view);
  return views;
}

}  // namespace weft
