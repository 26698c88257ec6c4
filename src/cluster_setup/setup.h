// Carries out the plan of a node, completely or not at all.
//
// A record of what a setup creates, `cluster.setup` in the directory of the settings, is durable before anything else
// is there. It says "unfinished" until the setup has ended well. A setup that fails, or is killed, is undone: by
// itself, or by the next one that begins there. The record of a finished setup is what `weft cluster leave` removes.
// One process at a time works on a directory.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster_setup/node_plan.h"
#include "cluster_setup/plan.h"
#include "os/sys.h"
#include "weft/result.h"

namespace weft::setup {

// The files and directories that a setup has created, or begins to create.
struct SetupRecord {
  bool finished = false;
  std::string join, peer_url;  // as in Plan, also the next
  std::vector<std::string> endpoints;
  std::string store;
  std::vector<std::string> files, data, directories;  // directories: those that were not there before
};
// Errc::not_found: `weft cluster` has set up no node there. Errc::corrupt: the file is no record.
Result<SetupRecord> read_record(const Places& places);
std::string record_text(const SetupRecord& record);
Result<SetupRecord> parse_record(std::string_view text);

// Returns the files and the directories with data that a plan would overwrite.
std::vector<std::string> taken_by(const Plan& plan);

class NodeSetup {
 public:
  // Locks the directory of the settings, creating it if it is absent, and undoes a setup that did not finish.
  // Errc::busy: another process works there. Errc::exists: a finished setup is there. Errc::permission: other users can
  // write to `places.base` or to the settings in it.
  static Result<NodeSetup> begin(const Places& places);
  // Undoes what carry_out() has done, unless finish() has succeeded.
  ~NodeSetup();
  NodeSetup(NodeSetup&&) = default;
  NodeSetup& operator=(NodeSetup&&) = delete;
  NodeSetup(const NodeSetup&) = delete;

  // Errc::exists names what the plan would overwrite.
  static Status check(const Plan& plan);
  // Creates the store and the files, and runs the commands. Call it once. Errc::invalid: a path or an endpoint has
  // control characters.
  Status carry_out(const Plan& plan);
  Status finish();

 private:
  NodeSetup(Places places, std::vector<std::string> made, Fd lock)
      : places_(std::move(places)), made_(std::move(made)), lock_(std::move(lock)) {}
  Status create(const Plan& plan);

  Places places_;
  std::vector<std::string> made_;  // directories that begin() has created
  Fd lock_;                        // invalid after a move
  SetupRecord record_;
  bool begun_ = false;  // the record is there
};

// Stops the programs of a finished setup and removes what it has created but for the store. Errc::busy as above.
Status remove_setup(const Places& places);

}  // namespace weft::setup
