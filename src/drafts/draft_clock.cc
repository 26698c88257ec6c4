#include "drafts/draft_clock.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/log.h"
#include "os/entries.h"
#include "os/file_ops.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kMarkBytesMax = 4096;
constexpr std::uint64_t kSlackS = 600;          // between clock and uptime: NTP sets a clock that goes wrong
constexpr std::uint64_t kOffMaxS = 24 * 3600U;  // longest time without power that is believed

ClockMark present() {
  return {now_ns() / 1'000'000'000, uptime_s(), boot_id(), 0};
}

// Returns the mark of the last look, if there was one. A mark that cannot be read explains no time at all.
std::optional<ClockMark> read_mark(int folder) {
  const auto file = open_at(folder, "clock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.ok() && file.error().code == Errc::not_found) return {};
  const auto json = JsonValue::parse(read_line(file, kMarkBytesMax));
  auto mark = json.ok() ? decode_fields<ClockMark>(*json) : Result<ClockMark>(json.error());
  return mark.ok() ? *std::move(mark) : ClockMark{};
}

Status write_mark(int folder, const ClockMark& mark) {
  const std::string text = encode_fields(mark) + "\n";
  WEFT_TRY(const Fd fd, open_at(folder, "clock.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600));
  WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(text)), "drafts/clock.new"));
  return rename_at(folder, "clock.new", folder, "clock");
}

ClockMark look(int folder) {
  const std::optional<ClockMark> before = read_mark(folder);
  return before ? after(*before, present()) : present();
}

}  // namespace

void fields(JsonFields& f, ClockMark& m) {
  f("wall_s", m.wall_s)("uptime_s", m.uptime_s)("boot", m.boot)("believed_s", m.believed_s);
}

ClockMark after(const ClockMark& before, ClockMark now) {
  const bool same_boot = before.boot == now.boot && before.uptime_s <= now.uptime_s;
  const std::uint64_t explained = same_boot ? now.uptime_s - before.uptime_s + kSlackS : kOffMaxS;
  const bool jumped = now.wall_s > before.wall_s && now.wall_s - before.wall_s > explained;
  now.believed_s = jumped ? now.wall_s : std::min(before.believed_s, now.wall_s);
  return now;
}

std::uint64_t believed_since(int folder) {
  return look(folder).believed_s;
}

std::uint64_t mark_clock(int folder) {
  const ClockMark mark = look(folder);
  if (mark.believed_s != 0 && mark.believed_s == mark.wall_s)
    log_warning("the clock went further than the machine ran since the last look: drafts in new/ get their age anew");
  if (const Status written = write_mark(folder, mark); !written.ok())
    log_warning("drafts/clock: {}", written.error().message);
  return mark.believed_s;
}

}  // namespace weft
