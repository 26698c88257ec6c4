// The plan of a node: its files, from the facts of the cluster and the node. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster_setup/crypto.h"
#include "cluster_setup/join_messages.h"
#include "cluster_setup/plan.h"
#include "cluster_setup/token.h"

namespace weft::setup {

// Where the parts of a node lie: in the directories of the system, with units of systemd; or all below one directory,
// with scripts that start and stop the programs, for a user without rights.
struct Places {
  std::string base;      // "": the system
  std::string settings;  // weft.conf, keys and certificates
  std::string store;
  std::string etcd_data;  // of a node with an etcd of the cluster
  std::string run;        // process ids and logs; "" for the system: systemd keeps them
  std::string unit;       // of etcd; "" below a directory

  std::string setting(std::string_view name) const { return settings + "/" + std::string(name); }
  std::string config() const { return setting("weft.conf"); }
  std::string authority() const { return setting("authority"); }
  std::string start_script() const { return base + "/start"; }
  std::string stop_script() const { return base + "/stop"; }
};
Places system_places(const std::string& store = "/var/lib/weft");
Places places_below(const std::string& directory);  // an absolute path

// Four ports in a row, from the one of `listen` on.
inline constexpr std::uint16_t kListenPort = 4711;
inline constexpr std::uint16_t kJoinPortStep = 1, kEtcdPortStep = 2, kEtcdPeerPortStep = 3;
JoinPlace place_after(const JoinPlace& listen, std::uint16_t step);

// An etcd that the node runs for the cluster. Its certificate is that of EtcdAccess, which serves for both ends.
struct EtcdMember {
  std::string program;          // its path
  std::string cluster_token;    // tells the members of this etcd from others
  std::string initial_cluster;  // NAME=URL,…: all members
  bool is_new = true;           // false: it joins members that run
};

// The node admits others.
struct FirstNode {
  std::uint64_t etcd_members = 1;  // that etcd is to have as others join
  KeyedCertificate authority;
  TokenKey token_key{};
};

struct NodeParts {
  std::string name;
  std::string cluster;      // its name
  std::string cluster_key;  // bytes
  std::string origin;       // "": none
  JoinPlace listen;
  EtcdAccess etcd;
  std::optional<EtcdMember> member;
  std::optional<FirstNode> first;
  std::string weftd;  // its path, for the start script
};

std::string etcd_url(const JoinPlace& place);
Plan node_plan(const Places& places, const NodeParts& parts);

// The commands that stop what a plan has started, before its files are removed.
std::vector<Command> stop_commands(const Places& places, bool has_etcd);

}  // namespace weft::setup
