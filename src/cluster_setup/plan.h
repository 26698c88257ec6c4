// A setup of a node as a value: what it creates and runs, in order. `--dry-run` prints it, setup.h carries it out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace weft::setup {

struct PlannedFile {
  std::string path;
  mode_t mode = 0644;
  std::string content;
  bool secret = false;  // plan_text() does not show the content
};

struct PlannedDirectory {
  std::string path;
  mode_t mode = 0755;
};

using Command = std::vector<std::string>;  // a program, by its path or along PATH, and its arguments

struct Plan {
  std::vector<PlannedDirectory> directories;  // parents first; one that exists stays as it is
  std::string store;                          // created unless an unused store is there
  std::vector<PlannedFile> files;             // none of them may exist
  std::vector<std::string> data;              // directories that the started programs fill; none of them may exist
  std::vector<Command> start;
  std::string join;                    // HOST:PORT where this node admits others; "": nowhere
  std::string peer_url;                // of an etcd that has joined the members of other nodes; "": none
  std::vector<std::string> endpoints;  // of etcd
};

std::string plan_text(const Plan& plan);

// Returns `text` as one word of a shell's command line.
std::string shell_word(const std::string& text);

}  // namespace weft::setup
