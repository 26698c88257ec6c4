#include "cluster_setup/setup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/limits.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster_setup/private_files.h"
#include "os/file_lock.h"
#include "os/programs.h"
#include "weft/store/snapshot.h"
#include "weft/store/store.h"

namespace weft::setup {
namespace {

constexpr std::string_view kRecordName = "cluster.setup";
constexpr std::string_view kRecordHead = "weft setup 1";
constexpr mode_t kRecordMode = 0600;

std::string record_path(const Places& places) {
  return places.setting(kRecordName);
}

// A value with a line end would be another line of the record, and leave removes what its lines name. The endpoints of
// a machine that joins come from another machine.
Status check_values(const SetupRecord& record) {
  std::vector<std::string> values{record.join, record.peer_url, record.store};
  for (const auto* list : {&record.endpoints, &record.files, &record.data, &record.directories})
    values.insert(values.end(), list->begin(), list->end());
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  for (const std::string& value : values)
    if (std::ranges::any_of(value, is_control))
      return Error{Errc::invalid, fmt::format("expected no control characters in \"{}\"", printable(value))};
  return {};
}

// Replaces the record by one that is durable.
Status write_record(const Places& places, const SetupRecord& record) {
  const std::string path = record_path(places), fresh = path + ".new";
  WEFT_CHECK(remove_file(fresh));
  WEFT_CHECK(write_new_file(fresh, kRecordMode, record_text(record)));
  WEFT_CHECK(rename_file(fresh, path));
  return sync_directory(places.settings);
}

bool is_there(const std::string& path) {
  if (path.empty()) return false;
  std::error_code failed;
  return std::filesystem::symlink_status(path, failed).type() != std::filesystem::file_type::not_found;
}

// Creates a directory with its parents. Appends those that were absent to `made`, parents first.
Status make_path(const std::string& path, mode_t mode, std::vector<std::string>& made) {
  std::vector<std::string> absent;
  for (std::string at = path; !at.empty() && at != "/" && !is_there(at);
       at = std::filesystem::path(at).parent_path().string())
    absent.insert(absent.begin(), at);
  for (const std::string& one : absent) {
    const Status done = make_directory(one, one == path ? mode : mode_t{0755});
    if (!done.ok() && done.error().code != Errc::exists) return done;  // another process may have just made it
    if (done.ok()) made.push_back(one);
  }
  return {};
}

Status run(const Command& command) {
  const char* const path = std::getenv("PATH");
  const bool is_path = command.front().find('/') != std::string::npos;
  const auto program = is_path ? command.front() : find_program(command.front(), "", path == nullptr ? "" : path);
  if (!program) return Error{Errc::not_found, fmt::format("{}: no such command along PATH", command.front())};
  std::string errors;
  WEFT_TRY(const int code, run_program(*program, command, errors));
  if (code == 0) return {};
  std::string line = command.front();
  for (std::size_t i = 1; i < command.size(); ++i) line += " " + command[i];
  return Error{Errc::io, fmt::format("{}: exit code {}{}{}", line, code, errors.empty() ? "" : ": ",
                                     printable(trimmed(errors, "\n"), 300))};
}

struct FoundStore {
  bool has_versions = false;
  bool is_of_cluster = false;
};
Result<FoundStore> look_at_store(const std::string& path) {
  WEFT_TRY(const auto store, Store::open(path, {}));
  WEFT_TRY(const auto snapshot, store->snapshot());
  WEFT_TRY(const auto models, snapshot->models());
  return FoundStore{!models.rows.empty(), store->cluster().has_value()};
}

// Removes a store that a setup has created, but never one with versions. The directory itself stays if it was there.
Status remove_unused_store(const std::string& path) {
  if (!is_there(path)) return {};
  const auto found = look_at_store(path);
  if (!found.ok() && found.error().code != Errc::not_found) return found.error();
  if (found.ok() && found->has_versions) return {};
  WEFT_TRY(const auto names, list_directory(path));
  for (const std::string& name : names) WEFT_CHECK(remove_tree(path + "/" + name));
  return {};
}

// Stops the programs and removes what the record lists. `with_store`: also a store that is unused.
Status undo(const Places& places, const SetupRecord& record, bool with_store) {
  const bool can_stop = places.base.empty() || is_there(places.stop_script());
  if (can_stop) {
    // systemctl fails without systemd, which has then started nothing.
    for (const Command& command : stop_commands(places, is_there(places.unit)))
      if (const Status stopped = run(command); !stopped.ok() && !places.base.empty()) return stopped;
  }
  for (const std::string& path : record.data) WEFT_CHECK(remove_tree(path));
  for (const std::string& path : record.files) WEFT_CHECK(remove_file(path));
  if (with_store && !record.store.empty()) WEFT_CHECK(remove_unused_store(record.store));
  WEFT_CHECK(remove_file(record_path(places) + ".new"));
  WEFT_CHECK(remove_file(record_path(places)));
  for (auto path = record.directories.rbegin(); path != record.directories.rend(); ++path)
    WEFT_CHECK(remove_empty_directory(*path));
  return {};
}

// Refuses a directory in which another user could replace the scripts and the keys.
Status check_own(const std::string& path) {
  WEFT_TRY(const Fd directory, open_file(path, O_RDONLY | O_DIRECTORY));
  WEFT_TRY(const struct stat st, stat_fd(directory.get(), path));
  if (st.st_uid == own_user() && (st.st_mode & 022U) == 0) return {};
  return Error{Errc::permission,
               fmt::format("{}: expected a directory of user {} to which no other user can write, got "
                           "one of user {} with mode {:04o}",
                           path, own_user(), st.st_uid, st.st_mode & 07777U)};
}

// Creates the directory of the settings. Below a directory of its own, a node is its user's alone.
Status make_settings(const Places& places, std::vector<std::string>& made) {
  if (places.base.empty()) return make_path(places.settings, 0755, made);
  WEFT_CHECK(make_path(places.base, 0700, made));
  WEFT_CHECK(check_own(places.base));
  WEFT_CHECK(make_path(places.settings, 0755, made));
  return check_own(places.settings);
}

Result<Fd> lock_settings(const Places& places) {
  auto lock = lock_directory(places.settings);
  if (lock.ok() || lock.error().code != Errc::busy) return lock;
  return Error{Errc::busy,
               fmt::format("{}: another `weft cluster` sets this node up: {}", places.settings, lock.error().message)};
}

Error configured(const Places& places) {
  return {Errc::exists, fmt::format("{}: this node is set up for a cluster already; `weft cluster leave` undoes that",
                                    places.settings)};
}

}  // namespace

std::string record_text(const SetupRecord& record) {
  std::string text = fmt::format("{}\nstate {}\n", kRecordHead, record.finished ? "finished" : "unfinished");
  const auto add = [&text](std::string_view kind, const std::string& value) {
    if (!value.empty()) text += fmt::format("{} {}\n", kind, value);
  };
  add("join", record.join);
  add("peer", record.peer_url);
  for (const std::string& endpoint : record.endpoints) add("endpoint", endpoint);
  add("store", record.store);
  for (const std::string& path : record.directories) add("directory", path);
  for (const std::string& path : record.files) add("file", path);
  for (const std::string& path : record.data) add("data", path);
  return text;
}

Result<SetupRecord> parse_record(std::string_view text) {
  SetupRecord record;
  bool has_head = false, has_state = false;
  for (const std::string_view line : split(text, '\n')) {
    const auto blank = line.find(' ');
    const std::string_view kind = line.substr(0, blank);
    const std::string value(blank == std::string_view::npos ? "" : line.substr(blank + 1));
    if (line.empty()) continue;
    if (!has_head && line != kRecordHead) break;
    has_head = true;
    if (line == kRecordHead) continue;
    if (kind == "state") {
      has_state = true;
      record.finished = value == "finished";
    } else if (kind == "join") {
      record.join = value;
    } else if (kind == "peer") {
      record.peer_url = value;
    } else if (kind == "endpoint") {
      record.endpoints.push_back(value);
    } else if (kind == "store") {
      record.store = value;
    } else if (kind == "directory") {
      record.directories.push_back(value);
    } else if (kind == "file") {
      record.files.push_back(value);
    } else if (kind == "data") {
      record.data.push_back(value);
    }
  }
  if (has_head && has_state) return record;
  return Error{Errc::corrupt, fmt::format("expected a record that begins with \"{}\"", kRecordHead)};
}

Result<SetupRecord> read_record(const Places& places) {
  const std::string path = record_path(places);
  WEFT_TRY(const std::string text, read_private_file(path));
  auto record = parse_record(text);
  if (!record.ok()) return Error{record.error().code, fmt::format("{}: {}", path, record.error().message)};
  return record;
}

std::vector<std::string> taken_by(const Plan& plan) {
  std::vector<std::string> taken;
  for (const PlannedFile& file : plan.files)
    if (is_there(file.path)) taken.push_back(file.path);
  for (const std::string& path : plan.data)
    if (is_there(path)) taken.push_back(path);
  return taken;
}

Status NodeSetup::check(const Plan& plan) {
  const auto taken = taken_by(plan);
  if (!taken.empty()) {
    std::string names;
    for (const std::string& path : taken) names += (names.empty() ? "" : ", ") + path;
    return Error{Errc::exists, fmt::format("this would overwrite {}; move it away first", names)};
  }
  const auto found = look_at_store(plan.store);
  if (!found.ok()) return found.error().code == Errc::not_found ? Status{} : Status{found.error()};
  if (found->is_of_cluster || !found->has_versions) return {};  // weftd compares the cluster with the registry's
  return Error{Errc::exists,
               fmt::format("{}: the store has versions; a node of a cluster begins with an empty one", plan.store)};
}

Result<NodeSetup> NodeSetup::begin(const Places& places) {
  std::vector<std::string> made;
  WEFT_CHECK(make_settings(places, made));
  WEFT_TRY(Fd lock, lock_settings(places));
  const auto before = read_record(places);
  if (!before.ok() && before.error().code != Errc::not_found) return before.error();
  if (before.ok() && before->finished) return configured(places);
  if (before.ok()) {
    WEFT_CHECK(undo(places, *before, true));
    // undo() has removed the locked directory, unless other files are in it.
    WEFT_CHECK(make_settings(places, made));
    WEFT_TRY(lock, lock_settings(places));
  }
  return NodeSetup(places, std::move(made), std::move(lock));
}

NodeSetup::~NodeSetup() {
  if (!lock_.valid()) return;
  if (!begun_) {
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) static_cast<void>(remove_empty_directory(*path));
    return;
  }
  if (record_.finished) return;
  if (const Status undone = undo(places_, record_, true); !undone.ok())
    log_warning("the setup is not undone yet, and the next one undoes it: {}", undone.error().message);
}

