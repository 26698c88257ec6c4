#include "cli/shared/context.h"

#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <system_error>
#include <thread>

#include "base/errc_names.h"
#include "base/text.h"
#include "cli/shared/configured_store.h"
#include "cli/shared/daemon_version.h"
#include "cli/shared/writer.h"
#include "daemon_api/cold_wire.h"
#include "drafts/import_fields.h"
#include "os/file_lock.h"
#include "os/safe_path.h"
#include "os/sys.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

// Returns the topmost directory of the path that does not exist; "" if all exist.
std::string first_missing(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string prefix = path.substr(0, slash);
    auto st = stat_file(prefix);
    if (!st.ok() && st.error().code == Errc::not_found) return prefix;
    if (slash == std::string::npos) return "";
  }
}

using Clock = std::chrono::steady_clock;

constexpr auto kDaemonPatience = std::chrono::seconds(10);
constexpr auto kPoll = std::chrono::milliseconds(50);

// True for an error of connecting that means that no daemon listens. Errc::permission is one of them, because opening
// the store will report it.
bool means_none(Errc code) {
  return code == Errc::not_found || code == Errc::not_dir || code == Errc::unreachable || code == Errc::permission;
}

bool daemon_holds(const std::string& store) {
  const auto directory = SafePath::open_owned(store);
  if (!directory.ok()) return false;
  const SafePath path = *directory / "daemon.lock";
  const auto lock = open_file(path, O_RDONLY);
  if (!lock.ok()) return false;
  const auto held = excluded(lock->get(), LockKind::shared, {}, path);
  return held.ok() && *held;
}

// Connects to the daemon of the store. Retries for some seconds while no daemon listens and one is expected. Null if
// none does.
Result<std::unique_ptr<control::Client>> connect_while(const std::string& store, const Patience& patience,
                                                       const std::function<bool()>& is_expected) {
  for (const auto until = Clock::now() + kDaemonPatience;; std::this_thread::sleep_for(kPoll)) {
    auto client = control::Client::connect(fmt::format("{}/{}", store, control::kSocketName));
    if (client.ok() || !means_none(client.error().code)) return client;
    if (!is_expected() || patience.cancelled() || Clock::now() > until) return std::unique_ptr<control::Client>();
  }
}

