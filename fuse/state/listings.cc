#include "fuse/state/listings.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weft {
namespace {

constexpr ListPlace kSelfPlace = 1, kParentPlace = 2;

DirEntry directory_entry(std::string name, Ino ino, ListPlace place) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.attr.ino = ino;
  entry.attr.type = FileType::directory;
  entry.place = place;
  return entry;
}

std::size_t memory_bytes(const ListingPage& listing) {
  std::size_t bytes = sizeof listing + listing.page.entries.capacity() * sizeof(DirEntry) +
                      listing.places.capacity() * sizeof(ListPlace);
  for (const DirEntry& entry : listing.page.entries) bytes += entry.name.capacity();
  return bytes;
}

Result<std::shared_ptr<const ListingPage>> make_page(Vfs& vfs, Ino dir, ListPlace from, std::uint64_t position) {
  WEFT_TRY(const Attr attr, vfs.getattr(dir));
  auto out = std::make_shared<ListingPage>(ListingPage{attr.lasting_entries, from, {}, {}, position});
  WEFT_TRY(out->page, vfs.list(dir, from));
  auto& entries = out->page.entries;
  if (from == 0) {
    WEFT_TRY(const Ino parent, vfs.parent(dir));
    entries.insert(entries.begin(),
                   {directory_entry(".", dir, kSelfPlace), directory_entry("..", parent, kParentPlace)});
  }
  entries.shrink_to_fit();
  for (const DirEntry& entry : entries) out->places.push_back(entry.place);
  out->bytes = memory_bytes(*out);
  return std::shared_ptr<const ListingPage>(std::move(out));
}

}  // namespace

// Returns the page with the entry after `place`, if any. A reader at the end of a page continues in one that is not
// older.
Listings::Found Listings::known(const Pages& pages, ListPlace place, std::uint64_t position) {
  std::uint64_t oldest = 0;
  for (const auto& listing : pages) {
    if (listing->position < oldest) break;
    const bool current = listing->position == position;
    if (listing->from == place && (place != 0 || current)) return {listing, 0, current};
    const auto found = std::ranges::find(listing->places, place);
    if (place == 0 || found == listing->places.end()) continue;
    const auto index = static_cast<std::size_t>(found - listing->places.begin()) + 1;
    if (index < listing->places.size() || listing->page.last) return {listing, index, current};
    oldest = listing->position;
  }
  return {};
}

void Listings::keep(Ino dir, const std::shared_ptr<const ListingPage>& made) {
  const MutexLock lock(keeping_);
  Pages pages;
  if (const auto known = directories_.find(dir)) pages = *known;
  const auto newer = [&](const auto& page) { return page->position > made->position; };
  pages.insert(std::ranges::find_if_not(pages, newer), made);
  std::size_t bytes = 0;
  for (const auto& page : pages) bytes += page->bytes;
  while (pages.size() > 1 && (bytes > kBytesEachMax || pages.size() > kPagesEachMax)) {
    bytes -= pages.back()->bytes;
    pages.pop_back();
  }
  directories_.put(dir, std::make_shared<const Pages>(std::move(pages)), bytes + kBytesBeside);
}

Result<Listings::Found> Listings::find(Vfs& vfs, Ino dir, ListPlace place) {
  WEFT_TRY(const std::uint64_t position, vfs.position());
  if (const auto pages = directories_.find(dir)) {
    Found found = known(*pages, place, position);
    if (found.listing) return found;
  }
  const bool at_beginning = place <= kParentPlace;
  WEFT_TRY(const auto made, make_page(vfs, dir, at_beginning ? 0 : place, position));
  keep(dir, made);
  return Found{made, at_beginning ? static_cast<std::size_t>(place) : 0, true};
}

}  // namespace weft
