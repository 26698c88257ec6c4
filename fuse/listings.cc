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

Result<std::shared_ptr<const Listing>> render_listing(Vfs& vfs, Ino dir, Freshness::Time looked) {
  WEFT_TRY(const Ino parent, vfs.parent(dir));
  WEFT_TRY(auto entries, vfs.list(dir));
  auto listing = std::make_shared<Listing>();
  listing->looked = looked;
  auto& all = listing->entries;
  all.reserve(entries.size() + 2);
  all.push_back(directory_entry(".", dir));
  all.push_back(directory_entry("..", parent));
  all.insert(all.end(), std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()));
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

void Listings::fill(std::uint64_t handle, std::shared_ptr<const Listing> listing) {
  const std::lock_guard lock(mutex_);
  if (const auto found = listings_.find(handle); found != listings_.end()) found->second = std::move(listing);
}

void Listings::drop(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  listings_.erase(handle);
}

}  // namespace weft
