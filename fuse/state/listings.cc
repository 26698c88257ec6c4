#include "fuse/state/listings.h"

#include <iterator>
#include <utility>

namespace weft {
namespace {

constexpr std::uint32_t kNumberMax = 0x7fffffff;  // a place is a positive off_t

DirEntry directory_entry(std::string name, Ino ino) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.attr.ino = ino;
  entry.attr.type = FileType::directory;
  return entry;
}

Result<Listing> render(Vfs& vfs, Ino dir, std::uint64_t position) {
  WEFT_TRY(const Attr attr, vfs.getattr(dir));
  WEFT_TRY(const Ino parent, vfs.parent(dir));
  WEFT_TRY(auto entries, vfs.list(dir));
  Listing listing{dir, attr.lasting_entries, {}, position, 0};
  auto& all = listing.entries;
  all.reserve(entries.size() + 2);
  all.push_back(directory_entry(".", dir));
  all.push_back(directory_entry("..", parent));
  all.insert(all.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
  return listing;
}

std::size_t memory_bytes(const Listing& listing) {
  std::size_t bytes = sizeof listing + listing.entries.capacity() * sizeof(DirEntry);
  for (const DirEntry& entry : listing.entries) bytes += entry.name.capacity();
  return bytes;
}

}  // namespace

ListingPlace ListingPlace::at(std::int64_t offset) {
  if (offset < 0) return {};
  return {static_cast<std::uint32_t>(offset >> 32U), static_cast<std::uint32_t>(offset)};
}

std::shared_ptr<const Listing> Listings::known(Ino dir, ListingPlace place, std::uint64_t position) {
  if (place.number != 0) {
    auto listing = numbered_.find(place.number);
    return listing && listing->dir == dir ? listing : nullptr;
  }
  auto listing = latest_.find(dir);
  if (!listing) return nullptr;
  const bool usable = place.index > 0 ? listing->lasting : listing->position == position;
  return usable ? listing : nullptr;
}

std::uint32_t Listings::next_number() {
  const std::lock_guard lock(mutex_);
  numbers_ = numbers_ >= kNumberMax ? 1 : numbers_ + 1;
  return numbers_;
}

Result<Listings::Found> Listings::find(Vfs& vfs, Ino dir, ListingPlace place) {
  WEFT_TRY(const std::uint64_t position, vfs.position());
  if (auto listing = known(dir, place, position)) {
    const bool current = listing->position == position;
    return Found{std::move(listing), current};
  }
  WEFT_TRY(Listing rendered, render(vfs, dir, position));
  if (!rendered.lasting) rendered.number = next_number();
  const std::size_t bytes = memory_bytes(rendered);
  auto listing = std::make_shared<const Listing>(std::move(rendered));
  latest_.put(dir, listing, bytes);
  if (!listing->lasting) numbered_.put(listing->number, listing, bytes);
  return Found{std::move(listing), true};
}

void Listings::trim() {
  latest_.drop_unused(kKeptFor);
  numbered_.drop_unused(kNumberedKeptFor);
}

}  // namespace weft
