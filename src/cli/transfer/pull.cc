#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>

#include "base/text.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/import_lines.h"
#include "cli/shared/pull_claim.h"
#include "cli/shared/table.h"
#include "cli/shared/writer.h"
#include "cli/transfer/transfer_commands.h"
#include "drafts/old_drafts.h"
#include "drafts/pull_area.h"
#include "hub/hub_client.h"
#include "hub/hub_settings.h"
#include "os/sys.h"
#include "pull/known_files.h"
#include "pull/pull_follower.h"
#include "pull/pull_names.h"
#include "pull/pull_source.h"
#include "pull/received_note.h"
#include "pull/receiving.h"
#include "weft/bytes/cold.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

constexpr CommandInfo kPullInfo = {
    .name = "pull",
    .summary = "publish a revision of a model hub, or files at URLs, as a version",
    .description =
        "Receives the files of SOURCE from the Hugging Face hub, or from a server that\n"
        "speaks like it, and publishes them as `weft import` does. SOURCE is\n"
        "hf:ORG/NAME[@REVISION] or hf:datasets/ORG/NAME[@REVISION], and REVISION is a\n"
        "branch, a tag, refs/pr/N or a commit (default: main). weft finds the commit first\n"
        "and receives the files of that commit, whatever happens to the branch meanwhile.\n"
        "\n"
        "The version gets the repository's name and, unless --tag gives another, the branch\n"
        "or tag as its tag. It keeps the commit, and the message has the source. Each file\n"
        "is verified by its size and by the digest that the hub lists: the SHA-256 of a\n"
        "file in LFS, else the SHA-1 of the git blob.\n"
        "\n"
        "If a version of this name has the files of the commit, weft receives nothing and\n"
        "sets the tag. Otherwise it receives only the files that no stored version has. A\n"
        "pull that fails or is interrupted publishes nothing. What it received stays, and\n"
        "the next pull of the repository goes on there.\n"
        "\n"
        "A SOURCE may also be one or more URLs of files, each with its --sha256.\n"
        "\n"
        "--include and --exclude select files of a repository by their paths. '*' stands\n"
        "for any run of bytes, also of '/', '?' for any byte and [a-z] for one of a set.\n"
        "A pattern that ends with '/' selects everything below that directory.\n"
        "\n"
        "The variables HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HOME, HF_HUB_OFFLINE,\n"
        "HTTPS_PROXY and NO_PROXY have the same effects as for the hub's own programs. The\n"
        "token goes to HF_ENDPOINT alone and is not stored.\n",
    .examples =
        "weft pull hf:sentence-transformers/all-MiniLM-L6-v2\n"
        "weft pull hf:org/bert@v2 --name bert --tag stable\n"
        "weft pull hf:org/bert --include '*.safetensors' --include '*.json'\n"
        "weft pull hf:datasets/org/c4 --exclude 'raw/'\n"
        "weft pull hf:org/bert --check\n"
        "weft pull https://example.org/bert.gguf --name bert --sha256 DIGITS\n",
    .json =
        "{model, version, made, endpoint, repository, revision, commit, tags: [TAG],\n"
        " files, bytes, received_bytes, resumed_bytes, known_files, known_bytes, new_bytes,\n"
        " shared_bytes}\n"
        "made is false if no new version was made; received_bytes came from the hub now,\n"
        "resumed_bytes came in an earlier pull that did not end, here or on another node,\n"
        "and known_bytes are those of known_files, which stored versions have; with URLs,\n"
        "endpoint, revision and commit are empty\n"
        "with --check: received_bytes would come; version is null unless one has the files\n",
    .interrupted = "the store is as it was; the next pull goes on with what was received",
};

constexpr std::uint64_t kWaitSecondsMax = 30 * 86'400;
// How long a pull that has lost its claim waits for weftd and etcd.
constexpr auto kRegainMax = std::chrono::seconds(60);
constexpr auto kRegainPause = std::chrono::seconds(1);

class PullCommand final : public Command {
  using Clock = std::chrono::steady_clock;

