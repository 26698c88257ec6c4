// The messages of a join: JSON over HTTPS, POST /join. The machine that joins has checked that the node has the key
// that the token names, so the machine may send the token's secret. The node checks the secret, so the node may send
// the cluster's keys.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "base/limits.h"

namespace weft::setup {

inline constexpr std::uint32_t kJoinProtocol = 1;
inline constexpr std::string_view kJoinPath = "/join";

struct JoinRequest {
  std::uint32_t protocol = kJoinProtocol;
  std::string token;
  std::string name;             // of the node
  std::string host;             // that it listens at
  std::uint32_t peer_port = 0;  // where an etcd of this node would listen for its peers; 0: it has no etcd
  std::string request;          // for its certificate: PKCS #10, PEM
  std::uint64_t time_s = 0;     // its clock, seconds since 1970
};
inline void fields(JsonFields& f, JoinRequest& m) {
  f("protocol", m.protocol)("token", m.token, limits::kJoinTokenMax)("name", m.name, limits::kJoinNameMax);
  f("host", m.host, limits::kJoinHostMax)("peer_port", m.peer_port, UINT16_MAX)("request", m.request)("time_s",
                                                                                                      m.time_s);
}

// How the node reaches the registry. PEM texts; "" for what it does without.
struct EtcdAccess {
  std::vector<std::string> endpoints;
  std::string prefix, user, password;
  std::string ca, certificate, key;
};
inline void fields(JsonFields& f, EtcdAccess& m) {
  f("endpoints", m.endpoints)("prefix", m.prefix)("user", m.user)("password", m.password);
  f("ca", m.ca)("certificate", m.certificate)("key", m.key);
}

struct JoinAnswer {
  std::string node;             // the name of the first node
  std::string cluster;          // its name
  std::string cluster_key;      // on the wire in Base64
  std::string origin;           // "": none
  std::string initial_cluster;  // NAME=URL,…: this node runs an etcd, which joins these members; "": it runs none
  EtcdAccess etcd;              // without `key` if the certificate was signed for the request
};
inline void fields(JsonFields& f, JoinAnswer& m) {
  f("node", m.node)("cluster", m.cluster)("cluster_key", m.cluster_key)("origin", m.origin)(
      "initial_cluster", m.initial_cluster)("etcd", m.etcd);
}

struct JoinRefusal {
  std::string error;
};
inline void fields(JsonFields& f, JoinRefusal& m) {
  f("error", m.error);
}

}  // namespace weft::setup
