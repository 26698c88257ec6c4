#include <chrono>
#include <filesystem>
#include <future>
#include <optional>

#include "base/plain_text.h"
#include "base/text.h"
#include "cli/shared/carry_state.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/machine_key.h"
#include "cli/shared/mounts.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "cli/transfer/transfer_commands.h"
#include "os/file_lock.h"
#include "os/programs.h"
#include "os/sys.h"
#include "weft/programs/operations.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

// As env(1) and timeout(1).
constexpr int kExitOwnFailure = 125;
constexpr int kExitCannotRun = 126;
constexpr int kExitNoCommand = 127;

constexpr std::uint64_t kQuietSecondsMax = 86400;
// Between two looks at the directory: a quarter of the time that --quiet-after names, within these.
constexpr std::chrono::milliseconds kLookPauseMin{200};
constexpr std::chrono::milliseconds kLookPauseMax{15'000};

constexpr CommandInfo kCarryInfo = {
    .name = "carry",
    .summary = "run a command with a directory that its last run filled",
    .description =
        "Writes the newest version of NAME for a key into DIR, runs COMMAND, and publishes\n"
        "DIR as a new version if COMMAND exits with 0 and a file in DIR has changed. The\n"
        "caches of torch.compile, Triton and vLLM are such directories: the second machine\n"
        "with the same key compiles nothing. DIR must be empty and yours, or not exist.\n"
        "\n"
        "The key is a text that says which machines can use each other's files. Without\n"
        "--key it has the model and the vector instructions of the processor, the models\n"
        "and the driver of NVIDIA GPUs, and the versions of torch, triton and vllm of the\n"
        "first python3 along PATH. The versions are those of the data set\n"
        "NAME/key-DIGEST, with the key in their message; the first version of a key begins\n"
        "with an empty DIR. Files keep their x bits, and not their times.\n"
        "\n"
        "COMMAND has the standard streams of weft, and weft passes signals on to it. weft\n"
        "exits as COMMAND does, or with 128 + N if signal N ended it; with 127 if COMMAND\n"
        "is not found, 126 if it cannot run, and 125 if weft fails itself, also in the\n"
        "publish after a COMMAND that exited with 0.\n",
    .examples =
        "weft carry caches/inductor /tmp/inductor -- \\\n"
        "     env TORCHINDUCTOR_CACHE_DIR=/tmp/inductor python3 serve.py\n"
        "weft carry caches/vllm ~/.cache/vllm --quiet-after 2m --keep 3 -- vllm serve llama\n"
        "weft carry build --key \"gcc 12, $(uname -m)\" ./ccache -- make\n",
    .interrupted = "DIR is not published",
};

class CarryCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("NAME", name_, OptionSet::Need::required,
                     "the begin of the data sets' names, such as caches/vllm");
    options.argument("DIR", directory_, OptionSet::Need::required, "the directory; its parent must exist");
    options.command("COMMAND", command_, "the command and its arguments");
    options.value("--key", "TEXT", key_option_, "the key, in place of the facts of this machine");
    options.value("--quiet-after", "TIME", quiet_after_,
                  "also publish while COMMAND runs, when nobody has written to DIR for TIME, such as 90, 5m or 1h");
    options.value("--keep", "N", keep_option_,
                  "then remove versions of this key that have no tag, but for the newest N");
    options.flag("--always", always_, "publish DIR after any exit of COMMAND");
  }

  Status check_usage() override {
    WEFT_CHECK(check_model_name(name_));
    if (key_option_ && key_option_->empty()) return Error{Errc::invalid, "--key: expected a text, got an empty one"};
    if (key_option_) WEFT_CHECK(check_message(message_of(*key_option_)));
    if (!quiet_after_.empty()) {
      const auto seconds = parse_time(quiet_after_, kQuietSecondsMax);
      if (!seconds || *seconds == 0)
        return Error{Errc::invalid,
                     fmt::format("--quiet-after: expected a time of 1s to 1d, such as 90 or 5m, got \"{}\"",
                                 printable(quiet_after_))};
      quiet_ = std::chrono::seconds(*seconds);
    }
    keep_ = parse_u64(keep_option_).value_or(0);
    if (!keep_option_.empty() && keep_ == 0)
      return Error{Errc::invalid, fmt::format("--keep: expected a number from 1, got \"{}\"", printable(keep_option_))};
    return {};
  }

  Result<int> run(Context& context) override {
    silent_ = context.quiet;
    auto code = carry(context);
    if (code.ok() || (code.error().code == Errc::cancelled && context.environment().interrupt != 0)) return code;
    context.note(code.error().message);
    return kExitOwnFailure;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::string message_of(std::string_view key) { return fmt::format("key: {}", key); }

  Result<int> carry(Context& context) {
    key_ = key_option_ ? *key_option_ : machine_key("", context.environment().variable("PATH").value_or(""));
    model_ = fmt::format("{}/{}", name_, key_component(key_));
    WEFT_CHECK(check_model_name(model_));
    if (command_.front().find('/') == std::string::npos && !find_program(context.environment(), command_.front())) {
      context.note(fmt::format("{}: no such command along PATH", command_.front()));
      return kExitNoCommand;
    }
    WEFT_TRY(lock_, lock());
    WEFT_CHECK(begin(context));
    WEFT_CHECK(check_owner());
    WEFT_TRY(published_, state_of_directory(directory_));
    if (context.environment().interrupt != 0) return Error{Errc::cancelled, "interrupted"};
    auto command = FrontCommand::start(command_);
    if (!command.ok()) {
      context.note(command.error().message);
      return command.error().code == Errc::not_found ? kExitNoCommand : kExitCannotRun;
    }
    WEFT_TRY(const int code, wait(context, **command));
    command->reset();  // from here on, Ctrl-C ends the publish
    return finish(context, code);
  }

  // Makes the directory unless it exists, and keeps other commands of weft carry out of it.
  Result<Fd> lock() const {
    if (const Status made = make_directory(directory_); !made.ok() && made.error().code != Errc::exists)
      return made.error();
    return lock_directory(directory_);
  }

  // Makes the directory as the newest version has it.
  Status begin(const Context& context) {
    WEFT_TRY(const auto store, context.open_to_read());
    say(context, fmt::format("the key is {}", key_.empty() ? "empty" : key_));
    const auto newest = version_of(*store, model_);
    if (!newest.ok() && newest.error().code != Errc::not_found) return newest.error();
    if (!newest.ok()) {
      WEFT_CHECK(check_empty());
      say(context, fmt::format("{} begins empty: {} has no version", directory_, model_));
      return {};
    }
    began_ = spec_of(*newest);
    if (newest->kind != VersionKind::dataset)
      return Error{Errc::exists, fmt::format("{}: expected a data set, got a model", began_)};
    if (store->cluster()) WEFT_CHECK(fetch(context));
    ProgressBar bar = context.progress();
    WEFT_TRY(const ExportReport report, export_version(*store, context.resolver(), began_, directory_, bar));
    say(context, fmt::format("{} begins as {}: {}, {}", directory_, began_, count_of(report.files, "file"),
                             human_bytes(report.bytes)));
    return {};
  }

  // Fetches the bytes that are not local.
  Status fetch(const Context& context) const {
    WEFT_CHECK(call_daemon<FetchReport>(context, "prefetch", PrefetchRequest{began_, {}}));
    return {};
  }

  Status check_empty() const {
    WEFT_TRY(const auto names, list_directory(directory_));
    if (names.empty()) return {};
    return Error{Errc::exists, fmt::format("{}: expected an empty directory, got {} (\"{}\", …)", directory_,
                                           count_of(names.size(), "entry"), names.front())};
  }

  // Another owner could write what the command runs, and what the next commands of this key run.
  Status check_owner() const {
    WEFT_TRY(const struct stat st, stat_file(directory_));
    if (st.st_uid == own_user()) return {};
    return Error{Errc::permission, fmt::format("{}: expected a directory of user {}, got one of user {}", directory_,
                                               own_user(), st.st_uid)};
  }

  // Waits for the command. With --quiet-after, publishes meanwhile in a thread, so that signals still reach the
  // command.
  Result<int> wait(Context& context, FrontCommand& command) {
    const bool was_quiet = std::exchange(context.quiet, true);  // no progress bar beside the command's output
    auto code = wait_quietly(context, command);
    if (publishing_.valid()) take_published(context);
    context.quiet = was_quiet;
    return code;
  }

  Result<int> wait_quietly(const Context& context, FrontCommand& command) {
    const auto pause =
        std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(quiet_) / 4, kLookPauseMin, kLookPauseMax);
    DirectoryState seen = published_;
    Clock::time_point since = Clock::now();
    for (;;) {
      WEFT_TRY(const auto code, command.wait(quiet_.count() > 0 ? pause : kLookPauseMax));
      if (code) return *code;
      if (quiet_.count() == 0) continue;
      if (publishing_.valid() && publishing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) continue;
      if (publishing_.valid()) take_published(context);
      const auto state = state_of_directory(directory_);
      if (!state.ok()) continue;
      if (*state != seen) {
        seen = *state;
        since = Clock::now();
      } else if (seen != published_ && seen != tried_ && seen.files > 0 && Clock::now() - since >= quiet_) {
        tried_ = seen;
        publishing_ = std::async(std::launch::async, [this, &context] { return publish(context); });
      }
    }
  }

  // Reports the publish that was begun while the command runs. A failed one is tried again after the next write, and at
  // the end.
  void take_published(const Context& context) {
    const Result<ImportReport> report = publishing_.get();
    if (report.ok()) {
      published_ = tried_;
      tell(context, *report);
    } else {
      context.note(fmt::format("{}: not published yet: {}", directory_, report.error().message));
    }
  }

  Result<int> finish(const Context& context, int code) {
    if (code != kExitDone && !always_) {
      say(context, fmt::format("{} exited with {}: {} is not published (--always)", printable(command_.front()), code,
                               directory_));
      return code;
    }
    const Status done = publish_changes(context);
    if (!done.ok() && code != kExitDone) context.note(done.error().message);  // the command's own failure counts
    return done.ok() || code != kExitDone ? Result<int>(code) : done.error();
  }

  Status publish_changes(const Context& context) {
    WEFT_TRY(const DirectoryState state, state_of_directory(directory_));
    if (state == published_ || state.files == 0) {
      say(context, fmt::format("{}: {}; no new version", directory_,
                               state.files == 0 ? "it has no files" : "nothing has changed"));
      return {};
    }
    WEFT_TRY(const ImportReport report, publish(context));
    tell(context, report);
    return {};
  }

  Result<ImportReport> publish(const Context& context) const {
    ImportOptions options;
    options.paths = {directory_};
    options.links = Links::skip;
    options.name = model_;
    options.dataset = true;
    options.find_parent = std::nullopt;
    options.message = message_of(key_);
    options.keep = keep_;
    WEFT_TRY(const auto writer, context.writer());
    return writer->import(options);
  }

  void tell(const Context& context, const ImportReport& report) const {
    for (const std::string& line : report.left_out) say(context, line);
    const std::string spec = spec_of(report.outcome.version);
    if (!report.outcome.made) return say(context, fmt::format("{} has this content already; no new version", spec));
    say(context, fmt::format("{} is published: {}, {}; {} new", spec, count_of(report.files, "file"),
                             human_bytes(report.logical_bytes), human_bytes(report.outcome.new_bytes)));
    if (!report.not_removed.empty()) context.note(fmt::format("--keep: {}", report.not_removed));
  }

  // The standard output is the command's.
  void say(const Context& context, const std::string& line) const {
    if (!silent_) context.note(line);
  }

  std::string name_;
  std::string directory_;
  std::vector<std::string> command_;
  std::optional<std::string> key_option_;
  std::string quiet_after_;
  std::string keep_option_;
  bool always_ = false;
  std::chrono::seconds quiet_{0};  // of --quiet-after; 0: not given
  std::uint64_t keep_ = 0;

  std::string key_;
  std::string model_;         // NAME/key-…
  std::string began_;         // the version that the directory began as; "": it began empty
  Fd lock_;                   // on the directory
  bool silent_ = false;       // --quiet
  DirectoryState published_;  // as it was last published, or as it began
  DirectoryState tried_;      // of the last publish while the command ran
  std::future<Result<ImportReport>> publishing_;
};

}  // namespace

constinit const CommandEntry kCarryCommand = {kCarryInfo, make<CarryCommand>};

}  // namespace weft
