#include <poll.h>

#include <array>
#include <optional>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/watch_hook.h"
#include "events/follower.h"
#include "weft/names.h"

namespace weft {
namespace {

constexpr CommandInfo kInfo = {
    .name = "watch",
    .summary = "print what is published, tagged and removed",
    .description =
        "Prints a line for each version that is published or removed, and for each tag\n"
        "that is set, moved or deleted, of the models that the PREFIXes name: a model, or\n"
        "the first part of names (org for org/bert). Needs no daemon and no right to write.\n"
        "\n"
        "With --since, begins behind the event with this position. If the store does not\n"
        "know the position, the first line is \"restart\", and lines of the present state\n"
        "follow.\n"
        "\n"
        "--exec runs CMD by /bin/sh for each publish, and for each tag that leads to a\n"
        "version, with WEFT_EVENT, WEFT_MODEL, WEFT_VERSION, WEFT_TAGS and WEFT_PATH, the\n"
        "version's directory in a mount. One CMD runs at a time. If several events of one\n"
        "model come meanwhile, CMD runs for the newest alone. The version is not held: if\n"
        "it is removed while CMD runs, files that CMD has not opened are gone.\n",
    .examples =
        "weft watch org --json\n"
        "weft watch org/m --exec 'curl -d \"{\\\"model_path\\\": \\\"$WEFT_PATH\\\"}\" \"$URL\"'\n",
    .json =
        "{event, model, version, tags, bytes, new_bytes, time_ns, position} in each line;\n"
        "event is publish, tag, remove, memory, durable, lost or restart\n",
};

std::string tags_text(const ModelEvent& event) {
  std::string text;
  for (const std::string& tag : event.tags) text += (text.empty() ? "" : ", ") + tag;
  return text;
}

std::string text_of(const ModelEvent& event) {
  const std::string begin = fmt::format("{}  {:<7}", utc_time(event.time_ns), name_of(event.kind));
  if (event.kind == ModelEvent::Kind::restart) return begin;
  if (event.version == 0) return fmt::format("{}  {}  {} deleted", begin, event.model, tags_text(event));
  std::string text = fmt::format("{}  {}", begin, spec_of(event.model, event.version));
  if (event.kind == ModelEvent::Kind::publish) text += "  " + human_bytes(event.bytes);
  if (event.kind == ModelEvent::Kind::lost) text += "  " + event.why;
  return event.tags.empty() ? text : fmt::format("{}  {}", text, tags_text(event));
}

class WatchCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("PREFIX", prefixes_, OptionSet::Need::optional, "a model, or the first part of names");
    options.value("--since", "POSITION", since_, "begin behind the event with this position; 0 is the first of all");
    options.value("--exec", "CMD", exec_, "run CMD for each publish and each tag");
  }

  Status check_usage() const override {
    WEFT_CHECK(since());
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto since, this->since());
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(EventFollower follower, EventFollower::begin(*store, since));
    WatchHook hook(context, exec_, *store);
    for (;;) {
      WEFT_TRY(const auto events, follower.next());
      for (const ModelEvent& event : events) WEFT_CHECK(take(context, *store, event, hook));
      WEFT_CHECK(hook.look());
      if (events.empty()) wait(follower, hook);
    }
  }

 private:
  Result<std::optional<std::uint64_t>> since() const {
    if (since_.empty()) return std::optional<std::uint64_t>();
    const auto position = parse_u64(since_);
    if (position) return std::optional(*position);
    return Error{Errc::invalid, fmt::format("--since: expected a position, got \"{}\"", printable(since_))};
  }

  Status take(const Context& context, Store& store, ModelEvent event, WatchHook& hook) const {
    if (!concerns(event, prefixes_)) return {};
    WEFT_CHECK(show(context, store, event));
    hook.add(event);
    if (event.kind != ModelEvent::Kind::restart) return {};
    return present_state(store, event,
                         [&](ModelEvent present) { return take(context, store, std::move(present), hook); });
  }

  static Status show(const Context& context, Store& store, ModelEvent& event) {
    if (context.json) {
      add_new_bytes(store, event);
      JsonWriter json;
      write_event(json, event);
      context.print_json(json);
    } else {
      context.print("{}\n", text_of(event));
    }
    context.environment().out.flush();
    return context.environment().out.good() ? Status() : Status(Error{Errc::io, "standard output: cannot be written"});
  }

  static void wait(const EventFollower& follower, const WatchHook& hook) {
    std::array<pollfd, 2> events{pollfd{follower.fd(), POLLIN, 0}, pollfd{hook.fd(), POLLIN, 0}};
    ::poll(events.data(), events.size(), -1);
  }

  std::vector<std::string> prefixes_;
  std::string since_;
  std::string exec_;
};

}  // namespace

constinit const CommandEntry kWatchCommand = {kInfo, make<WatchCommand>};

}  // namespace weft
