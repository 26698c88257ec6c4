// What a running subcommand has at hand.
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
#include "weft/result.h"
#include "weft/store.h"

namespace weft {

class StoreWriter;

class Context {
 public:
  explicit Context(const CliEnvironment& environment) : environment_(environment) {}

  // Set by the options that all commands have.
  std::string store_option;
  bool trust_store = false;
  bool json = false;
  bool quiet = false;

  const CliEnvironment& environment() const { return environment_; }

  // --store, WEFT_STORE, or /var/lib/weft for root and $XDG_DATA_HOME/weft (~/.local/share/weft) for others.
  std::string store_path() const;
  // --trust-store, or weft.conf says so of this store.
  bool trusts_store() const;
  // The daemon that has the store; null when none runs, and this process may write to the store itself. Waits some
  // seconds for one that begins or ends.
  Result<std::unique_ptr<control::Client>> daemon() const;
  Result<std::unique_ptr<control::Client>> need_daemon() const;  // Errc::unreachable when none runs
  // What writes to the store: that daemon, or else this process.
  Result<std::unique_ptr<StoreWriter>> writer() const;
  // Asks it; Ctrl-C is passed on. Where the connection is lost, the message says that the outcome is not known.
  Result<control::Answer> ask(control::Client& daemon, std::string_view request, std::string_view body,
                              control::CallOptions options = {}) const;
  Result<std::unique_ptr<Store>> open_to_read() const { return open(false); }
  Result<std::unique_ptr<Store>> open_to_write() const { return open(true); }
  // Makes the store first, and says so, where nothing or an empty directory is. Errc::not_found instead if this
  // machine's weft.conf names a store: the disk that it lies on may not be mounted, and a store in its place would be
  // nobody's.
  struct OpenedStore {
    std::unique_ptr<Store> store;
    bool made = false;       // now; by us
    std::string first_made;  // the first directory that had to be made for it; "" when all were there
  };
  Result<OpenedStore> open_or_create() const;
  // Takes a store away that was made for nothing, with the directories that were; not if others have come to use it.
  void unmake(OpenedStore opened) const;
  Patience patience() const;  // until the environment's interrupt; waits are told of unless --quiet
  Status create(const CreateOptions& options) const;  // with the parent directories

  ProgressBar progress() const;  // shown on a terminal unless --quiet; cancelled by the environment's interrupt

  // What names, messages and metrics hold cannot steer the terminal.
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) const {
    environment_.out << printable_lines(fmt::format(format, std::forward<Args>(args)...));
  }
  // For programs that read fields ended by NUL. The text itself steers no terminal.
  void print_field(std::string_view text) const { environment_.out << printable_lines(text) << '\0'; }
  void print_json(const JsonWriter& json_value) const { print_json(json_value.text()); }
  void print_json_part(std::string_view json_text) const { environment_.out << json_text; }
  void print_json(std::string_view json_text) const { environment_.out << json_text << '\n'; }
  void note(std::string_view line) const { environment_.err << "weft: " << printable_lines(line) << '\n'; }

 private:
  Result<std::unique_ptr<Store>> open(bool write) const;
  Status check_may_create(const Error& none) const;
  Status look(VersionId version) const;  // the daemon is asked for a version's manifest
  const CliEnvironment& environment_;
};

}  // namespace weft