Status NodeSetup::carry_out(const Plan& plan) {
  WEFT_CHECK(check(plan));
  record_.join = plan.join;
  record_.peer_url = plan.peer_url;
  record_.endpoints = plan.endpoints;
  record_.directories = made_;
  for (const auto& [path, mode] : plan.directories)
    if (!is_there(path)) record_.directories.push_back(path);
  if (!is_there(plan.store)) record_.directories.push_back(plan.store);
  for (const PlannedFile& file : plan.files) record_.files.push_back(file.path);
  record_.data = plan.data;
  if (!Store::open(plan.store, {}).ok()) record_.store = plan.store;  // else it stays whatever happens
  WEFT_CHECK(check_values(record_));
  begun_ = true;
  WEFT_CHECK(write_record(places_, record_));
  WEFT_CHECK(create(plan));
  for (const Command& command : plan.start) WEFT_CHECK(run(command));
  return {};
}

Status NodeSetup::create(const Plan& plan) {
  std::vector<std::string> made;
  for (const auto& [path, mode] : plan.directories) WEFT_CHECK(make_path(path, mode, made));
  if (!record_.store.empty()) {
    WEFT_CHECK(make_directories(std::filesystem::path(plan.store).parent_path().string()));
    WEFT_CHECK(Store::create(plan.store));
  }
  for (const PlannedFile& file : plan.files) WEFT_CHECK(write_new_file(file.path, file.mode, file.content));
  return {};
}

Status NodeSetup::finish() {
  SetupRecord done = record_;
  done.finished = true;
  WEFT_CHECK(write_record(places_, done));
  record_ = std::move(done);
  return {};
}

Status remove_setup(const Places& places) {
  WEFT_TRY(const Fd lock, lock_settings(places));
  WEFT_TRY(const SetupRecord record, read_record(places));
  return undo(places, record, false);
}

}  // namespace weft::setup