 public:
  void declare(OptionSet& options) override {
    options.arguments("SOURCE", sources_, OptionSet::Need::required,
                      "hf:ORG/NAME[@REVISION], hf:datasets/ORG/NAME[@REVISION], or URLs");
    options.value("-n,--name", "NAME", name_,
                  "the name of the version (default: the repository's, such as org/bert; with URLs it is required)",
                  {kOfferModels});
    options.values("-t,--tag", "TAG", tags_,
                   "a tag for the version instead of the branch's name; it moves if another version has it");
    options.values("--include", "GLOB", filter_.include, "receive only files whose paths match one of these patterns");
    options.values("--exclude", "GLOB", filter_.exclude, "leave out files whose paths match");
    options.values("--sha256", "DIGITS", sha256_, "the SHA-256 of the file at a URL, one for each, in their order");
    options.value("--wait", "TIME", wait_option_,
                  "fail if another pull of SOURCE has not ended after TIME, such as 90, 5m or 1h (default: no limit)");
    options.flag("--dataset", dataset_, "publish a data set, as if SOURCE began with hf:datasets/");
    options.flag("--check", check_, "print what would be received, and change nothing");
  }

  Status check_usage() override {
    const VersionKind kind = dataset_ ? VersionKind::dataset : VersionKind::model;
    is_hub_ = sources_.front().find("://") == std::string::npos;
    if (is_hub_ && sources_.size() > 1)
      return Error{Errc::invalid, fmt::format("expected one repository, got {} too", printable(sources_[1]))};
    if (is_hub_ && !sha256_.empty()) return Error{Errc::invalid, "--sha256: expected with URLs alone"};
    if (!is_hub_ && !(filter_.include.empty() && filter_.exclude.empty()))
      return Error{Errc::invalid, "--include and --exclude: expected with a repository alone, got a URL"};
    if (is_hub_) {
      WEFT_TRY(repository_, parse_hub_source(sources_.front(), kind));
      if (dataset_ && repository_.repository.kind != VersionKind::dataset)
        return Error{Errc::invalid, fmt::format("--dataset: {} is a model", printable(sources_.front()))};
      if (name_.empty()) {
        WEFT_TRY(name_, version_name_of(repository_.repository));
      }
    } else {
      WEFT_CHECK(url_source(sources_, sha256_, kind, {}));  // the settings are those of run()
      if (name_.empty()) return Error{Errc::invalid, "--name is required with a URL"};
    }
    WEFT_CHECK(read_wait());
    WEFT_CHECK(check_model_name(name_));
    for (const std::string& tag : tags_) WEFT_CHECK(check_tag_name(tag));
    return {};
  }

  Result<int> run(Context& context) override {
    WEFT_TRY(source_, open_source_of(context));
    cold_ = make_cold_client(context.store_path(), false);
    WEFT_CHECK(list());
    WEFT_CHECK(look_up(context));
    if (stored_ || check_) return finish(context);
    const auto until = wait_ ? Clock::now() + *wait_ : Clock::time_point::max();
    WEFT_TRY(const SafePath pulls, place_of(context));
    PullFollower follower(pulls, source_->key(), unknown_files());
    WEFT_TRY(claim_, take_claim(context, follower, until));
    for (;;) {
      WEFT_TRY(PullArea* const area, open_area(context, follower, until));
      auto code = pull_into(context, *area, follower);
      if (code.ok() && stored_ && claim_) adopt(context, follower);
      if (code.ok())
        if (const Status removed = area->remove(); !removed.ok()) context.note(removed.error().message);
      if (code.ok() || !has_lost_claim() || context.environment().interrupt != 0) return code;
      WEFT_TRY(claim_, claim_again(context, follower, until));
    }
  }

 private:
  bool has_lost_claim() const { return claim_ && claim_->is_lost(); }

  Result<std::unique_ptr<PullClaim>> take_claim(const Context& context, PullFollower& follower,
                                                Clock::time_point until) const {
    return PullClaim::take(context, source_->key(), until, [&follower](PulledFiles& from, const auto& stopped) {
      return follower.step(from, stopped);
    });
  }

  void take_over(const Context& context, PullFollower& follower) const {
    const auto last = claim_ ? claim_->last_holder() : nullptr;
    follower.finish(last.get(), [&] { return has_lost_claim() || context.environment().interrupt != 0; });
    if (!follower.failure().empty() && !context.quiet)
      context.note(fmt::format("nothing was copied from other nodes: {}", follower.failure()));
  }

