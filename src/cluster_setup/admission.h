// The first node's side of a join: checks the token and the clock, records the use of the token, and hands out what a
// node of the cluster needs. Any thread.
//
// The order is the contract: nothing is handed out before the use is durable in the registry, so a token admits as many
// machines as it says, also if this node is killed or two machines present it at once. A machine that dies after the
// record has used the token up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster_setup/crypto.h"
#include "cluster_setup/etcd_growth.h"
#include "cluster_setup/join_messages.h"
#include "cluster_setup/token.h"
#include "registry/etcd/etcd_client.h"
#include "registry/registry_keys.h"
#include "weft/cluster/registry.h"
#include "weft/result.h"

namespace weft::setup {

// Files of the directory that admits nodes; private to weftd's user.
inline constexpr std::string_view kAuthorityCertificate = "ca.pem";
inline constexpr std::string_view kAuthorityKey = "ca.key";
inline constexpr std::string_view kTokenKeyFile = "token.key";

// The directory as read.
struct AdmissionKeys {
  Authority authority;
  TokenKey token_key{};
};
Result<AdmissionKeys> read_admission_keys(const std::string& directory);

// A node of the cluster whose settings the others copy.
struct AdmittingNode {
  std::string name, key_file, origin;
  std::uint64_t etcd_members = 1;  // that the cluster's own etcd is to have, as nodes join
  EtcdOptions etcd;                // if its authority is the one that admits, each node gets a certificate of its own
};

class Admission {
 public:
  struct Reply {
    int status = 200;  // of HTTP
    std::string body;  // JSON
  };
  using Clock = std::function<std::uint64_t()>;  // seconds since 1970

  Admission(AdmissionKeys keys, AdmittingNode node, Clock clock);

  // The authority's own certificate proves this node to machines that join: the token names its key.
  const KeyedCertificate& server_certificate() const { return keys_.authority.files(); }
  // Answers the body of a POST to kJoinPath. The body is hostile.
  Reply answer(std::string_view body);

 private:
  Result<JoinAnswer> admit(const JoinRequest& request);
  Result<Token> check(const JoinRequest& request) const;
  std::string member_for(const JoinRequest& request);
  Status check_key_stays() const;
  bool has_own_etcd() const;
  Result<EtcdAccess> access_for(const JoinRequest& request);

  const AdmissionKeys keys_;
  const AdmittingNode node_;
  const Clock clock_;
  etcd::Client client_;
  const RegistryKeys registry_keys_;
  LearnerAge learner_;
};

}  // namespace weft::setup
