#include "fuse/announce/announcer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "events/follower.h"
#include "fuse/announce/plan.h"
#include "fuse/kernel/announcing.h"
#include "os/entries.h"
#include "os/sys.h"

namespace weft {
namespace {

// Performs announcements through the mount. For the one thread whose pid AnnounceWords holds.
class Performer {
 public:
  // `directory` is the mount point, `device` the device number of its files. `words` outlive this.
  Performer(std::string directory, dev_t device, AnnounceWords& words)
      : mount_(std::move(directory)), device_(device), words_(words) {}

  // Skips an announcement that is obsolete or already visible. Errc::not_found: the mount is gone. Keeps no file open
  // between calls, so that the mount can be unmounted.
  Status perform(const Announcement& announcement);

 private:
  int act(int directory, const Announcement& announcement);
  int change(int directory, const Announcement& announcement);

  const std::string mount_;
  const dev_t device_;
  AnnounceWords& words_;
};

// Tries of a mkdir. While the kernel has the name in its cache it answers EEXIST without asking the server. The lookup
// of kExpire + name makes the kernel forget it.
constexpr int kTries = 20;
constexpr std::chrono::milliseconds kPause{1};

// Announces to the server what the next system call is for, while this object lives.
class Intent {
 public:
  Intent(AnnounceWords& words, Announcing what) : words_(words) { words_.intent = what; }
  Intent(const Intent&) = delete;
  Intent& operator=(const Intent&) = delete;
  ~Intent() { words_.intent = Announcing::nothing; }

 private:
  AnnounceWords& words_;
};

// Returns 0 or the errno of the failed system call.
int errno_after(const Status& done) {
  return done.ok() ? 0 : done.error().os_error;
}

// True if the mount is gone: unmounted, its connection aborted, or hidden by another file system.
bool is_gone(int failed) {
  return failed == ENOTCONN || failed == ECONNABORTED || failed == ESTALE || failed == ENODEV;
}

// True if the change is obsolete or already visible.
bool is_passed_over(int failed) {
  return failed == ENOENT || failed == EEXIST || failed == EBUSY || failed == ENOTDIR;
}

Error gone(const std::string& path) {
  return Error{Errc::not_found, fmt::format("{}: the mount is not there any more", path)};
}

// Returns 0 or an errno.
int Performer::change(int directory, const Announcement& announcement) {
  const Intent announced(words_, announcement.kind);
  const std::string& name = announcement.name;
  switch (announcement.kind) {
    case Announcement::Kind::nothing:
      return 0;
    case Announcement::Kind::creation:
      return errno_after(make_directory_at(directory, name, 0777));
    case Announcement::Kind::removal_of_dir:
      return errno_after(remove_at(directory, name, AT_REMOVEDIR));
    case Announcement::Kind::removal_of_link:
      return errno_after(remove_at(directory, name));
    case Announcement::Kind::replacement:
      return errno_after(rename_at(directory, std::string(kFlip), directory, name));
  }
  return 0;
}

int Performer::act(int directory, const Announcement& announcement) {
  if (announcement.kind != Announcement::Kind::creation) return change(directory, announcement);
  const std::string expiry = std::string(kExpire) + announcement.name;
  for (int tries = 1;; ++tries) {
    const int failed = change(directory, announcement);
    if (failed != EEXIST || tries == kTries) return failed;
    static_cast<void>(stat_at(directory, expiry));
    std::this_thread::sleep_for(kPause);
  }
}

Status Performer::perform(const Announcement& announcement) {
  const std::string path = mount_ + "/" + announcement.directory;
  const auto directory = open_file(path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!directory.ok())  // the model was removed again
    return is_gone(directory.error().os_error) ? Status(gone(path)) : Status();
  WEFT_TRY(const auto facts, stat_fd(directory->get(), path));
  if (facts.st_dev != device_) return gone(path);
  const int failed = act(directory->get(), announcement);
  if (is_gone(failed)) return gone(path);
  if (failed != 0 && !is_passed_over(failed))
    log_warning("announcing {}/{}: {}", path, announcement.name, sys_error(failed, "").message);
  return {};
}

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
