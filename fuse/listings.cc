#include "listings.h"

#include <iterator>
#include <utility>

namespace weft {
namespace {

DirEntry directory_entry(std::string name, Ino ino) {
  DirEntry entry;
  entry.name = std::move(name);
  entry.attr.ino = ino;
  entry.attr.type = FileType::directory;
  return entry;
}

}  // namespace

Result<std::shared_ptr<const Listing>> render_listing(Vfs& vfs, Ino dir) {
  WEFT_TRY(const Ino parent, vfs.parent(dir));
  WEFT_TRY(auto entries, vfs.list(dir));
  auto listing = std::make_shared<Listing>();
  listing->reserve(entries.size() + 2);
  listing->push_back(directory_entry(".", dir));
  listing->push_back(directory_entry("..", parent));
  listing->insert(listing->end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
  return std::shared_ptr<const Listing>(std::move(listing));
}

std::uint64_t Listings::keep(std::shared_ptr<const Listing> listing) {
  const std::lock_guard lock(mutex_);
  listings_.emplace(next_, std::move(listing));
  return next_++;
}

std::shared_ptr<const Listing> Listings::find(std::uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = listings_.find(handle);
  return found == listings_.end() ? nullptr : found->second;
}

void Listings::drop(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  listings_.erase(handle);
}

}  // namespace weft
