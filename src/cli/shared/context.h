// The environment of a running subcommand: common options, the store, its daemon, output.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "cli/shared/environment.h"
#include "cli/shared/progress_bar.h"
#include "control/client.h"
#include "weft/bytes/cold.h"
#include "weft/result.h"
#include "weft/store/store.h"

namespace weft {

class StoreWriter;

JsonWriter error_json(const Error& error);  // {error, message}, as --json prints it

class Context {
 public:
  explicit Context(const CliEnvironment& environment);
  ~Context();

  // Set by the options that all commands have.
  std::string store_option;
  bool trust_store = false;
  bool json = false;
  bool quiet = false;

  const CliEnvironment& environment() const { return environment_; }

  // The first of --store, WEFT_STORE, `store` in this machine's weft.conf, and the default: /var/lib/weft for root,
  // $XDG_DATA_HOME/weft (~/.local/share/weft) for other users.
  struct ChosenStore {
    std::string path;
    std::string by;  // "--store", "WEFT_STORE", the path of weft.conf, "the default"
  };
  ChosenStore chosen_store() const;
  std::string store_path() const { return chosen_store().path; }
  // True for --trust-store, or if weft.conf sets trust_store for this store.
  bool trusts_store() const;
  // Connects to the store's daemon. Null if none runs; then this process may write to the store itself. Waits some
  // seconds for a daemon that is starting or ending.
  Result<std::unique_ptr<control::Client>> daemon() const;
  Result<std::unique_ptr<control::Client>> need_daemon() const;  // Errc::unreachable if no daemon runs
  // After the end of a daemon during a request: waits some seconds for the next one, unless this process may write to
  // the store itself. Errc::unreachable: none has come.
  Status await_daemon() const;
  // Returns the writer of the store: through the daemon, or in this process if no daemon runs. The names of a cluster's
  // store are changed by its daemon only: waits some seconds for one that restarts, and then fails as need_daemon()
  // does.
  Result<std::unique_ptr<StoreWriter>> writer() const;
  // As writer(), for a repair, which needs no daemon in a cluster either.
  Result<std::unique_ptr<StoreWriter>> repairer() const;
  // Sends a request. Ctrl-C cancels it. If the connection is lost, the error message says that the outcome is unknown.
  Result<control::Answer> ask(control::Client& daemon, std::string_view request, std::string_view body,
                              control::CallOptions options = {}) const;
  // Returns the resolver of bare versions, which asks the daemon. It lives as long as this object.
  ManifestResolver& resolver() const;
  Result<std::unique_ptr<Store>> open_to_read() const { return open(false); }
  Result<std::unique_ptr<Store>> open_to_write() const { return open(true); }
  // Opens the store to write. If there is none, or an empty directory, creates a store and prints a note.
  // Errc::not_found if this machine's weft.conf names a store: its disk may not be mounted, and a store in its
  // place would be unused.
  struct OpenedStore {
    std::unique_ptr<Store> store;
    bool made = false;       // open_or_create() has created the store
    std::string first_made;  // topmost directory that was created for it; "" if all existed
  };
  Result<OpenedStore> open_or_create() const;
  // Removes a store that open_or_create() has created, and its new directories, if it is unused. Else does nothing.
  void unmake(OpenedStore opened) const;
  // The right that an operation needs. `write`: in this process or through a daemon. `own`: to write in this process,
  // as only the owner of the store and root may.
  enum class Right { read, write, own };
  // Returns the error of an operation. If the user lacks the right for it, the error names the users that have the
  // right, and not the file that refused.
  Error named_right(Error error, Right right) const;
  Patience patience() const;  // waits until the environment's interrupt; prints a note for each wait unless --quiet
  Status create(const CreateOptions& options) const;  // also creates the parent directories

  ProgressBar progress() const;  // shown on a terminal unless --quiet; cancelled by the environment's interrupt

  // Prints text. Escapes control characters, so that names, messages and metrics cannot control the terminal.
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    environment_.out << printable_lines(fmt::format(format, std::forward<Args>(args)...));
  }
  // Prints a field that ends with NUL, for programs. Escapes control characters as print() does.
  void print_field(std::string_view text) const { environment_.out << printable_lines(text) << '\0'; }
  void print_json(const JsonWriter& json_value) const { print_json(json_value.text()); }
  void print_json_part(std::string_view json_text) const { environment_.out << json_text; }
  void print_json(std::string_view json_text) const { environment_.out << json_text << '\n'; }
  // Reports wrong usage that only run() can see, as cli.cc reports any other. Returns the exit code.
  int wrong_usage(const Error& error) const {
    if (json) print_json(error_json(error));
    note(error.message);
    return kExitUsage;
  }
  void note(std::string_view line) const { environment_.err << "weft: " << printable_lines(line) << '\n'; }

 private:
  Result<std::unique_ptr<Store>> open(bool write) const;
  bool is_of_cluster() const;
  Status check_may_create(const Error& none) const;
  class DaemonResolver;
  const CliEnvironment& environment_;
  const std::unique_ptr<DaemonResolver> resolver_;
};

}  // namespace weft
