#include <poll.h>

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/shared/catalog.h"
#include "cli/shared/context.h"
#include "cli/shared/mounts.h"
#include "cli/shared/table.h"
#include "events/event.h"
#include "events/follower.h"
#include "os/programs.h"
#include "os/unix_socket.h"
#include "weft/names.h"
#include "weft/store/store.h"

namespace weft {
namespace {

// Runs the command of `weft watch --exec`: one at a time, and only for the newest of the events that arrived meanwhile.
// One thread. /bin/sh runs the command, for publishes and for tags that are set. The command ends with this process.
class WatchHook {
 public:
  // Runs nothing if `command` is "". `context` and `store` outlive this.
  WatchHook(const Context& context, std::string command, Store& store)
      : context_(context), command_(std::move(command)), store_(store) {}

  // Queues an event. Replaces a queued publish of the same model, or a queued event of the same tags of the model.
  void add(const ModelEvent& event);
  // Handles the end of a finished command. Starts the next queued one, unless a command is running.
  Status poll();
  int fd() const { return running_ ? running_->command.fd() : -1; }  // readable when the running command has ended

 private:
  struct Running {
    SideProgram command;
    std::string what;
  };
  Status start(const ModelEvent& event);
  Status take_end();

  const Context& context_;
  const std::string command_;
  Store& store_;
  std::vector<ModelEvent> waiting_;
  std::optional<Running> running_;
};

SideProgram::Variables variables_of(const ModelEvent& event, Store& store) {
  return {{"WEFT_EVENT", std::string(name_of(event.kind))},
          {"WEFT_MODEL", event.model},
          {"WEFT_VERSION", std::to_string(event.version)},
          {"WEFT_TAGS", joined(event.tags, " ")},
          {"WEFT_PATH", mounted_path(store, event.model, event.version)}};
}

void WatchHook::add(const ModelEvent& event) {
  const bool told = event.kind == ModelEvent::Kind::publish || event.kind == ModelEvent::Kind::tag;
  if (command_.empty() || !told || event.version == 0) return;
  std::erase_if(waiting_, [&event](const ModelEvent& older) {
    return older.kind == event.kind && older.model == event.model &&
           (event.kind == ModelEvent::Kind::publish || older.tags == event.tags);
  });
  waiting_.push_back(event);
}

Status WatchHook::poll() {
  if (running_ && wait_for(running_->command.fd(), POLLIN, std::chrono::milliseconds(0))) WEFT_CHECK(take_end());
  if (running_ || waiting_.empty()) return {};
  const ModelEvent event = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  return start(event);
}

Status WatchHook::start(const ModelEvent& event) {
  const auto variables = variables_of(event, store_);
  context_.environment().out.flush();
  WEFT_TRY(SideProgram command, SideProgram::start_shell(command_, variables));
  running_.emplace(Running{std::move(command), spec_of(event.model, event.version)});
  return {};
}

Status WatchHook::take_end() {
  WEFT_TRY(const std::string how, running_->command.wait());
  if (!how.empty()) context_.note(fmt::format("watch: the command for {} {}", running_->what, how));
  running_.reset();
  return {};
}

constexpr CommandInfo kWatchInfo = {
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
        "{event, model, version, tags, user, node, publisher, bytes, new_bytes, time_ns,\n"
        " position} in each line;\n"
        "event is publish, tag, remove, purge, undelete, note, memory, durable, lost,\n"
        "rename or restart\n",
};

std::string by_text(const Author& by) {
  return by == Author{} ? "" : "  by " + author_text(by);
}

std::string event_text(const ModelEvent& event) {
  const std::string begin = fmt::format("{}  {:<7}", utc_time(event.time_ns), name_of(event.kind));
  if (event.kind == ModelEvent::Kind::restart) return begin;
  if (event.kind == ModelEvent::Kind::rename) return fmt::format("{}  {} -> {}", begin, event.model, event.to);
  if (event.version == 0)
    return fmt::format("{}  {}  {} deleted{}", begin, event.model, joined(event.tags, ", "), by_text(event.by));
  std::string text = fmt::format("{}  {}", begin, spec_of(event.model, event.version));
  if (event.kind == ModelEvent::Kind::publish) text += "  " + human_bytes(event.bytes);
  if (event.kind == ModelEvent::Kind::lost) text += "  " + event.why;
  if (!event.tags.empty()) text += "  " + joined(event.tags, ", ");
  return text + by_text(event.by);
}

class WatchCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.arguments("PREFIX", prefixes_, OptionSet::Need::optional, "a model, or the first part of names");
    options.value("--since", "POSITION", since_, "begin behind the event with this position; 0 is the first of all");
    options.value("--exec", "CMD", exec_, "run CMD for each publish and each tag");
  }

  Status check_usage() override {
    position_ = parse_u64(since_);
    if (since_.empty() || position_) return {};
    return Error{Errc::invalid, fmt::format("--since: expected a position, got \"{}\"", printable(since_))};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(EventFollower follower, EventFollower::begin(*store, position_));
    WatchHook hook(context, exec_, *store);
    for (;;) {
      WEFT_TRY(const auto events, follower.next());
      for (const ModelEvent& event : events) WEFT_CHECK(take(context, *store, event, hook));
      WEFT_CHECK(hook.poll());
      if (events.empty()) wait(follower, hook);
    }
  }

 private:
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
      context.print("{}\n", event_text(event));
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
  std::optional<std::uint64_t> position_;  // of --since
  std::string exec_;
};

}  // namespace

constinit const CommandEntry kWatchCommand = {kWatchInfo, make<WatchCommand>};

}  // namespace weft
