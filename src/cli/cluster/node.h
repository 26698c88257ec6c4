// The parts that `weft cluster init`, `join`, `leave` and `token` share: the place of the node, its programs, its
// address, and the wait until it takes part in the cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/shared/context.h"
#include "cli/shared/options.h"
#include "cluster_setup/node_plan.h"
#include "weft/result.h"

namespace weft {

// The options that say which node is meant.
struct NodeOptions {
  std::string directory;  // --dir
  std::string name;       // --name
  std::string listen;     // --listen
  bool dry_run = false;   // --dry-run

  void declare_place(OptionSet& options);
  void declare_node(OptionSet& options);  // also the above
  Status check() const;                   // Errc::invalid
  // Errc::permission: without --dir only root can change the node.
  Result<setup::Places> places(const Context& context) const;
  std::string node_name() const;
  // Returns the address of --listen, with the default port if it has none; nothing without --listen.
  Result<std::optional<setup::JoinPlace>> given_listen() const;
};

// The options --uses and --valid of a token.
struct TokenOptions {
  std::string uses = "1", valid = "1h";

  void declare(OptionSet& options);
  Status check();  // Errc::invalid. Sets the values below
  std::uint16_t uses_count = 1;
  std::uint64_t valid_s = 3600;
};

// Returns the path of a program. Errc::not_found, with what to do about it.
Result<std::string> node_program(const Context& context, const std::string& name, std::string_view remedy);

// Errc::busy or Errc::invalid: this machine cannot listen at one of `count` ports from this one on.
Status check_ports_free(const setup::JoinPlace& first, const std::vector<std::uint16_t>& steps);

struct ReadyNode {
  std::uint64_t members = 0;  // daemons of the cluster that hold its key, with this one
};
// Waits until the daemon of the node follows the registry, and its entry there has come back to it: so it can read and
// write there. With `other`, also until it sees another node that holds its key. Errc::timed_out and Errc::io say what
// the daemon reports. Errc::cancelled: Ctrl-C.
Result<ReadyNode> wait_ready(Context& context, const setup::Places& places, const setup::JoinPlace& listen, bool other);

// Prints a token's command for other machines: alone on standard output, so that a script can take it.
void print_token(const Context& context, const setup::Token& token, const TokenOptions& options);

}  // namespace weft
