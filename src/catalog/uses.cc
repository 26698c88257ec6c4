#include "catalog/uses.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace weft {
namespace {

std::vector<BlobUse> blob_uses(const VersionContent& content) {
  std::vector<BlobUse> uses;
  std::size_t count = 0;
  for (const VersionContent::FileContent& file : content.files) count += file.extents.size();
  uses.reserve(count);
  for (std::uint32_t file = 0; file < content.files.size(); ++file)
    for (const Extent& extent : content.files[file].extents)
      uses.push_back({&extent.id, static_cast<std::uint32_t>(uses.size()), file});
  // Sorts equal blobs together, and gives each the position of its first use.
  std::sort(uses.begin(), uses.end(), [](const BlobUse& a, const BlobUse& b) {
    return *a.blob != *b.blob ? *a.blob < *b.blob : a.place < b.place;
  });
  for (std::size_t i = 1; i < uses.size(); ++i)
    if (*uses[i].blob == *uses[i - 1].blob) uses[i].place = uses[i - 1].place;
  std::sort(uses.begin(), uses.end(),
            [](const BlobUse& a, const BlobUse& b) { return std::tie(a.place, a.file) < std::tie(b.place, b.file); });
  const auto same = [](const BlobUse& a, const BlobUse& b) { return a.place == b.place && a.file == b.file; };
  uses.erase(std::unique(uses.begin(), uses.end(), same), uses.end());
  std::uint32_t place = 0, position = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i != 0 && uses[i].place != position) ++place;
    position = std::exchange(uses[i].place, place);
  }
  return uses;
}

std::vector<std::uint32_t> begins_of(const std::vector<BlobUse>& uses) {
  std::vector<std::uint32_t> begins;
  begins.reserve(uses.empty() ? 1 : std::size_t{uses.back().place} + 2);
  for (std::uint32_t i = 0; i < uses.size(); ++i)
    if (uses[i].place == begins.size()) begins.push_back(i);
  begins.push_back(static_cast<std::uint32_t>(uses.size()));
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

ContentUses::ContentUses(const VersionContent& content)
    : content_(content),
      uses_(blob_uses(content)),
      begins_(begins_of(uses_)),
      first_(weft::first_alike(content.views)),
      links_(content.views.size()) {
  for (const std::uint32_t view : first_) links_[view] += kLinksOfView;
}

std::vector<std::uint32_t> ContentUses::distinct_views() const {
  std::vector<std::uint32_t> views;
  for (std::uint32_t view = 0; view < first_.size(); ++view)
    if (first_[view] == view) views.push_back(view);
  return views;
}

}  // namespace weft