  // Keeps what was copied while another node has pulled the version. The next node in line need not wait for it. After
  // an error, readers fetch the bytes.
  void adopt(const Context& context, PullFollower& follower) {
    follower.finish(nullptr, [] { return true; });
    claim_.reset();
    const AdoptRequest request{source_->key(), spec_of(*stored_)};
    const auto adopted = call_daemon<AdoptReport>(context, "adopt", request);
    if (!adopted.ok() && !context.quiet)
      context.note(fmt::format("the bytes that came while this node waited are not kept: {}", adopted.error().message));
  }

  // Waits for a weftd that restarts, and for etcd. Another node may have gone on meanwhile.
  Result<std::unique_ptr<PullClaim>> claim_again(const Context& context, PullFollower& follower,
                                                 Clock::time_point until) {
    claim_.reset();
    context.note(fmt::format("{}: this node has lost the claim of its pull, and claims it again", source_->text()));
    for (const auto gives_up = Clock::now() + kRegainMax;; std::this_thread::sleep_for(kRegainPause)) {
      const auto writer = context.writer();  // waits some seconds for the daemon of a cluster's store
      auto claim =
          writer.ok() ? take_claim(context, follower, until) : Result<std::unique_ptr<PullClaim>>(writer.error());
      if (claim.ok() || claim.error().code != Errc::unreachable || Clock::now() >= gives_up) return claim;
    }
  }

  // The files that no stored version has.
  std::vector<HubFile> unknown_files() const {
    std::vector<HubFile> unknown;
    std::ranges::copy_if(files(), std::back_inserter(unknown),
                         [this](const HubFile& file) { return known_at(file.path) == nullptr; });
    return unknown;
  }

  Status read_wait() {
    if (wait_option_.empty()) return {};
    const auto seconds = parse_time(wait_option_, kWaitSecondsMax);
    if (!seconds)
      return Error{Errc::invalid, fmt::format("--wait: expected a time up to 30d, such as 90 or 5m, got \"{}\"",
                                              printable(wait_option_))};
    wait_ = std::chrono::seconds(*seconds);
    return {};
  }

  // Another pull on this node may have the area. Errc::timed_out: it still has it at `until`.
  static Result<PullArea*> open_area(const Context& context, PullFollower& follower, Clock::time_point until) {
    Patience patience = context.patience();
    patience.cancelled = [until, is_interrupted = patience.cancelled] {
      return is_interrupted() || Clock::now() >= until;
    };
    auto area = follower.area(patience);
    if (area.ok() || area.error().code != Errc::cancelled || context.environment().interrupt != 0) return area;
    return Error{Errc::timed_out, fmt::format("{} (--wait)", area.error().message)};
  }

  // Looks up the files again: meanwhile another pull may have published the version. After a pull that published none,
  // its node may have bytes that this node lacks.
  Result<int> pull_into(const Context& context, const PullArea& area, PullFollower& follower) {
    for (bool again = false;; again = true) {
      WEFT_CHECK(look_up(context));
      if (stored_) return finish(context);
      if (!again) take_over(context, follower);
      const auto report = receive_and_import(context, area);
      if (report.ok()) return show(context, *report);
      WEFT_TRY(const bool can_repeat, clean_up(report.error(), area));
      if (!can_repeat || again) return report.error();
    }
  }

  // An import compares the SHA-256 last. A wrong byte in a header lets it fail before that.
  static bool can_be_of_wrong_bytes(const Error& error) {
    constexpr std::array kCodes{Errc::invalid, Errc::not_found,   Errc::exists,
                                Errc::corrupt, Errc::unsupported, Errc::internal};
    return std::ranges::find(kCodes, error.code) != kCodes.end();
  }

  // Drops wrong bytes after an import has failed. True if the pull may succeed when it is repeated: a version that the
  // import was to take files from was removed meanwhile, or the wrong bytes were an earlier pull's. Errc::corrupt: they
  // are the hub's, and the import took them for a bad file.
  Result<bool> clean_up(const Error& error, const PullArea& area) {
    if (!receiving_ || !receiving_->end().ok() || !can_be_of_wrong_bytes(error)) return false;
    if (error.code == Errc::not_found && !options_.stored.empty()) return true;
    WEFT_TRY(const auto damaged, drop_damaged(wanted_, area));
    if (std::ranges::any_of(damaged, [this](const std::string& path) { return receiving_->is_doubtful(path); }))
      return true;
    if (error.code == Errc::corrupt || damaged.empty()) return false;
    return Error{Errc::corrupt, fmt::format("{}: \"{}\": expected the bytes of its SHA-256, got other ones: {}",
                                            source_->text(), printable(damaged.front()), error.message)};
  }

