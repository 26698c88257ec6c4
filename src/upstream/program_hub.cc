#include "upstream/program_hub.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "hub/hub_client.h"
#include "hub/hub_settings.h"
#include "os/memory_file.h"
#include "os/programs.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndPause = 200ms;  // between two looks whether a pull has to end
constexpr auto kGrace = 10s;       // from SIGTERM to SIGKILL

// Clients wait for the answer, so a hub that does not answer is a failure soon.
HttpReaderOptions reading_of(const std::atomic<bool>& stopping) {
  HttpReaderOptions reading = hub_reading();
  reading.tries_max = 2;
  reading.asked_pause_max = 5s;
  reading.stall_max = 10s;
  reading.stopped = [&stopping] { return stopping.load(); };
  return reading;
}

// Returns the last line that a program wrote, which is its error.
std::string last_line(std::string_view text) {
  text = trimmed(text, " \r\n");
  const auto end = text.rfind('\n');
  return printable(end == std::string_view::npos ? text : text.substr(end + 1));
}

class ProgramHub final : public UpstreamHub {
 public:
  explicit ProgramHub(ProgramHubOptions options) : options_(std::move(options)), variables_(hub_variables(options_)) {}

  Result<std::optional<UpstreamCommit>> ask(const HubSource& source) override {
    if (stopping_) return cancelled(text_of(source.repository));
    WEFT_TRY(HubSettings settings, upstream_settings(options_));  // a token that its owner replaced counts from now on
    const bool has_token = !settings.token.empty();
    HubClient hub(std::move(settings), reading_of(stopping_));
    auto revision = hub.revision(source);
    if (!revision.ok()) return without(hub, source, std::move(revision).error(), has_token);
    UpstreamCommit commit{revision->commit, {}, revision->access()};
    WEFT_TRY(commit.files, hub.files(source.repository, commit.commit));
    if (commit.files.empty())
      return Error{Errc::not_found, fmt::format("{}: the repository has no file", text_of(source.repository))};
    // A hub lists the files of a gated repository to everybody.
    if (revision->is_gated) WEFT_CHECK(hub.facts(source.repository, commit.commit, commit.files.front().path));
    return std::optional(std::move(commit));
  }

  // Clients know the commit by now, and ask for its files.
  Status pull(const HubSource& source, const std::string& commit) override {
    const std::string what = fmt::format("{}@{}", text_of(source.repository), commit);
    if (stopping_) return cancelled(what);
    std::vector<std::string> words{"weft", "--store", options_.store, "pull", what};
    if (const auto tag = tag_of_revision(source.revision)) words.insert(words.end(), {"--tag", *tag});
    WEFT_TRY(const Fd errors, memory_file("messages of weft pull"));
    WEFT_TRY(const SideProgram program,
             SideProgram::start(options_.program, std::move(words), variables_, errors.get()));
    end_in_time(program);
    WEFT_TRY(const std::string how, program.wait());
    if (how.empty()) return {};
    if (stopping_) return cancelled(what);
    const std::string said = last_line(message_in(errors));
    return Error{Errc::io, said.empty() ? fmt::format("{}: weft pull {}", what, how) : said};
  }

  void stop() override { stopping_ = true; }

 private:
  static Error cancelled(const std::string& what) {
    return Error{Errc::cancelled, fmt::format("{}: weftd ends", what)};
  }

  // Returns nothing if the repository exists, which its main branch shows; else the error. A hub refuses a client
  // without a token alike, whether the repository is private or does not exist.
  static Result<std::optional<UpstreamCommit>> without(HubClient& hub, const HubSource& source, Error error,
                                                       bool has_token) {
    if (error.code == Errc::not_found && source.revision != kHubBranch) {
      const auto main = hub.revision({source.repository, std::string(kHubBranch)});
      if (main.ok()) return std::optional<UpstreamCommit>();
      error = main.error();
    }
    if (error.code == Errc::permission && !has_token) error.code = Errc::not_found;
    return error;
  }

  // Returns when the program has ended. It gets SIGTERM when the owner stops, and SIGKILL if it goes on.
  void end_in_time(const SideProgram& program) const {
    std::optional<Deadline> kill_at;
    while (!wait_for(program.fd(), POLLIN, kEndPause)) {
      if (!stopping_) continue;
      if (!kill_at) program.send(SIGTERM);
      if (!kill_at) kill_at = Deadline::clock::now() + kGrace;
      if (Deadline::clock::now() >= *kill_at) program.send(SIGKILL);
    }
  }

  const ProgramHubOptions options_;
  const std::vector<std::pair<std::string, std::string>> variables_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> hub_variables(const ProgramHubOptions& options) {
  return {{"HF_ENDPOINT", options.endpoint},
          {"HF_TOKEN", ""},
          {"HUGGING_FACE_HUB_TOKEN", ""},
          {"HF_TOKEN_PATH", options.token_file},
          {"HF_HUB_DISABLE_IMPLICIT_TOKEN", options.token_file.empty() ? "1" : ""}};
}

Result<HubSettings> upstream_settings(const ProgramHubOptions& options) {
  return read_hub_settings([variables = hub_variables(options), others = process_variables()](const std::string& name) {
    const auto own = std::ranges::find(variables, name, &std::pair<std::string, std::string>::first);
    return own == variables.end() ? others(name) : std::optional(own->second);
  });
}

Result<std::unique_ptr<UpstreamHub>> program_hub(ProgramHubOptions options) {
  WEFT_CHECK(upstream_settings(options));
  return std::unique_ptr<UpstreamHub>(std::make_unique<ProgramHub>(std::move(options)));
}

}  // namespace weft
