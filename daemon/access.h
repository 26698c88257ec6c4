// Access control for requests. Root and the daemon's user may send all requests; the configuration grants rights to
// other users and groups. The rights to publish and to remove may differ by the names of models: the rule with the
// longest prefix of a name decides, and the table control for a name that no rule covers.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/unix_socket.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct Grant {
  std::set<uid_t> users;
  std::set<gid_t> groups;
  std::string setting = {};  // the setting of weft.conf that grants it, such as "control.publish"
};

// A right that depends on the name of a model.
struct NameGrants {
  Grant others;                                              // for names that no rule covers
  std::map<std::string, Grant, std::less<>> by_prefix = {};  // as GrantRule::prefix
  const Grant& of(std::string_view model) const;
};

// One table [[grant]] of weft.conf. A prefix "team/" covers the names that begin with it; a prefix "team" covers the
// model of this name and the models below it.
struct GrantRule {
  std::string prefix;
  std::optional<std::vector<std::string>> publish, remove;  // users and groups; none: the rule does not decide this
};
// Parses "PREFIX publish=WHO,WHO remove=WHO". Errc::invalid: the prefix can begin no name, a word is unknown or occurs
// twice, or there is no right.
Result<GrantRule> parse_grant_rule(std::string_view text);

// Parses users ("alice", "1000") and groups ("@ml", "@100"). Errc::invalid: a name that the system does not know.
Result<Grant> parse_grant(std::span<const std::string> who);

// Errc::permission, with the user, the action and the setting in the message, if `peer` lacks the right. `what` is the
// action.
Status check_access(const Grant& grant, const PeerCredentials& peer, std::string_view what);

// The same for a change of this model.
Status check_access(const NameGrants& grants, std::string_view model, const PeerCredentials& peer,
                    std::string_view what);
// check_any_access() accepts a peer to which one of the grants, of any names, gives the right. check_every_access()
// needs all of them.
Status check_any_access(const NameGrants& grants, const PeerCredentials& peer, std::string_view what);
Status check_every_access(const NameGrants& grants, const PeerCredentials& peer, std::string_view what);

// The same for what no setting grants: for root and the daemon's user.
Status check_owner(const PeerCredentials& peer, std::string_view what);

// Returns the model of MODEL[@V]. Every kind of spec has its model before the '@'.
inline std::string_view model_in(std::string_view spec) {
  return spec.substr(0, spec.find('@'));
}

// Returns the author of the changes that `peer` asks for, without the node. Protected tags bind an author who is
// neither root nor the daemon's user.
Author author_of(const PeerCredentials& peer);

}  // namespace weft