  Result<std::unique_ptr<PullSource>> open_source_of(const Context& context) {
    WEFT_TRY(HubSettings settings, read_hub_settings(context.environment().variable));
    HttpReaderOptions reading = hub_reading();
    reading.stopped = [&interrupt = context.environment().interrupt, this] {
      return interrupt != 0 || failed_ || has_lost_claim();
    };
    if (is_hub_) return hub_source(repository_, std::move(settings), std::move(reading));
    reading.http.ca = settings.ca;
    reading.http.ca_directory = settings.ca_directory;
    reading.user_agent = "weft/" WEFT_VERSION;
    return url_source(sources_, sha256_, dataset_ ? VersionKind::dataset : VersionKind::model, std::move(reading));
  }

  Status list() {
    WEFT_TRY(listing_, source_->list());
    const std::size_t all = files().size();
    std::erase_if(listing_.files, [this](const HubFile& file) { return !filter_.takes(file.path); });
    if (files().empty())
      return Error{Errc::not_found,
                   fmt::format("{}: no file to publish: the patterns match none of {}", source_->text(), all)};
    for (const HubFile& file : files()) bytes_ += file.size;
    if (is_hub_) listing_.source.left_out = all - files().size();
    if (tags_.empty())
      if (const auto tag = source_->tag()) tags_.push_back(*tag);
    return {};
  }

  const std::vector<HubFile>& files() const { return listing_.files; }

  // Finds the version that has the commit, and else the files that other versions have. Finds nothing without a store,
  // or if this user may not read the store.
  Status look_up(const Context& context) {
    const auto store = context.open_to_read();
    if (!store.ok()) {
      const Errc code = store.error().code;
      return code == Errc::not_found || code == Errc::permission ? Status{} : Status{store.error()};
    }
    WEFT_TRY(stored_, version_of_commit(**store, context.resolver(), name_, listing_.source.commit, files()));
    if (stored_) return {};
    const ColdWait waiting = wait_of(context);
    WEFT_TRY(known_, known_files(**store, *cold_, {name_, source_->kind(), files()}));
    return {};
  }

  // An interrupt ends the waits for other nodes.
  static ColdWait wait_of(const Context& context) {
    return ColdWait([&interrupt = context.environment().interrupt] { return interrupt == 0; });
  }

  const KnownFile* known_at(std::string_view path) const {
    const auto known = std::ranges::lower_bound(known_, path, {}, &KnownFile::path);
    return known == known_.end() || known->path != path ? nullptr : &*known;
  }

  std::uint64_t known_bytes() const {
    std::uint64_t bytes = 0;
    for (const KnownFile& known : known_) bytes += known.size;
    return bytes;
  }

  // Receives all files but those that the import can take from stored versions. The large ones arrive while the import
  // reads them.
  Result<ImportReport> receive_and_import(const Context& context, const PullArea& area) {
    choose_files(area);
    receiving_.reset();
    std::unique_ptr<Store> store;  // closed before the import opens it
    if (!known_.empty()) {
      WEFT_TRY(store, context.open_to_read());
    }
    ReceiveOptions options;
    if (source_->kind() == VersionKind::model)
      options.into_import = [this](const HubFile& file) { return known_at(file.path) == nullptr; };
    options.known = [&](const HubFile& file, const ByteSink& sink) -> Status {
      const ColdWait waiting = wait_of(context);
      const KnownFile* known = known_at(file.path);
      return known == nullptr ? Status{Error{Errc::not_found, file.path}}
                              : read_known(*store, cold_.get(), *known, sink);
    };
    ProgressBar bar = context.progress();
    WEFT_TRY(receiving_, Receiving::begin(*source_, std::move(options), wanted_, area, bar, failed_));
    const Status verified = receiving_->wait_verified();
    if (!verified.ok() || !receiving_->any_arrive()) static_cast<void>(receiving_->end());
    store.reset();
    options_.arriving = receiving_->any_arrive() ? receiving_.get() : nullptr;
    auto report = verified.ok() ? import(context) : Result<ImportReport>(verified.error());
    if (verified.ok() && !report.ok() && can_be_of_wrong_bytes(report.error())) {
      bar.phase("receiving the rest, to verify it");
      static_cast<void>(receiving_->wait_received());
    }
    const Status received = receiving_->end();
    count(receiving_->bytes());
    if (report.ok() || received.ok()) return report;
    return received.error();
  }

