// How fetched bytes get into their pack: by themselves, where reads land in it, else by a write.
#include <fcntl.h>

#include <utility>

#include <fmt/core.h>

#include "base/sys.h"
#include "node/fetcher_impl.h"

namespace weft {
namespace {

constexpr std::string_view kWhere = "a pack of fetched bytes";

Result<Transfer::Place> make_place(const FetchPack& pack, const FetchOptions& options) {
  WEFT_TRY(Fd file, open_file(fmt::format("/proc/self/fd/{}", pack.fd()), O_RDWR));
  WEFT_TRY(auto area, LandingArea::map(std::move(file), pack.size()));
  WEFT_TRY(auto landing, options.land(area->memory(), area));
  return Transfer::Place{std::move(area), std::move(landing)};
}

}  // namespace

// Blocks are taken before anything lands: there is no error to tell of a full disk afterwards. So are pages: the thread
// that receives for all would take them one by one.
Transfer::Place Fetcher::place_of(Transfer& transfer, Range range) {
  if (!options_.land || !allocate(transfer.pack->fd(), range.offset, range.length, kWhere).ok()) return {};
  Transfer::Place place = shared_place(transfer);
  if (place.area) place.area->take_pages(range.offset, range.length);
  return place;
}

Transfer::Place Fetcher::shared_place(Transfer& transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (transfer.place.area) return transfer.place;
  }
  auto made = make_place(*transfer.pack, options_);
  if (!made.ok()) return {};
  const std::lock_guard lock(mutex_);
  if (!transfer.place.area) transfer.place = std::move(made).value();
  return transfer.place;
}

// `bytes` are empty when none came.
Status Fetcher::put_in_pack(Transfer& transfer, std::uint64_t offset, const Transfer::Place& place, const ReadAid& aid,
                            std::span<const std::byte> bytes) {
  if (aid.spoiled) {
    WEFT_CHECK(place.area->leave());
    const std::lock_guard lock(mutex_);
    if (transfer.place.area == place.area) transfer.place = {};
  }
  if (bytes.empty()) return {};
  const bool landed = place.area && bytes.data() == place.area->memory().data() + offset;
  if (landed && !place.area->left()) return {};
  return write_exact(transfer.pack->fd(), offset, bytes, kWhere);
}

}  // namespace weft
