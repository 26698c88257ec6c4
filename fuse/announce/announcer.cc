#include "fuse/announce/announcer.h"

#include <sys/sysmacros.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "events/follower.h"
#include "fuse/announce/performer.h"
#include "fuse/announce/plan.h"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kForEver{-1};

// Parses "major:minor".
std::optional<dev_t> device_of(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto major_number = parse_u64(text.substr(0, colon));
  const auto minor_number = parse_u64(text.substr(colon + 1));
  if (!major_number || !minor_number) return std::nullopt;
  return makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number));
}

Result<std::vector<ModelEvent>> all_events(EventFollower& follower) {
  std::vector<ModelEvent> all;
  for (;;) {
    WEFT_TRY(auto events, follower.next());
    if (events.empty()) return all;
    std::ranges::move(events, std::back_inserter(all));
  }
}

}  // namespace

Status announce(Store& store, const MountOptions& options, SharedHead& head) {
  const auto device = device_of(shared_text(head.mount_device));
  if (!device) return Error{Errc::unsupported, "the device number of this mount is not known"};
  AnnounceWords& words = head.announce;
  words.intent = Announcing::nothing;
  Performer performer(options.directory, *device, words);
  const bool begun = words.begun.load() != 0;
  WEFT_TRY(EventFollower follower,
           EventFollower::begin(store, begun ? std::optional(words.position.load()) : std::nullopt));
  for (;; follower.wait(kForEver)) {
    WEFT_TRY(const auto events, all_events(follower));
    WEFT_TRY(const auto plan, announcements_of(store, events));
    for (const Announcement& announcement : plan) {
      const Status performed = performer.perform(announcement);
      if (!performed.ok() && performed.error().code == Errc::not_found) return {};
      WEFT_CHECK(performed);
    }
    words.position = follower.position();
  }
}

}  // namespace weft