  void count(const ReceivedBytes& received) {
    if (received_.bytes == 0) received_.resumed = received.resumed;  // else they are of this pull
    received_.bytes += received.bytes;
  }

  void choose_files(const PullArea& area) {
    wanted_.clear();
    options_.stored.clear();
    options_.paths.clear();
    for (const HubFile& file : files()) {
      const KnownFile* known = known_at(file.path);
      if (known != nullptr && known->is_reusable)
        options_.stored.push_back({file.path, known->version, known->from, file.size});
      else
        wanted_.push_back(file);
    }
    if (!wanted_.empty()) options_.paths = {area.files().str()};
  }

  // The owner of the store receives into the store, so that the import takes large files as they are. Another user
  // receives into the cache directory, and the import copies the files. So does root, who would read and remove by its
  // path whatever the owner of the store puts there.
  Result<SafePath> place_of(const Context& context) const {
    const std::string store = context.store_path();
    if (const auto there = stat_file(store); !there.ok() && there.error().code == Errc::not_found)
      WEFT_CHECK(context.open_or_create());
    WEFT_TRY(const std::string home, home_of_pulls(context));
    if (home != store) WEFT_CHECK(make_directories(home, 0700));
    WEFT_TRY(const SafePath directory, SafePath::open_owned(home));
    if (home != store) WEFT_CHECK(remove_old_pulls(directory / kPullsFolder, kDraftsKept));
    return directory / kPullsFolder;
  }

  static Result<std::string> home_of_pulls(const Context& context) {
    const std::string store = context.store_path();
    WEFT_TRY(const struct stat st, stat_file(store));
    if (st.st_uid == own_user()) return store;
    const auto variable = [&](const char* name) { return context.environment().variable(name).value_or(""); };
    const std::string cache = variable("XDG_CACHE_HOME");
    return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/weft";
  }

  // Returns the bytes of unknown_files() that an earlier pull has received here.
  std::uint64_t received_earlier(const Context& context) const {
    const auto home = home_of_pulls(context);
    const auto directory = home.ok() ? SafePath::open_owned(*home) : Result<SafePath>(home.error());
    std::uint64_t bytes = 0;
    if (!directory.ok()) return bytes;
    const SafePath area = *directory / kPullsFolder / source_->key();
    for (const HubFile& file : unknown_files()) bytes += received_bytes(area / kPullFiles, area / kPullNotes, file);
    return bytes;
  }

  Result<ImportReport> import(const Context& context) {
    options_.name = name_;
    options_.dataset = source_->kind() == VersionKind::dataset;
    if (!options_.dataset) options_.take = Take::move;
    options_.tags = tags_;
    options_.default_message = listing_.description;
    options_.source = listing_.source;
    WEFT_TRY(const auto writer, context.writer());
    auto report = writer->import(options_);
    if (report.ok() || report.error().code != Errc::corrupt) return report;
    return Error{Errc::corrupt, fmt::format("{}: {}", source_->text(), report.error().message)};
  }

  Result<int> show(const Context& context, const ImportReport& report) const {
    for (const auto* lines : {&report.left_out, &report.remarks})
      for (const std::string& line : *lines) context.note(line);
    note_access(context);
    if (context.json) return print_json(context, &report.outcome.version, &report.outcome);
    print_import(context, report, options_.dataset);
    context.print("  {}: {} received{}{}\n", options_.default_message, human_bytes(received_.bytes),
                  received_.resumed == 0 ? "" : fmt::format(", {} earlier", human_bytes(received_.resumed)),
                  known_.empty() ? "" : fmt::format(", {} known", human_bytes(known_bytes())));
    return kExitDone;
  }