// Returns the error of a request that the daemon does not know. It may be of another version.
Error unknown_request(control::Client& daemon, const control::CallOptions& options, const CliEnvironment& environment,
                      Error error) {
  const auto status = daemon.call("status", "", {}, options);
  const std::string problem = status.ok() ? version_problem(status->body, environment) : "";
  if (!problem.empty()) error.message += "; " + problem;
  return error;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

JsonWriter error_json(const Error& error) {
  JsonWriter json;
  json.begin_object().member("error", errc_name(error.code)).member("message", error.message).end_object();
  return json;
}

class Context::DaemonResolver final : public ManifestResolver {
 public:
  explicit DaemonResolver(const Context& context) : context_(context) {}

  Status resolve(VersionId version) override {
    WEFT_TRY(const auto client, context_.daemon());
    if (!client) return Error{Errc::absent, "its manifest is not on this node, and no daemon runs that could fetch it"};
    WEFT_CHECK(context_.ask(*client, "resolve", encode_fields(ResolveRequest{version})));
    return {};
  }

 private:
  const Context& context_;
};

Context::Context(const CliEnvironment& environment)
    : environment_(environment), resolver_(std::make_unique<DaemonResolver>(*this)) {}
Context::~Context() = default;

ManifestResolver& Context::resolver() const {
  return *resolver_;
}

Context::ChosenStore Context::chosen_store() const {
  if (!store_option.empty()) return {store_option, "--store"};
  auto variable = [&](const char* name) { return environment_.variable(name).value_or(""); };
  if (std::string path = variable("WEFT_STORE"); !path.empty()) return {path, "WEFT_STORE"};
  if (auto path = configured_value(environment_.config_file, "store"); path && !path->empty())
    return {*std::move(path), environment_.config_file};
  if (environment_.is_root) return {"/var/lib/weft", "the default"};
  if (std::string data = variable("XDG_DATA_HOME"); !data.empty()) return {data + "/weft", "the default"};
  return {variable("HOME") + "/.local/share/weft", "the default"};
}

bool Context::trusts_store() const {
  return trust_store || configured_for(environment_.config_file, store_path(), "trust_store") == "true";
}

// A daemon that holds the lock and does not listen is starting or ending. Retries until it listens or releases the
// lock.
Result<std::unique_ptr<control::Client>> Context::daemon() const {
  const std::string store = store_path();
  return connect_while(store, patience(), [&store] { return daemon_holds(store); });
}

bool Context::is_of_cluster() const {
  const auto store = open_to_read();
  return store.ok() && (*store)->cluster();
}

Result<std::unique_ptr<control::Client>> Context::need_daemon() const {
  WEFT_TRY(auto client, daemon());
  if (client) return client;
  const bool clustered = is_of_cluster();
  if (clustered) {
    WEFT_TRY(client, connect_while(store_path(), patience(), [] { return true; }));
  }
  if (client) return client;
  return Error{Errc::unreachable, fmt::format("weftd does not run here: no daemon runs for the store {}{}",
                                              store_path(), clustered ? ", a node of a cluster" : "")};
}

Status Context::await_daemon() const {
  const auto is_expected = [this] {
    const auto store = open_to_write();
    return !store.ok() && store.error().code == Errc::permission;
  };
  WEFT_TRY(const auto client, connect_while(store_path(), patience(), is_expected));
  if (client || !is_expected()) return {};
  return Error{Errc::unreachable,
               fmt::format("weftd has ended and does not run again; {}: see `weft log`", kOutcomeUnknown)};
}

Result<std::unique_ptr<StoreWriter>> Context::writer() const {
  WEFT_TRY(auto client, daemon());
  if (!client && is_of_cluster()) {
    WEFT_TRY(client, need_daemon());
  }
  return client ? make_daemon_writer(*this, std::move(client)) : make_local_writer(*this);
}

Result<std::unique_ptr<StoreWriter>> Context::repairer() const {
  WEFT_TRY(auto client, daemon());
  return client ? make_daemon_writer(*this, std::move(client)) : make_local_writer(*this);
}

Result<control::Answer> Context::ask(control::Client& daemon, std::string_view request, std::string_view body,
                                     control::CallOptions options) const {
  options.cancelled = patience().cancelled;
  auto answer = daemon.call(request, body, {}, options);
  if (!answer.ok() && answer.error().code == Errc::unsupported)
    return unknown_request(daemon, {.cancelled = options.cancelled}, environment_, std::move(answer).error());
  if (answer.ok() || answer.error().code == Errc::busy || !daemon.lost()) return answer;
  return Error{Errc::unreachable, fmt::format("{}; {}: see `weft log`", answer.error().message, kOutcomeUnknown)};
}

Status Context::create(const CreateOptions& options) const {
  std::string path = without_slashes(store_path());
  if (auto slash = path.rfind('/'); slash != std::string::npos && slash > 0)
    WEFT_CHECK(make_directories(path.substr(0, slash)));
  Status made = Store::create(path, options);
  const bool exists = stat_file(path).ok();  // else the error names the directory that refuses
  return made.ok() || !exists ? made : Status{named_right(std::move(made).error(), Right::own)};
}

Error Context::named_right(Error error, Right right) const {
  if (!is_refused_by_kernel(error)) return error;
  const std::string path = store_path();
  const auto st = stat_file(path);
  if (st.ok() && st->st_uid == own_user()) return error;  // the user has every right: something else refuses
  std::string who = st.ok() ? fmt::format("user {}, its owner", st->st_uid) : "root";
  if (st.ok() && right == Right::read) who += fmt::format(", or one of the group {}", st->st_gid);
  if (st.ok() && right == Right::write) who += ", or a weftd for it";
  return Error{Errc::permission, fmt::format("{}: user {} may not {} this store: expected {}", path, own_user(),
                                             right == Right::read ? "read" : "write to", who)};
}

Result<std::unique_ptr<Store>> Context::open(bool write) const {
  OpenOptions options;
  options.write = write;
  options.decode = content_decoder();
  options.patience = patience();
  auto store = Store::open(store_path(), options);
  if (!store.ok() && store.error().code == Errc::permission)
    return named_right(std::move(store).error(), write ? Right::write : Right::read);
  bool named = !store_option.empty() || !environment_.variable("WEFT_STORE").value_or("").empty();
  if (store.ok() || named || store.error().code != Errc::not_found) return store;
  return Error{Errc::not_found, fmt::format("{}; --store or WEFT_STORE names another", store.error().message)};
}

Status Context::check_may_create(const Error& none) const {
  const auto configured = configured_value(environment_.config_file, "store");
  if (!configured) return {};
  return Error{Errc::not_found,
               fmt::format("{}; {} names the store {}: is its disk mounted? `weft init` makes one here", none.message,
                           environment_.config_file, printable(*configured))};
}

// Alternates between opening and creating, because other processes may create or remove the store at the same time.
Result<Context::OpenedStore> Context::open_or_create() const {
  constexpr int kAttempts = 8;
  Error last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto store = open_to_write();
    if (store.ok()) return OpenedStore{std::move(store).value(), false, ""};
    if (store.error().code != Errc::not_found) return std::move(store).error();
    last = std::move(store).error();
    WEFT_CHECK(check_may_create(last));
    std::string missing = first_missing(without_slashes(store_path()));
    Status made = create({.patience = patience()});
    if (!made.ok() && made.error().code != Errc::exists) return std::move(made).error();
    if (!made.ok()) continue;
    if (!quiet) note(fmt::format("made a store in {}", store_path()));
    store = open_to_write();
    if (store.ok()) return OpenedStore{std::move(store).value(), true, missing};
    last = std::move(store).error();
  }
  return last;
}

void Context::unmake(OpenedStore opened) const {
  if (!opened.made) return;
  auto removed = Store::remove_unused(std::move(opened.store), !opened.first_made.empty());
  if (!removed.ok() || !*removed || opened.first_made.empty()) return;
  std::error_code code;
  for (std::filesystem::path path = without_slashes(store_path()); path.string().size() > opened.first_made.size();) {
    path = path.parent_path();
    if (!std::filesystem::remove(path, code)) return;  // the directory is in use
  }
}

Patience Context::patience() const {
  Patience patience;
  patience.cancelled = [&interrupt = environment_.interrupt] { return interrupt.load() != 0; };
  if (!quiet) patience.waiting = [this](std::string_view what) { note(what); };
  return patience;
}

ProgressBar Context::progress() const {
  bool shown = environment_.err_is_terminal && !quiet;
  return ProgressBar(shown ? &environment_.err : nullptr, environment_.columns, environment_.interrupt);
}

}  // namespace weft