  void note_access(const Context& context) const {
    const std::string& access = listing_.source.access;
    if (access.empty()) return;
    context.note(fmt::format("{} is {}: here every user who can read the store can read it", source_->text(), access));
  }

  // Without a new version. Sets the tags that the stored one lacks, unless --check is given.
  Result<int> finish(const Context& context) {
    const VersionRow* row = stored_ ? &*stored_ : nullptr;
    if (row == nullptr) {
      received_.resumed = received_earlier(context);
      received_.bytes = bytes_ - known_bytes() - received_.resumed;
    }
    if (row != nullptr && !check_) WEFT_CHECK(set_tags(context, *row));
    if (row != nullptr) note_access(context);
    if (context.json) return print_json(context, row, nullptr);
    const std::string count = count_of(files().size(), "file");
    if (row == nullptr)
      context.print("{}: {}, {}: {} to receive{}, {} known\n", listing_.description, count, human_bytes(bytes_),
                    human_bytes(received_.bytes),
                    received_.resumed == 0 ? "" : fmt::format(", {} received earlier", human_bytes(received_.resumed)),
                    human_bytes(known_bytes()));
    else
      context.print("{} has {} of {} already: nothing {}\n", spec_of(*row), count, listing_.description,
                    check_ ? "to receive" : "received");
    return kExitDone;
  }

  Status set_tags(const Context& context, const VersionRow& row) const {
    std::vector<std::string> lacking;
    {
      WEFT_TRY(const auto store, context.open_to_read());
      WEFT_TRY(const auto snapshot, store->snapshot());
      for (const std::string& tag : tags_) {
        const auto set = snapshot->tag(row.model, tag);
        if (!set.ok() || set->number != row.number) lacking.push_back(tag);
      }
    }
    if (lacking.empty()) return {};
    WEFT_TRY(const auto writer, context.writer());
    for (const std::string& tag : lacking) WEFT_CHECK(writer->tag(TagRequest{spec_of(row), tag}));
    return {};
  }

  // `row`: the version, if there is one; `outcome`: how this pull published it.
  Result<int> print_json(const Context& context, const VersionRow* row, const PublishOutcome* outcome) const {
    JsonWriter json;
    json.begin_object().member("model", name_).key("version");
    row != nullptr ? json.value(row->number) : json.null();
    json.member("made", outcome != nullptr && outcome->made)
        .member("endpoint", listing_.source.endpoint)
        .member("repository", source_->text())
        .member("revision", source_->revision())
        .member("commit", listing_.source.commit)
        .key("tags")
        .begin_array();
    for (const std::string& tag : tags_) json.value(tag);
    json.end_array()
        .member("files", static_cast<std::uint64_t>(files().size()))
        .member("bytes", bytes_)
        .member("received_bytes", received_.bytes)
        .member("resumed_bytes", received_.resumed)
        .member("known_files", static_cast<std::uint64_t>(known_.size()))
        .member("known_bytes", known_bytes())
        .member("new_bytes", outcome != nullptr ? outcome->new_bytes : 0)
        .member("shared_bytes", outcome != nullptr ? outcome->shared_bytes : 0);
    context.print_json(json.end_object());
    return kExitDone;
  }

  std::vector<std::string> sources_, sha256_;
  std::string name_;
  std::vector<std::string> tags_;
  HubFilter filter_;
  std::string wait_option_;
  std::optional<std::chrono::seconds> wait_;  // of --wait
  bool dataset_ = false;
  bool check_ = false;
  bool is_hub_ = false;
  HubSource repository_;
  // Of run():
  std::unique_ptr<PullClaim> claim_;  // null without a daemon
  std::unique_ptr<PullSource> source_;
  std::unique_ptr<ColdReads> cold_;  // of the store's weftd
  PullListing listing_;
  std::uint64_t bytes_ = 0;
  std::optional<VersionRow> stored_;  // the version that has the commit
  std::vector<KnownFile> known_;      // by path
  std::vector<HubFile> wanted_;       // the files that have to be received
  std::atomic<bool> failed_{false};
  std::unique_ptr<Receiving> receiving_;
  ReceivedBytes received_;
  ImportOptions options_;
};

}  // namespace

constinit const CommandEntry kPullCommand = {kPullInfo, make<PullCommand>};

}  // namespace weft
